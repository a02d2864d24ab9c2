//! BODY_SHA256: of which bytes it is.

use partner_api_signing::body_sha256;
use serde_json::Value;

use super::lines::{is_of_nothing, notation};

const AGAIN: &str =
    "the body was serialised again after it was signed, or before: write the JSON once, hash that text, send that text";

/// Why the digest that was signed is not that of what was sent.
pub(super) fn cause(ours: &str, theirs: &str, sent: &[u8]) -> String {
    if let Some(notation) = notation(ours, theirs) {
        return format!("the digest is in {notation}: write it in lower-case hex");
    }
    if theirs.is_empty() {
        return "it is empty: without a body it is the SHA-256 of nothing, e3b0c442...".to_owned();
    }
    if is_of_nothing(theirs) {
        return "the digest is of nothing, and a body was sent: hash the body's bytes (a stream that was read before is empty)"
            .to_owned();
    }
    if std::str::from_utf8(sent).is_ok_and(|text| text == theirs) {
        return "the body itself was signed: its SHA-256 is, in lower-case hex".to_owned();
    }
    if theirs.len() != 64 || !theirs.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return "it is no SHA-256 in hex: 64 digits".to_owned();
    }
    if is_of_nothing(ours) {
        for nothing in ["{}", "null", "\"\"", "[]", "undefined", "None"] {
            if body_sha256(nothing.as_bytes()).eq_ignore_ascii_case(theirs) {
                return format!("the digest is of `{nothing}`, and no body was sent: hash the empty byte string");
            }
        }
        return "a body was signed and none was sent".to_owned();
    }
    for (bytes, what) in variants(sent) {
        if body_sha256(&bytes).eq_ignore_ascii_case(theirs) {
            return what;
        }
    }
    format!("the digest is of other bytes than were sent. Most often {AGAIN}")
}

/// What a body may have been when it was hashed, each with what was done to it.
fn variants(sent: &[u8]) -> Vec<(Vec<u8>, String)> {
    let mut variants = Vec::new();
    let mut add = |bytes: Vec<u8>, what: &str| variants.push((bytes, what.to_owned()));
    add(
        [sent, b"\n"].concat(),
        "a line feed at the end was hashed, and not sent",
    );
    add([sent, b"\r\n"].concat(), "a CR LF at the end was hashed, and not sent");
    add(
        [b"\xef\xbb\xbf", sent].concat(),
        "a byte-order mark was hashed, and not sent",
    );
    if let Some(rest) = sent.strip_prefix(b"\xef\xbb\xbf") {
        add(rest.to_vec(), "a byte-order mark was sent, and not hashed");
    }
    add(
        sent.trim_ascii().to_vec(),
        "white space around the body was sent, and not hashed",
    );
    if let Ok(text) = std::str::from_utf8(sent) {
        let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        add(
            utf16,
            "the text was hashed in UTF-16, and sent in UTF-8: hash the bytes that are sent",
        );
        add(
            text.replace("\r\n", "\n").into_bytes(),
            "line ends were changed to CR LF after hashing",
        );
        add(
            text.replace('\n', "\r\n").into_bytes(),
            "line ends were changed from CR LF after hashing",
        );
        if let Ok(latin) = text
            .chars()
            .map(|character| u8::try_from(u32::from(character)))
            .collect()
        {
            add(
                latin,
                "the text was hashed in Latin-1, and sent in UTF-8: hash the bytes that are sent",
            );
        }
    }
    if let Ok(value) = serde_json::from_slice::<Value>(sent) {
        for (style, name) in STYLES {
            for (value, order) in [(&value, ""), (&sorted(&value), ", its members sorted")] {
                for (ascii, escapes) in [(false, ""), (true, ", other letters than ASCII escaped")] {
                    for (slash, slashes) in [(false, ""), (true, ", slashes escaped")] {
                        let mut text = String::new();
                        write(value, style, ascii, slash, 0, &mut text);
                        let what = format!("{AGAIN}. What was hashed is {name}{order}{escapes}{slashes}");
                        variants.push((text.into_bytes(), what));
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
}

const STYLES: [(Style, &str); 5] = [
    (
        Style {
            after_comma: "",
            after_colon: "",
            indent: "",
        },
        "compact JSON (JavaScript's JSON.stringify, PHP's json_encode)",
    ),
    (
        Style {
            after_comma: " ",
            after_colon: " ",
            indent: "",
        },
        "JSON with a space after commas and colons (Python's json.dumps)",
    ),
    (
        Style {
            after_comma: "",
            after_colon: " ",
            indent: "  ",
        },
        "JSON on several lines, indented by two",
    ),
    (
        Style {
            after_comma: "",
            after_colon: " ",
            indent: "    ",
        },
        "JSON on several lines, indented by four",
    ),
    (
        Style {
            after_comma: "",
            after_colon: " ",
            indent: "\t",
        },
        "JSON on several lines, indented by tabs",
    ),
];

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

fn write(value: &Value, style: Style, ascii: bool, slash: bool, depth: usize, out: &mut String) {
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
                text(name, ascii, slash, out);
                out.push(':');
                out.push_str(style.after_colon);
                write(value, style, ascii, slash, depth + 1, out);
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
                write(value, style, ascii, slash, depth + 1, out);
            }
            break_line(depth, out);
            out.push(']');
        }
        Value::String(string) => text(string, ascii, slash, out),
        other => out.push_str(&other.to_string()),
    }
}

fn text(string: &str, ascii: bool, slash: bool, out: &mut String) {
    // The library escapes what must be; what some libraries escape besides comes on top.
    for character in Value::from(string).to_string().chars() {
        match character {
            '/' if slash => out.push_str("\\/"),
            character if ascii && !character.is_ascii() => {
                let mut buffer = [0; 2];
                for unit in character.encode_utf16(&mut buffer) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            character => out.push(character),
        }
    }
}
