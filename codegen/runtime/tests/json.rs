//! Parsing of JSON documents and the errors in them. The tests share the types at the top, so they are in one file.

use codegen_runtime::json::{self, MAX_DEPTH};
use codegen_runtime::{
    ExactNumber, MapRules, Pattern, StringRules, body, read_object, schema, validation, write_object,
};
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Deserialize, Serialize, PartialEq)]
#[serde(remote = "Self", deny_unknown_fields)]
struct Outer {
    inner: Inner,
    #[serde(default)]
    list: Vec<Inner>,
    #[serde(default, deserialize_with = "optional")]
    perhaps: Option<Box<Outer>>,
}
read_object!(Outer);
write_object!(Outer);

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(remote = "Self")]
struct Inner {
    a: i32,
    #[serde(default, rename = "shortText", deserialize_with = "short_text")]
    short_text: Option<String>,
    #[serde(default, deserialize_with = "numbers")]
    numbers: BTreeMap<String, ExactNumber>,
}
read_object!(Inner);

impl Serialize for Inner {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i32(self.a)
    }
}

fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<Outer>>, D::Error> {
    body::optional(deserializer)
}

struct Short(String);

impl<'de> Deserialize<'de> for Short {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        static PATTERN: Pattern = Pattern::new("^[^\\x00-\\x1F]*$");
        let rules = StringRules {
            min_length: Some(1),
            max_length: Some(4),
            pattern: Some(&PATTERN),
            ..StringRules::NONE
        };
        body::string(deserializer, rules).map(Short)
    }
}

fn short_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    body::optional::<_, Short>(deserializer).map(|value| value.map(|value| value.0))
}

fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, ExactNumber>, D::Error> {
    static PATTERN: Pattern = Pattern::new("^[A-Z][A-Z_]*$");
    let rules = MapRules {
        min_properties: Some(1),
        max_properties: Some(3),
        key_pattern: Some(&PATTERN),
    };
    body::exact_number_map(deserializer, rules, 5)
}

impl JsonSchema for Outer {
    fn schema_name() -> String {
        "Outer".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schema::register::<Inner>(generator);
        schema::embedded(
            r##"{"type":"object","required":["inner"],"additionalProperties":false,"properties":{
                "inner":{"$ref":"#/components/schemas/Inner"},
                "list":{"type":"array","items":{"$ref":"#/components/schemas/Inner"}},
                "perhaps":{"$ref":"#/components/schemas/Outer"}}}"##,
        )
    }
}

impl JsonSchema for Inner {
    fn schema_name() -> String {
        "Inner".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema::embedded(
            r##"{"type":"object","required":["a"],"properties":{
                "a":{"type":"integer","format":"int32"},
                "shortText":{"type":"string","minLength":1,"maxLength":4,"pattern":"^[^\\x00-\\x1F]*$"},
                "numbers":{"type":"object","minProperties":1,"maxProperties":3,"x-key-pattern":"^[A-Z][A-Z_]*$",
                    "additionalProperties":{"type":"number","format":"decimal","x-max-significant-digits":5},
                    "example":{"A":2.85,"B":1}}}}"##,
        )
    }
}

/// The errors with their places. A document that is accepted gives one line with its value.
fn errors(document: impl AsRef<[u8]>) -> Vec<String> {
    match json::read::<Outer>(document.as_ref()) {
        Ok(value) => vec![format!("accepted: {value:?}")],
        Err(errors) => errors
            .iter()
            .map(|error| format!("{} → {error}", error.field))
            .collect(),
    }
}

fn accepted(document: impl AsRef<[u8]>) -> bool {
    json::read::<Outer>(document.as_ref()).is_ok()
}

#[test]
fn only_white_space_may_follow_a_document() {
    let document = r#"{"inner":{"a":1}}"#;
    assert!(accepted(document));
    assert!(accepted(format!(" {document}\r\n\t ")));
    for after in [document, "x", "\0", "null"] {
        assert_eq!(
            errors(format!("{document}{after}")),
            [" → body: must be one JSON document; more text follows it (line 1, column 18)"],
            "{after:?}"
        );
    }
    for after in ["]", ",", "}"] {
        assert_eq!(
            errors(format!("{document}\n\n {after}")),
            [" → body: has an extra bracket or comma after its end (line 3, column 2)"]
        );
    }
}

