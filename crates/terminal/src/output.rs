//! Output of commands: tables for people, JSON for scripts.

use std::io::Write;

use comfy_table::{ContentArrangement, Table, presets};
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
                .add_rows(rows.iter().map(Row::cells));
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
    pub fn said<T: Serialize>(text: &str, value: &T) -> Self {
        Self {
            text: text.to_owned(),
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
        let mut text = what.to_owned();
        if !facts.is_empty() {
            text = format!("{text}\n\n{}", lines(facts));
        }
        if let Some(undo) = undo {
            text = format!("{text}\n\nundo: {undo}");
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
            (None, true) => writeln!(out, "{:#}", self.json),
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
        .map(|(name, value)| format!("{name:width$}  {value}"))
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
