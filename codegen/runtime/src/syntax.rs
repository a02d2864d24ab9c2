//! Descriptions of syntax errors in JSON.
//!
//! serde_json decides whether a text is valid JSON. This module scans an invalid text again, token by token, to
//! recognize common mistakes: a comma as the decimal separator, `NaN`, single quotes, and paths with backslashes.

use crate::validation::{Path, ValidationError};

/// The error in a text that serde_json rejects, with its place and what would be valid.
pub fn error(text: &str) -> ValidationError {
    let mut scanner = Scanner::of(text);
    let message = scanner.document().err().unwrap_or_else(|| "is not JSON".to_string());
    if text.trim().is_empty() {
        // An empty text has no line and column.
        return ValidationError::in_body(&Path::default(), message);
    }
    let offset = scanner.at.min(text.len());
    ValidationError::in_body(
        &scanner.path(),
        format!("{message}{}", position(text.as_bytes(), offset)),
    )
}

/// The place at which a truncated text ends.
pub fn end_of(text: &str) -> Path {
    let mut scanner = Scanner::of(text);
    // The result is known: the text ends too early.
    let _ = scanner.document();
    scanner.path()
}

/// ` (line 2, column 7)` for the byte at `offset`; both numbers start from 1.
pub fn position(bytes: &[u8], offset: usize) -> String {
    let before = &bytes[..offset];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    format!(" (line {line}, column {})", offset - line_start + 1)
}

/// Success, or the error at the scanner's position.
type Scanned = Result<(), String>;

fn rejected(message: impl Into<String>) -> Scanned {
    Err(message.into())
}

const BROKEN_OFF: &str = "ends unexpectedly";

/// An open array or object. The scanner keeps its own stack, because a text may nest arbitrarily deep.
enum Open<'t> {
    /// An object, with the name of the current member as written.
    Object(Option<&'t str>),
    /// An array, with the index of the current item.
    Array(usize),
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    open: Vec<Open<'t>>,
    /// The last number, if it was followed by nothing but a comma.
    last_number: Option<&'t str>,
}

impl<'t> Scanner<'t> {
    fn of(text: &'t str) -> Self {
        Scanner {
            text,
            at: 0,
            open: Vec::new(),
            last_number: None,
        }
    }

    fn path(&self) -> Path {
        self.open.iter().fold(Path::default(), |path, open| match open {
            Open::Object(None) => path,
            Open::Object(Some(name)) => path.member(&serde_json::from_str::<String>(name).unwrap_or_default()),
            Open::Array(index) => path.item(*index),
        })
    }

