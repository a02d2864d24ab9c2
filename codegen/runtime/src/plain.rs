//! Texts for error messages: translations of serde's messages, so that clients need not understand terms such as `expected i32`,
//! and quotations of what a client sent.

/// Translates a message of serde. Other messages are returned unchanged.
pub fn message(text: &str) -> String {
    if let Some(rest) = text.strip_prefix("missing field ") {
        return format!("must have the member {}", unquoted(rest));
    }
    if let Some(rest) = text.strip_prefix("duplicate field ") {
        return format!("must have the member {} only once", unquoted(rest));
    }
    for (unknown, what) in [("unknown field ", "member"), ("unknown variant ", "value")] {
        if let Some(rest) = text.strip_prefix(unknown) {
            let (name, expected) = rest.split_once(", ").unwrap_or((rest, ""));
            let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
            return match known.is_empty() {
                true => format!("must not have the {what} {}", unquoted(name)),
                false => format!(
                    "must not have the {what} {}; known are {}",
                    unquoted(name),
                    known.join(", ")
                ),
            };
        }
    }
    for wrong in ["invalid type: ", "invalid value: ", "invalid length "] {
        if let Some((is, expected)) = text
            .strip_prefix(wrong)
            .and_then(|rest| rest.rsplit_once(", expected "))
        {
            return match wrong {
                "invalid length " => format!("must have the length of {}, has {is}", wanted(expected)),
                _ => format!("must be {}, is {}", wanted(expected), kind(is, expected)),
            };
        }
    }
    text.to_string()
}

fn unquoted(name: &str) -> &str {
    name.trim_matches('`')
}

/// A description of the actual value: for a number instead of another number, the number itself.
fn kind(is: &str, expected: &str) -> String {
    let first = is.split(' ').next().unwrap_or_default();
    if let ("integer" | "floating", true) = (first, wanted(expected).ends_with("number")) {
        return is.split('`').nth(1).unwrap_or("a number").to_string();
    }
    match first {
        "null" | "unit" | "Option" => "null",
        "boolean" => "a boolean",
        "integer" | "floating" | "number" => "a number",
        "string" | "character" => "a string",
        "sequence" => "an array",
        "map" => "an object",
        _ => return is.to_string(),
    }
    .to_string()
}

/// A description of the expected value.
fn wanted(expected: &str) -> String {
    match expected {
        "unit" => "null",
        "a boolean" => "true or false",
        "f32" | "f64" | "a JSON number" => "a number",
        "i8" | "i16" | "i32" | "i64" | "i128" | "u8" | "u16" | "u32" | "u64" | "u128" => "a whole number",
        "a sequence" => "an array",
        "a map" => "an object",
        other if other.starts_with("struct ") => "an object",
        other => other,
    }
    .to_string()
}

/// The text of a JSON error without line and column.
pub(crate) fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&position) {
        Some(reason) => reason.to_string(),
        None => text,
    }
}

/// A shortened, single-line form of a client's text, for use in messages.
pub(crate) fn shown(text: &str) -> String {
    const MAX_LENGTH: usize = 64;
    let mut quoted: String = text.chars().take(MAX_LENGTH).collect();
    if text.chars().count() > MAX_LENGTH {
        quoted.push('…');
    }
    format!("{quoted:?}")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::message;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its debug output is used")]
    struct Sample {
        count: u8,
        flag: bool,
        list: Vec<f64>,
        of: Kind,
        nothing: (),
        inner: Option<Box<Sample>>,
    }

    #[derive(Debug, Deserialize)]
    enum Kind {
        A,
        B,
    }

    #[test]
    fn messages_of_serde_are_translated() {
        let whole = |changed: &str| {
            let text = [
                r#""count":1"#,
                r#""flag":true"#,
                r#""list":[]"#,
                r#""of":"A""#,
                r#""nothing":null"#,
            ];
            let name = changed.split(':').next().unwrap_or_default();
            let others = text.into_iter().filter(|member| !member.starts_with(name));
            format!(
                "{{{}}}",
                others
                    .chain([changed])
                    .filter(|it| !it.ends_with(':'))
                    .collect::<Vec<_>>()
                    .join(",")
            )
        };
        let table = [
            (r#""count":"x""#, "must be a whole number, is a string"),
            (r#""count":1.5"#, "must be a whole number, is 1.5"),
            (r#""count":300"#, "must be a whole number, is 300"),
            (r#""count":null"#, "must be a whole number, is null"),
            (r#""flag":1"#, "must be true or false, is a number"),
            (r#""list":{}"#, "must be an array, is an object"),
            (r#""list":["x"]"#, "must be a number, is a string"),
            (r#""of":"C""#, "must not have the value C; known are A, B"),
            (r#""nothing":0"#, "must be null, is a number"),
            (r#""inner":7"#, "must be an object, is a number"),
            (
                r#""other":7"#,
                "must not have the member other; known are count, flag, list, of, nothing, inner",
            ),
            (r#""flag":"#, "must have the member flag"),
            (r#""inner":null,"inner":null"#, "must have the member inner only once"),
        ];
        for (changed, expected) in table {
            let error = serde_json::from_str::<Sample>(&whole(changed)).unwrap_err();
            let text = super::without_position(&error);
            assert_eq!(message(&text), expected, "{text}");
        }
        assert_eq!(message("must be a number"), "must be a number");
    }
}
