//! Output of commands: tables for people, JSON for scripts.

use std::io::Write;
use std::sync::LazyLock;

use comfy_table::{ContentArrangement, Table, presets};
use regex::{Captures, Regex};
use serde::Serialize;
use serde_json::{Value, json};

/// The result of a command.
#[derive(Debug)]
pub struct Output {
    text: String,
    json: Value,
    raw: Option<Vec<u8>>,
}

/// A row of a table.
pub trait Row: Serialize {
    /// The headers of the columns.
    const COLUMNS: &'static [&'static str];

    /// The cells, one per column.
    fn cells(&self) -> Vec<String>;
}

impl Output {
    /// A table of `rows`, or the sentence `none` if there are none.
    pub fn rows<R: Row>(rows: &[R], none: &str) -> Self {
        let text = if rows.is_empty() {
            none.to_owned()
        } else {
            let mut table = Table::new();
            table
                .load_preset(presets::NOTHING)
                .set_content_arrangement(ContentArrangement::Disabled)
                .set_header(R::COLUMNS)
                .add_rows(
                    rows.iter()
                        .map(|row| row.cells().into_iter().map(|cell| escaped(&cell))),
                );
            table.column_iter_mut().for_each(|column| {
                column.set_padding((0, 2));
            });
            let lines: Vec<_> = table.lines().map(|line| line.trim_end().to_owned()).collect();
            lines.join("\n")
        };
        Self {
            text,
            json: to_json(&rows),
            raw: None,
        }
    }

    /// One object, as lines of names and values.
    pub fn facts<T: Serialize>(value: &T, facts: &[(&str, String)]) -> Self {
        Self {
            text: lines(facts),
            json: to_json(value),
            raw: None,
        }
    }

    /// A text for people and a value for programs.
    pub fn message<T: Serialize>(text: &str, value: &T) -> Self {
        Self {
            text: escaped_lines(text),
            json: to_json(value),
            raw: None,
        }
    }

    /// Raw bytes, in either form.
    pub fn raw(bytes: Vec<u8>) -> Self {
        Self {
            text: String::new(),
            json: Value::Null,
            raw: Some(bytes),
        }
    }

    /// A change: a sentence, how to undo it, and the new state.
    pub fn changed(changed: bool, what: &str, undo: Option<&str>, facts: &[(&str, String)], value: Value) -> Self {
        let mut text = escaped_lines(what);
        if !facts.is_empty() {
            text = format!("{text}\n\n{}", lines(facts));
        }
        if let Some(undo) = undo {
            text = format!("{text}\n\nundo: {}", escaped_lines(undo));
        }
        Self {
            text,
            json: json!({ "changed": changed, "what": what, "undo": undo, "result": value }),
            raw: None,
        }
    }

    /// Prints the output.
    ///
    /// # Errors
    /// If standard output cannot be written. A closed pipe, such as `head`'s, is not an error.
    pub fn print(self, as_json: bool) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        let written = match (&self.raw, as_json) {
            (Some(raw), _) => out.write_all(raw),
            (None, true) => writeln!(out, "{}", json_text(&self.json)),
            (None, false) => writeln!(out, "{}", self.text),
        };
        match written.and_then(|()| out.flush()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }
}

/// Converts a value to JSON. The values printed here always convert.
pub fn to_json<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

fn lines(facts: &[(&str, String)]) -> String {
    let width = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let lines: Vec<_> = facts
        .iter()
        .map(|(name, value)| format!("{name:width$}  {}", escaped_lines(value)))
        .collect();
    lines.join("\n")
}

/// Returns `yes` or `no`.
pub fn yes(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

/// Formats a list for one cell, `-` if it is empty.
pub fn list(values: &[String]) -> String {
    if values.is_empty() {
        "-".to_owned()
    } else {
        values.join(", ")
    }
}

/// Control characters (Cc), which a terminal may execute. Also invisible characters (Cf, such as bidirectional overrides) and line
/// separators (Zl, Zp), which make a text look like another one.
static UNPRINTABLE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]").ok());

/// Returns a text with its control and invisible characters in the form `\u{202e}`. The database holds texts that devices and
/// other systems wrote.
#[must_use]
pub fn escaped(text: &str) -> String {
    replace(text, |character| character.escape_unicode().to_string())
}

/// Like [`escaped`], but keeps line breaks, for texts that a command composes of lines.
fn escaped_lines(text: &str) -> String {
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

/// Returns indented JSON of the same meaning whose strings contain no such characters.
fn json_text(json: &Value) -> String {
    let lines = format!("{json:#}");
    let escaped = lines.split('\n').map(|line| {
        replace(line, |character| {
            let units = character.encode_utf16(&mut [0; 2]).to_vec();
            units.iter().map(|unit| format!("\\u{unit:04x}")).collect()
        })
    });
    escaped.collect::<Vec<_>>().join("\n")
}

fn replace(text: &str, with: impl Fn(char) -> String) -> String {
    let Some(unprintable) = &*UNPRINTABLE else {
        return text.to_owned();
    };
    let replaced = |found: &Captures<'_>| found[0].chars().map(&with).collect::<String>();
    unprintable.replace_all(text, replaced).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A C0 and a C1 control, a bidirectional override, a line separator, and an invisible character above U+FFFF.
    const HOSTILE: &str = "a\u{1b}[2J\u{9b}31m\u{202e}b\u{2028}c\u{e0041}";

    #[derive(Serialize)]
    struct Device(&'static str);

    impl Row for Device {
        const COLUMNS: &'static [&'static str] = &["DEVICE"];

        fn cells(&self) -> Vec<String> {
            vec![self.0.to_owned()]
        }
    }

    #[test]
    fn control_and_invisible_characters_are_escaped_in_every_output() {
        let shown = r"a\u{1b}[2J\u{9b}31m\u{202e}b\u{2028}c\u{e0041}";
        let table = Output::rows(&[Device(HOSTILE)], "none");
        assert_eq!(table.text, format!("DEVICE\n{shown}"));
        let facts = Output::facts(&HOSTILE, &[("device", HOSTILE.to_owned())]);
        assert_eq!(facts.text, format!("device  {shown}"));
        let changed = Output::changed(true, HOSTILE, Some(HOSTILE), &[], Value::Null);
        assert_eq!(changed.text, format!("{shown}\n\nundo: {shown}"));
        assert_eq!(Output::message(HOSTILE, &HOSTILE).text, shown);

        let json = json_text(&facts.json);
        assert_eq!(json, r#""a\u001b[2J\u009b31m\u202eb\u2028c\udb40\udc41""#);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), HOSTILE);
    }

    #[test]
    fn letters_and_line_breaks_of_a_composed_text_are_kept() {
        let text = "Şahin, İzmir i\u{307}\n\nsecond line";
        assert_eq!(Output::message(text, &()).text, text);
        assert_eq!(escaped("two\nlines"), r"two\u{a}lines");
    }
}