    fn document(&mut self) -> Scanned {
        loop {
            self.blanks();
            // A value starts here.
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    self.blanks();
                    self.open.push(Open::Object(None));
                    if self.peek() != Some(b'}') {
                        self.name()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    self.blanks();
                    self.open.push(Open::Array(0));
                    if self.peek() != Some(b']') {
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            if self.ends()? {
                return Ok(());
            }
        }
    }

    /// Reads what follows a value, up to the next value. Returns `true` at the end of the document.
    fn ends(&mut self) -> Result<bool, String> {
        loop {
            self.blanks();
            let next = self.peek();
            match (next, self.open.last_mut()) {
                (None, None) => return Ok(true),
                (Some(b',' | b'}' | b']'), None) => {
                    return Err("has an extra bracket or comma after its end".into());
                }
                (Some(_), None) => return Err("must be one JSON document; more text follows it".into()),
                (Some(b','), Some(Open::Object(_))) => {
                    self.at += 1;
                    self.blanks();
                    self.name()?;
                    return Ok(false);
                }
                (Some(b','), Some(Open::Array(index))) => {
                    *index += 1;
                    self.at += 1;
                    self.blanks();
                    if self.peek() == Some(b']') {
                        return Err("no comma is allowed before the closing bracket".into());
                    }
                    return Ok(false);
                }
                (Some(b'}'), Some(Open::Object(_))) | (Some(b']'), Some(Open::Array(_))) => {
                    self.at += 1;
                    self.last_number = None;
                    self.open.pop();
                }
                (None, _) => return Err(BROKEN_OFF.into()),
                (Some(_), Some(Open::Object(_))) => return Err("a comma or a closing brace must follow here".into()),
                (Some(_), Some(Open::Array(_))) => return Err("a comma or a closing bracket must follow here".into()),
            }
        }
    }

    /// Reads a member's name and colon.
    fn name(&mut self) -> Scanned {
        if let (Some(b'0'..=b'9'), Some(whole)) = (self.peek(), self.last_number.take()) {
            // In `2,85` the comma ends the value, and what follows is not a name.
            let rest = self.rest();
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let decimals = &rest[..digits.min(18)];
            return rejected(format!(
                "use a dot for decimals ({whole}.{decimals}); a comma ends the value"
            ));
        }
        self.read(None);
        match self.peek() {
            Some(b'"') => {}
            Some(b'}') => return rejected("no comma is allowed before the closing brace"),
            Some(b'\'') => return rejected("a name must be in double quotes, not in single ones"),
            None => return rejected(BROKEN_OFF),
            Some(_) => return rejected("a member's name must follow here, in double quotes"),
        }
        let start = self.at;
        self.string()?;
        self.read(Some(&self.text[start..self.at]));
        self.blanks();
        match self.peek() {
            Some(b':') => {
                self.at += 1;
                Ok(())
            }
            None => rejected(BROKEN_OFF),
            Some(_) => rejected("a colon must follow the name"),
        }
    }

    /// Records the member that is being read.
    fn read(&mut self, name: Option<&'t str>) {
        if let Some(Open::Object(member)) = self.open.last_mut() {
            *member = name;
        }
    }

    fn scalar(&mut self) -> Scanned {
        let is_whole = self.open.is_empty();
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            None if is_whole && self.at == self.text.len() && self.text.trim().is_empty() => {
                rejected("is empty; send a JSON object")
            }
            None => rejected(BROKEN_OFF),
            Some(b'\'') => rejected("text must be in double quotes, not in single ones"),
            Some(b'+') => rejected("a number must not have a plus sign"),
            Some(b'.') => rejected("a number must begin with a digit: 0.5, not .5"),
            Some(b',' | b'}' | b']') => rejected("the value is missing"),
            Some(b'<') if is_whole => rejected("must be a JSON object, seems to be XML or HTML"),
            Some(b'/' | b'#') => rejected("JSON has no comments"),
            Some(_) => self.word(is_whole),
        }
    }

    fn word(&mut self, is_whole: bool) -> Scanned {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let word = &rest[..end];
        match word {
            "true" | "false" | "null" => {
                self.at += end;
                Ok(())
            }
            _ if is_whole && self.at == 0 && rest.starts_with('\u{feff}') => {
                rejected("begins with a byte-order mark; send UTF-8 without it")
            }
            _ if ["true", "false", "null"].contains(&word.to_ascii_lowercase().as_str()) => {
                rejected(format!("{word} is not JSON; write {}", word.to_ascii_lowercase()))
            }
            _ if is_no_value(word) => rejected(format!("{word} is not JSON; omit the member if there is no value")),
            _ if is_whole => rejected("must be a JSON object"),
            _ => rejected("text must be in double quotes"),
        }
    }

    fn number(&mut self) -> Scanned {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c))
            .unwrap_or(rest.len());
        let number = &rest[..end];
        let digits = number.strip_prefix('-').unwrap_or(number);
        let is_number = serde_json::from_str::<&serde_json::value::RawValue>(number).is_ok();
        if is_number {
            self.last_number = Some(number);
            self.at += end;
            return Ok(());
        }
        let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
        if is_no_value(digits) {
            return rejected(format!("{number} is not JSON; omit the member if there is no value"));
        }
        if digits.starts_with('.') {
            return rejected("a number must begin with a digit: 0.5, not .5");
        }
        let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() > 1 && whole.starts_with('0') && are_digits(whole) && are_digits(decimals) {
            return rejected("a number must not have leading zeros");
        }
        if are_digits(whole) && !decimals.starts_with(|c: char| c.is_ascii_digit()) {
            return rejected("a digit must follow the dot of a number");
        }
        rejected("is neither a number nor text; put text in double quotes")
    }

    fn string(&mut self) -> Scanned {
        let bytes = self.text.as_bytes();
        self.last_number = None;
        self.at += 1;
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => self.escape()?,
                0..=0x1f => {
                    return rejected(format!(
                        "a control character (U+{byte:04X}) in text must be written as \\u{byte:04x}"
                    ));
                }
                _ => self.at += 1,
            }
        }
        rejected(BROKEN_OFF)
    }

    fn escape(&mut self) -> Scanned {
        let rest = &self.rest()[1..];
        match rest.chars().next() {
            Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => self.at += 2,
            Some('u') => {
                // Surrogates come in pairs, so serde_json decodes matching escapes together.
                let read = |length: usize| {
                    let escapes = self.text.get(self.at..self.at + length)?;
                    serde_json::from_str::<String>(&format!("\"{escapes}\"")).ok()
                };
                match (read(6), read(12)) {
                    (Some(_), _) => self.at += 6,
                    (None, Some(_)) => self.at += 12,
                    (None, None) => {
                        return rejected(
                            "\\u must be followed by four hexadecimal digits, and surrogates come in pairs",
                        );
                    }
                }
            }
            Some(other) => {
                let other: String = other.escape_debug().collect();
                return rejected(format!("\\{other} is not a JSON escape; write a backslash as \\\\"));
            }
            None => {
                self.at = self.text.len();
                return rejected(BROKEN_OFF);
            }
        }
        Ok(())
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }
}

/// Whether a word is one that programs write for a missing or non-finite number.
fn is_no_value(word: &str) -> bool {
    const WORDS: [&str; 8] = ["nan", "inf", "infinity", "undefined", "none", "nil", "nul", "na"];
    WORDS.contains(&word.to_ascii_lowercase().as_str())
}
