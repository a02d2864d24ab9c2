//! Finds out which bytes a wrong BODY_SHA256 was computed from.

use partner_api_signing::body_sha256;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::lines::{is_of_empty_body, notation};

const RESERIALIZED: &str = "the body was serialized twice, once to sign it and once to send it: serialize it once, then hash and send that text";

/// Texts that some libraries hash when there is no body.
const NOTHING: [&str; 6] = ["{}", "null", "\"\"", "[]", "undefined", "None"];

/// Returns what may have been hashed instead of the body that was sent.
pub(super) fn hashed_instead(sent: &[u8]) -> Vec<Vec<u8>> {
    if sent.is_empty() {
        return NOTHING.map(|nothing| nothing.as_bytes().to_vec()).to_vec();
    }
    let changed = variants(sent).into_iter().map(|(bytes, _)| bytes);
    [Vec::new()].into_iter().chain(changed).collect()
}

/// Returns the likely reason why the signed digest differs from the digest of the body that was sent.
pub(super) fn cause(ours: &str, theirs: &str, sent: &[u8]) -> String {
    if let Some(notation) = notation(ours, theirs) {
        return format!("the digest is in {notation}: write it in lower-case hex");
    }
    if theirs.is_empty() {
        return "it is empty: without a body it is the SHA-256 of the empty string, e3b0c442...".to_owned();
    }
    if is_of_empty_body(theirs) {
        return "the digest is that of an empty body, but a body was sent: hash the bytes of the body (a stream that was already \
                read is empty)"
            .to_owned();
    }
    if std::str::from_utf8(sent).is_ok_and(|text| text == theirs) {
        return "the body itself was signed: sign its SHA-256 in lower-case hex".to_owned();
    }
    if theirs.len() != 64 || !theirs.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return "it is not a SHA-256 in hex: it must have 64 hex digits".to_owned();
    }
    if is_of_empty_body(ours) {
        for nothing in NOTHING {
            if body_sha256(nothing.as_bytes()).eq_ignore_ascii_case(theirs) {
                return format!("the digest is that of `{nothing}`, but no body was sent: hash the empty byte string");
            }
        }
        return "a body was signed, but none was sent".to_owned();
    }
    for (bytes, mistake) in variants(sent) {
        if body_sha256(&bytes).eq_ignore_ascii_case(theirs) {
            return mistake;
        }
    }
    format!("the digest was computed from other bytes than were sent. The usual cause: {RESERIALIZED}")
}

/// Returns what a body may have been when it was hashed, each with a description of the mistake.
fn variants(sent: &[u8]) -> Vec<(Vec<u8>, String)> {
    let mut variants = Vec::new();
    let mut add = |bytes: Vec<u8>, mistake: &str| variants.push((bytes, mistake.to_owned()));
    add([sent, b"\n"].concat(), "a line feed at the end was hashed but not sent");
    add([sent, b"\r\n"].concat(), "a CR LF at the end was hashed but not sent");
    add(
        [b"\xef\xbb\xbf", sent].concat(),
        "a byte-order mark was hashed but not sent",
    );
    if let Some(rest) = sent.strip_prefix(b"\xef\xbb\xbf") {
        add(rest.to_vec(), "a byte-order mark was sent but not hashed");
    }
    add(
        sent.trim_ascii().to_vec(),
        "white space around the body was sent but not hashed",
    );
    if let Ok(text) = std::str::from_utf8(sent) {
        let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        add(
            utf16,
            "the text was hashed in UTF-16 but sent in UTF-8: hash the bytes that are sent",
        );
        add(
            text.replace("\r\n", "\n").into_bytes(),
            "line endings were changed to CR LF after hashing",
        );
        add(
            text.replace('\n', "\r\n").into_bytes(),
            "line endings were changed from CR LF to LF after hashing",
        );
        if let Ok(latin) = text
            .chars()
            .map(|character| u8::try_from(u32::from(character)))
            .collect()
        {
            add(
                latin,
                "the text was hashed in Latin-1 but sent in UTF-8: hash the bytes that are sent",
            );
        }
    }
    let without_mark = sent.strip_prefix(b"\xef\xbb\xbf").unwrap_or(sent);
    if let Some(value) = tree(without_mark) {
        for (style, name) in STYLES {
            for (value, order) in [(&value, ""), (&sorted(&value), ", its members sorted")] {
                for (ascii, escapes) in [(false, ""), (true, ", non-ASCII characters escaped")] {
                    for (slash, slashes) in [(false, ""), (true, ", slashes escaped")] {
                        for numbers in [Numbers::AsWritten, Numbers::Python, Numbers::JavaScript] {
                            let mut text = String::new();
                            let style = Style {
                                ascii,
                                slash,
                                numbers,
                                ..style
                            };
                            write(value, style, 0, &mut text);
                            let mistake = format!("{RESERIALIZED}. The hashed text is {name}{order}{escapes}{slashes}");
                            variants.push((text.into_bytes(), mistake));
                        }
                    }
                }
            }
        }
    }
    variants
}

