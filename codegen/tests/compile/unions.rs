//! Alternatives are told apart as serde tells them apart, and as the document says which values there are.

use serde_json::{Value, json};

use crate::behaviour::{query, read, refused};
use crate::positive::{recursion, unions};

use unions::server::types::*;

/// A value, and what is wrong with it in the member `name`.
fn member(name: &str, value: Value) -> Result<Value, String> {
    read::<Unions>(json!({ name: value })).map(|read| serde_json::to_value(read).unwrap()[name].clone())
}

/// The values come back as they were sent.
fn kept(name: &str, values: &[Value]) {
    for value in values {
        assert_eq!(member(name, value.clone()).as_ref(), Ok(value), "{name}");
    }
}

fn problem(name: &str, value: Value) -> String {
    member(name, value).map_or_else(|problem| problem, |value| format!("accepted: {value}"))
}

#[test]
fn by_a_member_among_others() {
    let values = [
        json!({ "type": "circle", "radius": 1.5 }),
        json!({ "type": "nothing" }),
        json!({ "width": 2, "type": "named-square" }),
    ];
    kept("internal", &values);
    assert!(matches!(
        read::<Internal>(values[2].clone()),
        Ok(Internal::NamedSquare(InternalNamedSquare { width: 2, .. }))
    ));
    assert_eq!(
        problem("internal", json!({ "type": "circle", "radius": -1 })),
        "radius: must be at least 0, is -1"
    );
    assert_eq!(
        problem("internal", json!({ "type": "star" })),
        "type: must be one of circle, nothing, named-square, is \"star\""
    );
    assert_eq!(problem("internal", json!({ "radius": 1 })), "must have the member type");
    kept(
        "inline",
        &[json!({ "by": "name", "name": "x" }), json!({ "by": "nobody" })],
    );
    assert_eq!(problem("inline", json!({ "by": "name" })), "must have the member name");
}

#[test]
fn by_a_member_beside_the_content() {
    kept(
        "adjacent",
        &[
            json!({ "kind": "count", "value": 255 }),
            json!({ "kind": "squares", "value": [{ "width": 1 }] }),
            json!({ "kind": "none" }),
        ],
    );
    assert_eq!(
        problem("adjacent", json!({ "value": 256, "kind": "count" })),
        "value: must be a whole number, is 256"
    );
    assert_eq!(
        problem(
            "adjacent",
            json!({ "kind": "squares", "value": [{ "width": 1 }, { "width": 0 }] })
        ),
        "value[1].width: must be at least 1, is 0"
    );
    assert_eq!(
        problem("adjacent", json!({ "kind": "count" })),
        "must have the member value"
    );
}

#[test]
fn by_the_name_of_the_only_member() {
    kept(
        "external",
        &[
            json!("off"),
            json!("unknown"),
            json!({ "level": -3 }),
            json!({ "square": { "width": 4 } }),
            json!({ "range": { "from": 1, "to": 2 } }),
            json!({ "perhaps": null }),
            json!({ "perhaps": "x" }),
        ],
    );
    assert_eq!(read::<External>(json!("off")), Ok(External::Off));
    let members = "level, square, range, perhaps";
    for (value, message) in [
        (json!("on"), "must be one of off, unknown, is \"on\"".to_string()),
        (json!({ "level": 11 }), "must be at most 10, is 11".into()),
        (json!({ "perhaps": "" }), "must not be empty".into()),
        (
            json!({ "off": null }),
            format!("the name of the member must be one of {members}, is \"off\""),
        ),
        (
            json!({}),
            "must have exactly one member: level or square or range or perhaps".into(),
        ),
        (
            json!({ "level": 1, "square": { "width": 1 } }),
            "must have exactly one member: level or square or range or perhaps".into(),
        ),
        (
            json!({ "range": [1, 2] }),
            "invalid type: sequence, expected struct ExternalRange".into(),
        ),
        (
            json!(3),
            "invalid type: integer `3`, expected a string or an object with one member".into(),
        ),
    ] {
        assert_eq!(problem("external", value), message);
    }
}

#[test]
fn by_what_they_are() {
    kept(
        "untagged",
        &[json!(true), json!(7), json!({ "width": 1 }), json!(["a", "b"])],
    );
    assert_eq!(read::<Untagged>(json!(7)), Ok(Untagged::Integer(7)));
    assert_eq!(
        problem("untagged", json!(-1)),
        "must be one of boolean, integer, Square, array (as boolean: must be true or false, is a number; as \
         integer: must be at least 0, is -1; as Square: must be an object, is a number; as array: must be an array, is a \
         number)"
    );
    let id = "01974d1a-7c00-7b21-9a51-6f0c2d3e4f50";
    kept("host", &[json!(id), json!("web-1")]);
    assert_eq!(
        read::<NameOrId>(json!("web-1")),
        Ok(NameOrId::Name("web-1".to_string().into()))
    );
    assert!(matches!(read::<NameOrId>(json!(id)), Ok(NameOrId::Id(_))));
    // Neither an id nor, by the look ahead, a name.
    assert!(refused::<NameOrId>(json!(&id[..30])).starts_with("must be one of id, name (as id: "));
}

#[test]
fn parameters_may_have_alternatives_too() {
    let id = "01974d1a-7c00-7b21-9a51-6f0c2d3e4f50";
    let host = |text: &str| query::<PutHostPath>(&format!("host={text}")).map(|path| path.host);
    assert!(matches!(host(id), Ok(NameOrId::Id(_))));
    assert_eq!(host("web-1"), Ok(NameOrId::Name("web-1".to_string().into())));
    assert_eq!(
        host("Web").unwrap_err(),
        "host: must be one of id, name (as id: must be a UUID, is \"Web\"; as name: must match \
         ^(?![0-9a-fA-F]{8}-[0-9a-fA-F]{4}-)[a-z][a-z0-9-]*$)"
    );
    let size = |text: &str| query::<PutHostQuery>(&format!("size={text}")).map(|query| query.size);
    assert_eq!(size("3"), Ok(Some(PutHostSize::Integer(3))));
    assert_eq!(size("all"), Ok(Some(PutHostSize::String(PutHostSizeString::All))));
    assert_eq!(
        size("0").unwrap_err(),
        "size: must be one of integer, string (as integer: must be a whole number at least 1, is \"0\"; as string: must \
         be one of all, is \"0\")"
    );
    assert_eq!(query::<PutHostQuery>("").unwrap().project, None);
}

#[test]
fn what_holds_itself_is_read_and_written() {
    use recursion::server::types::{Expression, Tree};
    let tree = json!({
        "children": [{ "children": [] }],
        "list": { "value": 1, "next": { "value": 2, "before": { "value": 1 } } },
        "expression": { "op": "plus", "left": { "op": "number", "value": 1.0 }, "right": { "op": "minus", "of": { "op": "number", "value": 2.0 } } },
        "link": { "to": { "to": "end" } },
    });
    let read_tree: Tree = read(tree.clone()).unwrap();
    assert_eq!(read_tree.list.as_ref().unwrap().next.as_ref().unwrap().value, 2);
    assert_eq!(serde_json::to_value(&read_tree).unwrap(), tree);
    assert_eq!(
        refused::<Expression>(json!({ "op": "minus", "of": { "op": "plus", "left": { "op": "number", "value": 1 } } })),
        "of: must have the member right"
    );
    assert!(read::<Tree>(json!({ "children": [], "list": { "value": 1, "before": null } })).is_ok());
    assert!(read::<Tree>(json!({ "children": [], "list": { "value": 1, "next": null } })).is_ok());
}
