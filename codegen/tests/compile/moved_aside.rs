//! Rules hold where generated code had to move aside, and where several places share one schema without a name.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::positive::{all_of_inline, helpers, names_of_generated_code, operation_types, shared_inline};

fn refused<T: DeserializeOwned>(value: Value) -> String {
    match serde_json::from_str::<T>(&value.to_string()) {
        Ok(_) => "accepted".into(),
        Err(error) => error
            .to_string()
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_string(),
    }
}

#[test]
fn schemas_called_like_what_generated_code_uses_keep_their_rules() {
    use names_of_generated_code::server::types::{A, Names, None, Pattern, Result, Some, Vec, WebsocketUpgrade};
    assert_eq!(refused::<Result>(json!({ "name": "a" })), "accepted");
    assert_ne!(refused::<Result>(json!({ "name": "" })), "accepted");
    assert_ne!(refused::<Some>(json!("x")), "accepted");
    assert_eq!(refused::<Vec>(json!(["s", "s"])), "accepted");
    assert_ne!(refused::<Vec>(json!(["s", "s", "s"])), "accepted");
    assert_eq!(refused::<A>(json!({ "vec": ["s"] })), "accepted");
    assert_eq!(refused::<A>(json!("none")), "accepted");
    assert_ne!(refused::<A>(json!({ "vec": ["x"] })), "accepted");
    assert_ne!(refused::<A>(json!({ "ok": "" })), "accepted");
    assert_eq!(refused::<Pattern>(json!([1])), "accepted");
    assert_eq!(refused::<Pattern>(json!("p")), "accepted");
    assert_eq!(refused::<Pattern>(json!({ "name": "a" })), "accepted");
    for wrong in [json!([0]), json!("q"), json!({ "name": "" })] {
        assert_ne!(refused::<Pattern>(wrong.clone()), "accepted", "{wrong}");
    }
    assert_eq!(refused::<WebsocketUpgrade>(json!(null)), "accepted");
    assert_ne!(refused::<WebsocketUpgrade>(json!("abcd")), "accepted");
    assert_eq!(None::parse("none"), Option::Some(None::None));
    assert_eq!(
        refused::<Names>(json!({ "texts": ["12345"], "counts": { "a": 9 }, "none_": "vec" })),
        "accepted"
    );
    for wrong in [
        json!({ "texts": ["123456"] }),
        json!({ "counts": { "a": 10 } }),
        json!({ "counts": {} }),
        json!({ "none_": "other" }),
        json!({ "option": [{ "name": "" }] }),
        json!({ "box_": { "kind": "Other" } }),
    ] {
        assert_ne!(refused::<Names>(wrong.clone()), "accepted", "{wrong}");
    }
}

#[test]
fn schemas_called_like_the_types_of_an_operation_are_others_than_those() {
    use operation_types::server::types::{
        ListPetsAgainForm, ListPetsAgainOperationForm, ListPetsHeaders, ListPetsOperationPath, ListPetsPath,
        ListPetsQuery, ListPetsResponseOwner,
    };
    let form = ListPetsAgainOperationForm { name: "a".into() };
    assert_eq!(form.name, "a");
    let named = ListPetsAgainForm::ListPetsHeaders(ListPetsHeaders { name: None });
    assert_eq!(serde_json::to_value(named).unwrap(), json!({}));
    let path = ListPetsOperationPath { id: 1 };
    assert_eq!(path.id, 1);
    assert_eq!(refused::<ListPetsPath>(json!({ "name": "a" })), "accepted");
    assert_ne!(refused::<ListPetsPath>(json!({ "name": "" })), "accepted");
    assert_eq!(ListPetsQuery::VALUES, ["all", "some", "none"]);
    assert_eq!(ListPetsResponseOwner::from("abc".to_string()).0, "abc");
}

#[test]
fn items_within_items_and_members_of_like_names_have_rules_of_their_own() {
    use helpers::server::types::Pet;
    assert_eq!(
        refused::<Pet>(json!({ "tags": [["a"]], "tags_item": ["ab"], "gen": 1 })),
        "accepted"
    );
    assert_ne!(refused::<Pet>(json!({ "tags": [[""]] })), "accepted");
    assert_ne!(refused::<Pet>(json!({ "tags_item": ["a"] })), "accepted");
    assert_ne!(refused::<Pet>(json!({ "gen": 0 })), "accepted");
}

#[test]
fn one_schema_alone_in_an_all_of_keeps_its_rules_and_one_within_itself_ends() {
    use all_of_inline::server::types::Tree;
    let tree = |member: &str, value: Value| refused::<Tree>(json!({ "children": [{ member: value }] }));
    assert_eq!(tree("size", json!(1)), "accepted");
    assert_eq!(tree("size", json!(null)), "accepted");
    assert_ne!(tree("size", json!(0)), "accepted");
    assert_eq!(tree("sizes", json!([1, 2])), "accepted");
    assert_ne!(tree("sizes", json!([1, 2, 3])), "accepted");
    assert_ne!(tree("sizes", json!([0])), "accepted");
    assert_ne!(tree("id", json!("no uuid")), "accepted");
    assert_eq!(tree("children", json!([{ "label": "leaf" }])), "accepted");
    assert_ne!(tree("children", json!([{ "label": 1 }])), "accepted");
}

#[test]
fn what_several_operations_share_is_one_type_with_its_rules() {
    use shared_inline::server::types::{CreateABody, ListASort, ListBKind};
    assert_eq!(refused::<CreateABody>(json!({ "name": "a" })), "accepted");
    assert_ne!(refused::<CreateABody>(json!({ "name": "" })), "accepted");
    assert_eq!(ListASort::VALUES, ["up", "down"]);
    assert_eq!(ListBKind::VALUES, ["cat", "dog"]);
}