/// How a library writes JSON.
#[derive(Clone, Copy)]
struct Style {
    after_comma: &'static str,
    after_colon: &'static str,
    indent: &'static str,
    ascii: bool,
    slash: bool,
    numbers: Numbers,
}

/// How a library writes a number that it has read.
#[derive(Clone, Copy)]
enum Numbers {
    AsWritten,
    /// `2.850` becomes `2.85`.
    Python,
    /// The same, and `1.0` becomes `1`.
    JavaScript,
}

const fn style(after_comma: &'static str, after_colon: &'static str, indent: &'static str) -> Style {
    Style {
        after_comma,
        after_colon,
        indent,
        ascii: false,
        slash: false,
        numbers: Numbers::AsWritten,
    }
}

const STYLES: [(Style, &str); 5] = [
    (
        style("", "", ""),
        "compact JSON (JavaScript's JSON.stringify, PHP's json_encode)",
    ),
    (
        style(" ", " ", ""),
        "JSON with a space after commas and colons (Python's json.dumps)",
    ),
    (style("", " ", "  "), "JSON on several lines, indented by two"),
    (style("", " ", "    "), "JSON on several lines, indented by four"),
    (style("", " ", "\t"), "JSON on several lines, indented by tabs"),
];

/// Marks a text that is a number. JSON texts cannot contain it unescaped.
const NUMBER: char = '\0';

/// Parses JSON. A number becomes a string that keeps its text, after [`NUMBER`].
fn tree(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice::<IgnoredAny>(bytes).ok()?;
    let mut marked = String::new();
    let (mut in_string, mut is_escaped, mut in_number) = (false, false, false);
    for character in std::str::from_utf8(bytes).ok()?.chars() {
        let is_number = !in_string
            && (character.is_ascii_digit() || "+-.".contains(character) || in_number && "eE".contains(character));
        if is_number && !in_number {
            marked.push_str("\"\\u0000");
        } else if in_number && !is_number {
            marked.push('"');
        }
        in_number = is_number;
        if character == '"' && !is_escaped {
            in_string = !in_string;
        }
        is_escaped = in_string && character == '\\' && !is_escaped;
        marked.push(character);
    }
    serde_json::from_str(&marked).ok()
}

fn number(written: &str, numbers: Numbers) -> String {
    let read = serde_json::from_str::<serde_json::Number>(written).map(|number| number.to_string());
    let python = read.unwrap_or_else(|_| written.to_owned());
    match numbers {
        Numbers::AsWritten => written.to_owned(),
        Numbers::Python => python,
        Numbers::JavaScript => python.strip_suffix(".0").map_or(python.clone(), str::to_owned),
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members
                .iter()
                .map(|(name, value)| (name.clone(), sorted(value)))
                .collect();
            members.sort_by(|left, right| left.0.cmp(&right.0));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

fn write(value: &Value, style: Style, depth: usize, out: &mut String) {
    let break_line = |depth: usize, out: &mut String| {
        if !style.indent.is_empty() {
            out.push('\n');
            out.push_str(&style.indent.repeat(depth));
        }
    };
    match value {
        Value::Object(members) if !members.is_empty() => {
            out.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                    out.push_str(style.after_comma);
                }
                break_line(depth + 1, out);
                text(name, style, out);
                out.push(':');
                out.push_str(style.after_colon);
                write(value, style, depth + 1, out);
            }
            break_line(depth, out);
            out.push('}');
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for (index, value) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                    out.push_str(style.after_comma);
                }
                break_line(depth + 1, out);
                write(value, style, depth + 1, out);
            }
            break_line(depth, out);
            out.push(']');
        }
        Value::String(string) => match string.strip_prefix(NUMBER) {
            Some(written) => out.push_str(&number(written, style.numbers)),
            None => text(string, style, out),
        },
        other => out.push_str(&other.to_string()),
    }
}

fn text(string: &str, style: Style, out: &mut String) {
    // serde_json escapes what JSON requires; the options add what some libraries also escape.
    for character in Value::from(string).to_string().chars() {
        match character {
            '/' if style.slash => out.push_str("\\/"),
            character if style.ascii && !character.is_ascii() => {
                let mut buffer = [0; 2];
                for unit in character.encode_utf16(&mut buffer) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            character => out.push(character),
        }
    }
}
