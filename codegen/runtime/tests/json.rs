//! Documents are read whole, and only as what they are.

use codegen_runtime::json::{self, DEEPEST, JsonRefusal};
use codegen_runtime::{body, read_object, write_object};
use serde::{Deserialize, Serialize};

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
}
read_object!(Inner);

impl Serialize for Inner {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i32(self.a)
    }
}

fn optional<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Box<Outer>>, D::Error> {
    body::optional(deserializer, false)
}

fn read(bytes: &[u8]) -> Result<Outer, JsonRefusal> {
    json::read(bytes)
}

fn refused(bytes: &[u8]) -> String {
    read(bytes).map_or_else(|refusal| refusal.to_string(), |value| format!("accepted: {value:?}"))
}

#[test]
fn nothing_but_white_space_follows_the_document() {
    let document = r#"{"inner":{"a":1}}"#;
    assert!(read(document.as_bytes()).is_ok());
    assert!(read(format!(" {document}\r\n\t ").as_bytes()).is_ok());
    for after in [document, "x", "\0", "]", ",", "null"] {
        assert_eq!(
            refused(format!("{document}{after}").as_bytes()),
            "trailing characters at line 1 column 18",
            "{after:?}"
        );
    }
    assert_eq!(
        refused(format!("{document}\n\n x").as_bytes()),
        "trailing characters at line 3 column 2"
    );
}

#[test]
fn every_byte_is_utf_8_also_where_nobody_looks() {
    assert_eq!(
        refused(b"{\"inner\":{\"a\":1,\"unknown\":\"\xff\"}}"),
        "must be UTF-8 at line 1 column 28"
    );
    assert_eq!(
        refused(b"{\"inner\":\n{\"a\":1}}\xff"),
        "must be UTF-8 at line 2 column 9"
    );
    assert_eq!(
        refused(b"\xef\xbb\xbf{\"inner\":{\"a\":1}}"),
        "expected value at line 1 column 1"
    );
}

#[test]
fn an_array_is_no_object_wherever_one_stands() {
    for (document, message) in [
        (
            "[{\"a\":1}]",
            "invalid type: sequence, expected struct Outer at line 1 column 0",
        ),
        (
            "{\"inner\":[1]}",
            "inner: invalid type: sequence, expected struct Inner at line 1 column 9",
        ),
        (
            "{\"inner\":{\"a\":1},\"list\":[{\"a\":1},[2]]}",
            "list[1]: invalid type: sequence, expected struct Inner at line 1 column 33",
        ),
        (
            "{\"inner\":{\"a\":1},\"perhaps\":{\"inner\":[1]}}",
            "perhaps.inner: invalid type: sequence, expected struct Inner at line 1 column 36",
        ),
    ] {
        assert_eq!(refused(document.as_bytes()), message);
    }
}

#[test]
fn what_is_written_can_be_read_with_remote_functions() {
    let text = serde_json::to_string(&Outer {
        inner: Inner { a: 2 },
        list: vec![],
        perhaps: None,
    });
    assert_eq!(text.unwrap(), r#"{"inner":2,"list":[],"perhaps":null}"#);
}

#[test]
fn a_refusal_has_its_path_reason_and_place() {
    let refusal = read(b"{\"inner\":{\"a\":1},\n\"list\":[{\"a\":\"x\"}]}").unwrap_err();
    assert_eq!(
        refusal,
        JsonRefusal {
            path: "list[0].a".into(),
            reason: "invalid type: string \"x\", expected i32".into(),
            line: 2,
            column: 16,
        }
    );
    // What looks like a place is the client's.
    let refusal = read(br#"{"inner":{"a":" at line 7 column 8"}}"#).unwrap_err();
    assert_eq!(
        refusal.reason,
        "invalid type: string \" at line 7 column 8\", expected i32"
    );
    let refusal = read(b"").unwrap_err();
    assert_eq!(
        (refusal.path.as_str(), refusal.reason.as_str()),
        ("", "EOF while parsing a value")
    );
    assert_eq!(
        refused(br#"{"inner":{"a":1},"perhaps":null}"#),
        "perhaps: must not be null; leave the member out instead at line 1 column 32"
    );
}

#[test]
fn no_nesting_uses_up_the_stack() {
    let nested = |depth: usize| {
        let mut text = r#"{"inner":{"a":1},"perhaps":"#.repeat(depth - 1);
        text += r#"{"inner":{"a":1}}"#;
        text + &"}".repeat(depth - 1)
    };
    // The innermost object is one deeper.
    assert!(read(nested(DEEPEST - 1).as_bytes()).is_ok());
    for depth in [DEEPEST, DEEPEST + 1, 100_000] {
        let message = refused(nested(depth).as_bytes());
        assert!(
            message.starts_with("must not be nested deeper than 127 levels"),
            "{message}"
        );
    }
    for open in ["[", "{\"a\":", "{\"inner\":{\"b\":["] {
        let message = refused(open.repeat(100_000).as_bytes());
        assert!(
            message.starts_with("must not be nested deeper than 127 levels"),
            "{message}"
        );
    }
    // Brackets in texts are none, wherever a text seems to end.
    let text = format!(r#"{{"inner":{{"a":1,"text":"\"{}\\"}}}}"#, "[".repeat(1_000));
    assert!(read(text.as_bytes()).is_ok());
}