#[test]
fn invalid_utf_8_is_rejected_even_in_ignored_members() {
    let message = |place: &str| format!("is not UTF-8 (ISO-8859-9 or Windows-1254?); send UTF-8 ({place})");
    assert_eq!(
        errors(b"{\"inner\":{\"a\":1,\"unknown\":\"\xff\"}}"),
        [format!(
            "/inner/unknown → inner.unknown: {}",
            message("line 1, column 28")
        )]
    );
    assert_eq!(
        errors(b"{\"inner\":\n{\"a\":1}}\xff"),
        [format!(" → body: {}", message("line 2, column 9"))]
    );
    for utf16 in [b"\xff\xfe{\0}\0".as_slice(), b"{\0}\0", b"\0{\0}"] {
        assert_eq!(errors(utf16), [" → body: is UTF-16; send UTF-8"]);
    }
    assert_eq!(
        errors(b"\xef\xbb\xbf{\"inner\":{\"a\":1}}"),
        [" → body: begins with a byte-order mark; send UTF-8 without it (line 1, column 1)"]
    );
}

#[test]
fn syntax_errors_have_a_place_and_a_remedy() {
    let table = [
        ("", "body: is empty; send a JSON object"),
        (" \n ", "body: is empty; send a JSON object"),
        ("inner=1", "body: must be a JSON object (line 1, column 1)"),
        (
            "<a/>",
            "body: must be a JSON object, seems to be XML or HTML (line 1, column 1)",
        ),
        (r#"{"inner":"#, "inner: ends unexpectedly (line 1, column 10)"),
        (r#"{"inner":{"a":1"#, "inner.a: ends unexpectedly (line 1, column 16)"),
        (r#"{"inner":{"a"#, "inner: ends unexpectedly (line 1, column 13)"),
        (
            r#"{"inner":{"a":2,85}}"#,
            "inner.a: use a dot for decimals (2.85); a comma ends the value (line 1, column 17)",
        ),
        (
            r#"{"inner":{"a":-2, 5e1}}"#,
            "inner.a: use a dot for decimals (-2.5); a comma ends the value (line 1, column 19)",
        ),
        (
            r#"{"inner":{"a":NaN}}"#,
            "inner.a: NaN is not JSON; omit the member if there is no value (line 1, column 15)",
        ),
        (
            r#"{"inner":{"a":-Infinity}}"#,
            "inner.a: -Infinity is not JSON; omit the member if there is no value (line 1, column 15)",
        ),
        (
            r#"{"inner":{"a":True}}"#,
            "inner.a: True is not JSON; write true (line 1, column 15)",
        ),
        (
            r#"{"inner":{"a":abc}}"#,
            "inner.a: text must be in double quotes (line 1, column 15)",
        ),
        (
            r#"{'inner':1}"#,
            "body: a name must be in double quotes, not in single ones (line 1, column 2)",
        ),
        (
            r#"{inner:1}"#,
            "body: a member's name must follow here, in double quotes (line 1, column 2)",
        ),
        (
            r#"{"inner":'1'}"#,
            "inner: text must be in double quotes, not in single ones (line 1, column 10)",
        ),
        (
            r#"{"inner":+1}"#,
            "inner: a number must not have a plus sign (line 1, column 10)",
        ),
        (
            r#"{"inner":.5}"#,
            "inner: a number must begin with a digit: 0.5, not .5 (line 1, column 10)",
        ),
        (
            r#"{"inner":5.}"#,
            "inner: a digit must follow the dot of a number (line 1, column 10)",
        ),
        (
            r#"{"inner":007}"#,
            "inner: a number must not have leading zeros (line 1, column 10)",
        ),
        (
            r#"{"inner":0x1F}"#,
            "inner: is neither a number nor text; put text in double quotes (line 1, column 10)",
        ),
        (r#"{"inner":}"#, "inner: the value is missing (line 1, column 10)"),
        (
            r#"{"inner":1,}"#,
            "body: no comma is allowed before the closing brace (line 1, column 12)",
        ),
        (
            r#"{"list":[1,]}"#,
            "list[1]: no comma is allowed before the closing bracket (line 1, column 12)",
        ),
        (
            r#"{"list":[1 2]}"#,
            "list[0]: a comma or a closing bracket must follow here (line 1, column 12)",
        ),
        (
            r#"{"inner":1 "a":2}"#,
            "inner: a comma or a closing brace must follow here (line 1, column 12)",
        ),
        (
            r#"{"inner" 1}"#,
            "inner: a colon must follow the name (line 1, column 10)",
        ),
        (
            r#"{"inner":"C:\test\x"}"#,
            "inner: \\x is not a JSON escape; write a backslash as \\\\ (line 1, column 18)",
        ),
        (
            r#"{"inner":"\u12"}"#,
            "inner: \\u must be followed by four hexadecimal digits, and surrogates come in pairs (line 1, column 11)",
        ),
        (
            "{\"inner\":\"a\nb\"}",
            "inner: a control character (U+000A) in text must be written as \\u000a (line 1, column 12)",
        ),
        (
            r#"{"inner":1 // one
}"#,
            "inner: a comma or a closing brace must follow here (line 1, column 12)",
        ),
        (r#"// one"#, "body: JSON has no comments (line 1, column 1)"),
    ];
    for (document, message) in table {
        let errors = errors(document);
        let errors: Vec<&str> = errors
            .iter()
            .filter_map(|error| Some(error.split_once(" → ")?.1))
            .collect();
        assert_eq!(errors, [message], "{document}");
    }
}

#[test]
fn all_errors_in_a_body_are_reported_at_once() {
    assert_eq!(
        errors(
            r#"{"inner":{"shortText":"","numbers":{"a":1,"B":"2,85","C":1.23456,"C":1,"D":null}},"list":[{"a":"1"},{"a":1.5},[]],"perhap":{},"inner":{}}"#
        ),
        [
            "/inner/shortText → inner.shortText: must not be empty",
            "/inner/numbers → inner.numbers: must have 1 to 3 members, has 5",
            "/inner/numbers/a → inner.numbers.a: the name \"a\" must match ^[A-Z][A-Z_]*$; write A",
            "/inner/numbers/B → inner.numbers.B: must be a number, is a string; send 2.85 without quotes, with a dot",
            "/inner/numbers/C → inner.numbers.C: must have at most 5 significant digits, has 6",
            "/inner/numbers/C → inner.numbers.C: occurs twice; send it once",
            "/inner/numbers/D → inner.numbers.D: must not be null; omit the member if there is no value",
            "/inner/a → inner.a: is missing",
            "/list/0/a → list[0].a: must be a whole number, is a string; send 1 without quotes",
            "/list/1/a → list[1].a: must be a whole number, is 1.5",
            "/list/2 → list[2]: must be a JSON object, is an array",
            "/inner → inner: occurs twice; send it once",
            "/perhap → perhap: is unknown; did you mean perhaps?",
        ]
    );
}

/// KEY-10
#[test]
fn only_the_first_error_of_a_large_document_is_reported() {
    let filled = |size: usize| format!(r#"{{"inner":{{"a":"x","shortText":""}}{}}}"#, " ".repeat(size));
    assert_eq!(errors(filled(0)).len(), 2);
    let first = "/inner/a → inner.a: must be a whole number, is a string";
    assert_eq!(errors(filled(json::MAX_DIAGNOSED)), [first]);
    // Text after the first error is not read.
    let broken = format!("{}]", filled(json::MAX_DIAGNOSED));
    assert_eq!(errors(&broken), [first]);
    // The path of an error after much text is not looked for.
    for (before, place) in [
        (" ".repeat(json::MAX_DIAGNOSED), "(line 1, column "),
        ("\n".repeat(json::MAX_DIAGNOSED), "(line 65537, column "),
    ] {
        let late = errors(format!(r#"{before}{{"inner":{{"a":"x","shortText":""}}}}"#));
        assert!(
            late.len() == 1
                && late[0].contains("body: must be a whole number, is a string (")
                && late[0].contains(place),
            "{late:?}"
        );
    }
    let unclosed = errors(format!("{{\"inner\":{{\"a\":1}}{}", " ".repeat(json::MAX_DIAGNOSED)));
    assert!(
        unclosed.len() == 1 && unclosed[0].contains("(line 1, column "),
        "{unclosed:?}"
    );
}

#[test]
fn misspelled_members_get_a_suggestion() {
    // A missing member gets a suggestion from the unknown ones. An unknown member alone is not an error.
    assert_eq!(
        errors(r#"{"inner":{"A":1,"short_text":"a","other":1}}"#),
        [
            "/inner/a → inner.a: is missing; you sent A: did you mean a?",
            "/inner/short_text → inner.short_text: is unknown and is ignored; did you mean shortText?",
        ]
    );
    assert!(accepted(r#"{"inner":{"a":1,"short_text":"a"}}"#));
    assert_eq!(
        errors(r#"{"inner":{"a":1},"nothing":1}"#),
        ["/nothing → nothing: is unknown; the members are inner, list, perhaps"]
    );
}

#[test]
fn values_of_the_wrong_kind_get_a_hint() {
    for (document, message) in [
        ("[]", "body: must be a JSON object, is an array"),
        ("null", "body: must not be null"),
        ("\"a\"", "body: must be a JSON object, is a string"),
        (r#"{"inner":null}"#, "inner: must not be null"),
        (
            r#"{"inner":{"a":1,"shortText":5}}"#,
            "inner.shortText: must be a string, is a number; put it in quotes",
        ),
        (
            r#"{"inner":{"a":1,"shortText":{}}}"#,
            "inner.shortText: must be a string, is an object",
        ),
        (
            r#"{"inner":{"a":1,"shortText":"a\nb"}}"#,
            "inner.shortText: must not contain '\\n' (U+000A)",
        ),
        (
            r#"{"inner":{"a":1,"numbers":[2.85]}}"#,
            "inner.numbers: must be a JSON object such as {\"A\": 2.85}, is an array",
        ),
        (
            r#"{"inner":{"a":1,"numbers":{}}}"#,
            "inner.numbers: must have 1 to 3 members, has 0",
        ),
        (
            r#"{"inner":{"a":1,"numbers":{"A":""}}}"#,
            "inner.numbers.A: must be a number, is an empty string; omit the member if there is no value",
        ),
        (
            r#"{"inner":{"a":1,"numbers":{"FREN_ÖN":1}}}"#,
            "inner.numbers.FREN_ÖN: the name \"FREN_ÖN\" must not contain 'Ö'; only A-Z and _ are allowed",
        ),
        (
            r#"{"inner":{"a":1,"numbers":{"A":1e400}}}"#,
            "inner.numbers.A: is too large or has too many decimals; send a plain number such as 2.85",
        ),
        (
            r#"{"inner":{"a":1,"shortText":"\ud800"}}"#,
            "inner.shortText: is not valid text: an escape \\uD800 to \\uDFFF must be part of a surrogate pair",
        ),
        (
            r#"{"inner":{"a":99999999999}}"#,
            "inner.a: must be a whole number of at most 32 bits, is 99999999999",
        ),
    ] {
        let errors = errors(document);
        let errors: Vec<&str> = errors
            .iter()
            .filter_map(|error| Some(error.split_once(" → ")?.1))
            .collect();
        assert_eq!(errors, [message], "{document}");
    }
}

#[test]
fn null_counts_as_an_omitted_member() {
    assert!(accepted(r#"{"inner":{"a":1,"shortText":null},"perhaps":null}"#));
    assert_eq!(
        errors(r#"{"inner":{"a":null}}"#),
        ["/inner/a → inner.a: must not be null"]
    );
}

#[test]
fn unusual_names_are_quoted_and_escaped() {
    let long = "x".repeat(1_000);
    let errors =
        json::read::<Outer>(format!(r#"{{"inner":{{"a":1,"numbers":{{"a/b~c d":1,"{long}":1}}}}}}"#).as_bytes());
    let errors = errors.unwrap_err();
    assert_eq!(errors.first().field, "/inner/numbers/a~1b~0c d");
    assert_eq!(errors.first().name, "inner.numbers.\"a/b~c d\"");
    let second = errors.iter().nth(1).unwrap();
    assert!(
        second.field.len() < 200 && second.name.len() < 200 && second.message.len() < 200,
        "{second:?}"
    );
}

#[test]
fn only_the_first_errors_are_reported() {
    for (count, is_cut) in [
        (validation::MAX_ERRORS, false),
        (validation::MAX_ERRORS + 1, true),
        (1_000, true),
    ] {
        let items = vec![r#"{"a":"x"}"#; count].join(",");
        let errors = json::read::<Outer>(format!(r#"{{"inner":{{"a":1}},"list":[{items}]}}"#).as_bytes()).unwrap_err();
        assert_eq!(
            (errors.iter().count(), errors.is_cut()),
            (validation::MAX_ERRORS, is_cut)
        );
    }
}

#[test]
fn structs_with_remote_functions_are_read_and_written() {
    let text = serde_json::to_string(&Outer {
        inner: Inner {
            a: 2,
            ..Inner::default()
        },
        list: vec![],
        perhaps: None,
    });
    assert_eq!(text.unwrap(), r#"{"inner":2,"list":[],"perhaps":null}"#);
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let nested = |depth: usize| {
        let mut text = r#"{"inner":{"a":1},"perhaps":"#.repeat(depth - 1);
        text += r#"{"inner":{"a":1}}"#;
        text + &"}".repeat(depth - 1)
    };
    // The innermost object adds a level.
    assert!(accepted(nested(MAX_DEPTH - 1)));
    let too_deep = "body: must not be nested deeper than 127 levels";
    for depth in [MAX_DEPTH, MAX_DEPTH + 1, 100_000] {
        assert!(errors(nested(depth))[0].contains(too_deep));
    }
    for open in ["[", "{\"a\":", "{\"inner\":{\"b\":["] {
        assert!(errors(open.repeat(100_000))[0].contains(too_deep));
    }
    // Brackets in strings do not count, even after escaped quotes.
    let text = format!(r#"{{"inner":{{"a":1,"text":"\"{}\\"}}}}"#, "[".repeat(1_000));
    assert!(accepted(text));
    // The limit does not apply to text that is not JSON.
    assert!(errors("[".repeat(MAX_DEPTH))[0].contains("ends unexpectedly"));
}
