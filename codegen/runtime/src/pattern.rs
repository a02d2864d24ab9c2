//! Regular expressions in ECMAScript's dialect, as in OpenAPI.

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

/// A `pattern`, which is compiled at its first use.
///
/// Rust's `regex`, which runs in bounded time, matches most patterns. Only those with look-around or back-references
/// use a backtracking engine, which gives up after a million steps. The value then does not match.
#[derive(Clone)]
pub struct Pattern {
    text: Cow<'static, str>,
    engine: OnceLock<Result<Engine, String>>,
}

#[derive(Clone)]
enum Engine {
    Linear(regex::Regex),
    Backtracking(Box<fancy_regex::Regex>),
}

impl Pattern {
    /// A pattern that the generator has checked. An invalid pattern matches nothing.
    pub const fn new(text: &'static str) -> Self {
        Pattern {
            text: Cow::Borrowed(text),
            engine: OnceLock::new(),
        }
    }

    /// Compiles a pattern.
    ///
    /// # Errors
    /// A short description of the syntax error.
    pub fn compiled(text: &str) -> Result<Self, String> {
        let engine = compile(text)?;
        Ok(Pattern {
            text: Cow::Owned(text.to_string()),
            engine: OnceLock::from(Ok(engine)),
        })
    }

    /// The pattern's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the pattern matches anywhere in `value`.
    pub fn is_match(&self, value: &str) -> bool {
        match self.engine.get_or_init(|| compile(&self.text)) {
            Ok(Engine::Linear(regex)) => regex.is_match(value),
            Ok(Engine::Backtracking(regex)) => regex.is_match(value).unwrap_or(false),
            Err(_) => false,
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

fn compile(text: &str) -> Result<Engine, String> {
    let translated = to_rust_syntax(text);
    if let Ok(regex) = regex::Regex::new(&translated) {
        return Ok(Engine::Linear(regex));
    }
    match fancy_regex::Regex::new(&translated) {
        Ok(regex) => Ok(Engine::Backtracking(Box::new(regex))),
        Err(error) => {
            // The engine's message may show the position below the pattern. Its last line describes the error.
            let message = error.to_string();
            let last = message.lines().last().unwrap_or_default().trim();
            Err(last.strip_prefix("error: ").unwrap_or(last).to_string())
        }
    }
}

/// Converts a pattern from ECMAScript to Rust. In ECMAScript, `\d`, `\w` and `\b` match only ASCII, `.` does not match
/// any line terminator, and `[`, `&&`, `--` and `~~` have no special meaning in brackets.
fn to_rust_syntax(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut in_class = false;
    let mut class_begins = false;
    while let Some(character) = characters.next() {
        let is_first = std::mem::take(&mut class_begins);
        match character {
            '\\' => match characters.next() {
                Some('d') => out.push_str("[0-9]"),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[0-9A-Za-z_]"),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some(bound @ ('b' | 'B')) if !in_class => out.push_str(&format!("(?-u:\\{bound})")),
                Some('b') => out.push_str("\\x08"),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '[' if in_class => out.push_str("\\["),
            '[' => {
                (in_class, class_begins) = (true, true);
                out.push('[');
                if characters.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            ']' => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => out.extend(['\\', character]),
            '-' if in_class && is_first => out.push_str("\\-"),
            '-' if in_class && characters.next_if_eq(&'-').is_some() => out.push_str("-\\-"),
            '.' if !in_class => out.push_str(r"[^\n\r\u2028\u2029]"),
            other => out.push(other),
        }
    }
    out
}
