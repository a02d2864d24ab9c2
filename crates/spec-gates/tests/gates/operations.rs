//! Changes of operations, their authentication and their scopes.

use serde_json::{Value, json};
use spec_gates::Severity::{Addition, Breaking};

use crate::contracts::{at, changes_of, check, released, small};

#[test]
fn a_removed_operation_is_breaking() {
    check(
        &small(),
        |c| drop(at(c, "/paths/~1items~1{id}").as_object_mut().unwrap().remove("get")),
        Breaking,
        "/paths/~1items~1{id}/get",
        "`get_item` was removed",
    );
    let health = "/paths/~1api~1v1~1partner~1health";
    check(
        &released(),
        |c| drop(at(c, health).as_object_mut().unwrap().remove("get")),
        Breaking,
        &format!("{health}/get"),
        "`get_health` was removed",
    );
}

#[test]
fn an_added_operation_requires_a_minor_version() {
    let operation = json!({"operationId": "delete_item", "responses": {"204": {"description": "Gone."}}});
    check(
        &small(),
        |c| at(c, "/paths/~1items~1{id}")["delete"] = operation.clone(),
        Addition,
        "/paths/~1items~1{id}/delete",
        "`delete_item` was added",
    );
    check(
        &released(),
        |c| at(c, "/paths")["/new"] = json!({"get": operation}),
        Addition,
        "/paths/~1new/get",
        "was added",
    );
}

#[test]
fn renaming_a_path_parameter_changes_nothing_but_renaming_an_operation_does() {
    let renamed = |c: &mut Value| {
        let paths = at(c, "/paths").as_object_mut().unwrap();
        let mut item = paths.remove("/items/{id}").unwrap();
        item["parameters"][0]["name"] = json!("item_id");
        paths.insert("/items/{item_id}".to_owned(), item);
    };
    assert_eq!(changes_of(&small(), renamed), []);
    let operation = "/paths/~1items~1{id}/get";
    check(
        &small(),
        |c| at(c, operation)["operationId"] = json!("item"),
        Breaking,
        &format!("{operation}/operationId"),
        "generated clients",
    );
}

#[test]
fn a_new_scope_is_breaking_and_a_dropped_one_is_an_addition() {
    let pointer = "/paths/~1items/post/x-required-scope";
    check(
        &small(),
        |c| *at(c, pointer) = json!("items:admin"),
        Breaking,
        pointer,
        "keys without it",
    );
    check(
        &small(),
        |c| {
            drop(
                at(c, "/paths/~1items/post")
                    .as_object_mut()
                    .unwrap()
                    .remove("x-required-scope"),
            )
        },
        Addition,
        pointer,
        "no scope",
    );
}

#[test]
fn another_way_to_authenticate_is_breaking() {
    let operation = "/paths/~1items/post";
    check(
        &small(),
        |c| at(c, operation)["security"] = json!([]),
        Breaking,
        &format!("{operation}/security"),
        "the callers it admits",
    );
    check(
        &released(),
        |c| *at(c, "/components/securitySchemes/PartnerNonce/name") = json!("X-Nonce"),
        Breaking,
        "/components/securitySchemes/PartnerNonce/name",
        "X-Nonce",
    );
}
