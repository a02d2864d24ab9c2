//! Changes of responses: nothing is removed, and nothing is added that a client does not know.

use serde_json::{Value, json};
use spec_gates::Severity::{Addition, Breaking, Wording};
use spec_gates::compare;

use crate::contracts::{at, check, released, small};

#[test]
fn a_field_removed_from_a_response_is_breaking() {
    let gone = |c: &mut Value, schema: &str, name: &str| {
        at(c, schema)["properties"].as_object_mut().unwrap().shift_remove(name);
        if let Some(Value::Array(required)) = at(c, schema).get_mut("required") {
            required.retain(|other| other != name);
        }
    };
    check(
        &small(),
        |c| gone(c, "/components/schemas/Item", "kind"),
        Breaking,
        "/components/schemas/Item/properties/kind",
        "removed from responses",
    );
    check(
        &small(),
        |c| gone(c, "/components/schemas/Item", "count"),
        Breaking,
        "/components/schemas/Item/properties/count",
        "removed from responses",
    );
    check(
        &released(),
        |c| gone(c, "/components/schemas/Branch", "is_active"),
        Breaking,
        "/components/schemas/Branch/properties/is_active",
        "removed from responses",
    );
}

#[test]
fn a_field_added_to_a_response_is_an_addition() {
    for (base, schema) in [
        (small(), "/components/schemas/Item"),
        (released(), "/components/schemas/Branch"),
    ] {
        let place = format!("{schema}/properties/color");
        check(
            &base,
            |c| at(c, schema)["properties"]["color"] = json!({"type": "string"}),
            Addition,
            &place,
            "added to responses",
        );
    }
    let closed = |c: &mut Value| at(c, "/components/schemas/Item")["additionalProperties"] = json!(false);
    let mut base = small();
    closed(&mut base);
    check(
        &base,
        |c| at(c, "/components/schemas/Item/properties")["color"] = json!({"type": "string"}),
        Breaking,
        "/components/schemas/Item/properties/color",
        "closed",
    );
}

#[test]
fn a_field_that_becomes_optional_is_breaking() {
    for (base, schema, name) in [
        (small(), "/components/schemas/Item", "kind"),
        (released(), "/components/schemas/Branch", "is_active"),
    ] {
        let edit = |c: &mut Value| {
            at(c, schema)["required"]
                .as_array_mut()
                .unwrap()
                .retain(|other| other != name)
        };
        check(
            &base,
            edit,
            Breaking,
            &format!("{schema}/properties/{name}"),
            "may be absent",
        );
    }
}

#[test]
fn another_type_is_breaking() {
    let count = "/components/schemas/Item/properties/count";
    check(
        &small(),
        |c| at(c, count)["type"] = json!("boolean"),
        Breaking,
        &format!("{count}/type"),
        "from \"integer\" to \"boolean\"",
    );
    let name = "/components/schemas/Branch/properties/name/type";
    check(
        &released(),
        |c| *at(c, name) = json!("boolean"),
        Breaking,
        name,
        "from \"string\" to \"boolean\"",
    );
}

#[test]
fn a_response_value_that_becomes_nullable_is_breaking() {
    let name = "/components/schemas/Branch/properties/name";
    check(
        &released(),
        |c| at(c, name)["nullable"] = json!(true),
        Breaking,
        &format!("{name}/nullable"),
        "existing clients do not know",
    );
}

#[test]
fn a_widened_bound_of_a_response_is_breaking_and_a_narrowed_one_an_addition() {
    let count = "/components/schemas/Item/properties/count/minimum";
    check(
        &small(),
        |c| *at(c, count) = json!(-1),
        Breaking,
        count,
        "existing clients do not know",
    );
    check(
        &small(),
        |c| *at(c, count) = json!(1),
        Addition,
        count,
        "more is promised",
    );
}

#[test]
fn another_format_or_pattern_of_a_response_is_breaking() {
    let id = "/components/schemas/Branch/properties/id/format";
    check(
        &released(),
        |c| *at(c, id) = json!("uri"),
        Breaking,
        id,
        "`format` changed from",
    );
}

#[test]
fn an_enum_value_added_to_a_response_is_breaking_because_no_client_knows_it() {
    let place = "/components/schemas/Kind/enum";
    check(
        &small(),
        |c| at(c, place).as_array_mut().unwrap().push(json!("c")),
        Breaking,
        place,
        "\"c\" was added to responses",
    );
    let place = "/components/schemas/PiiMode/enum";
    check(
        &released(),
        |c| at(c, place).as_array_mut().unwrap().push(json!("HASHED")),
        Breaking,
        place,
        "existing clients do not know it",
    );
}

#[test]
fn an_enum_value_removed_from_a_response_is_breaking_because_its_meaning_has_moved() {
    let place = "/components/schemas/Kind/enum";
    check(
        &small(),
        |c| *at(c, place) = json!(["a"]),
        Breaking,
        place,
        "\"b\" was removed from responses",
    );
}

#[test]
fn a_removed_status_is_breaking() {
    let responses = "/paths/~1items~1{id}/get/responses";
    check(
        &small(),
        |c| drop(at(c, responses).as_object_mut().unwrap().remove("404")),
        Breaking,
        &format!("{responses}/404"),
        "the status 404 was removed",
    );
    let responses = "/paths/~1api~1v1~1partner~1health/get/responses";
    check(
        &released(),
        |c| drop(at(c, responses).as_object_mut().unwrap().remove("413")),
        Breaking,
        &format!("{responses}/413"),
        "the status 413 was removed",
    );
}

#[test]
fn an_added_error_status_is_an_addition_and_an_added_success_is_breaking() {
    let responses = "/paths/~1items~1{id}/get/responses";
    check(
        &small(),
        |c| at(c, responses)["410"] = json!({"description": "Gone."}),
        Addition,
        &format!("{responses}/410"),
        "410 was added",
    );
    check(
        &small(),
        |c| at(c, responses)["202"] = json!({"description": "Later."}),
        Breaking,
        &format!("{responses}/202"),
        "existing clients do not know",
    );
}

#[test]
fn a_304_is_an_addition_together_with_a_new_condition_and_breaking_without() {
    let responses = "/paths/~1items~1{id}/get/responses";
    let not_modified = json!({"description": "Not modified."});
    check(
        &small(),
        |c| at(c, responses)["304"] = not_modified.clone(),
        Breaking,
        &format!("{responses}/304"),
        "existing clients do not know",
    );
    let mut working = small();
    let operation = at(&mut working, "/paths/~1items~1{id}/get");
    let condition = json!({"name": "If-None-Match", "in": "header", "schema": {"type": "string"}});
    match operation["parameters"].as_array_mut() {
        Some(parameters) => parameters.push(condition),
        None => operation["parameters"] = json!([condition]),
    }
    operation["responses"]["304"] = not_modified;
    let found = compare(&small(), &working);
    assert!(found.iter().all(|change| change.severity == Addition), "{found:?}");
    assert!(
        found.iter().any(|change| change.what.contains("with a condition")),
        "{found:?}"
    );
}

#[test]
fn a_removed_error_code_is_breaking_and_an_added_one_an_addition() {
    for (base, response) in [
        (small(), "/components/responses/Unauthorized"),
        (released(), "/components/responses/Unauthorized"),
    ] {
        let place = format!("{response}/x-error-codes");
        check(
            &base,
            |c| {
                at(c, &place)
                    .as_array_mut()
                    .unwrap()
                    .retain(|code| code != "invalid_key")
            },
            Breaking,
            &place,
            "`invalid_key` was removed",
        );
        check(
            &base,
            |c| at(c, &place).as_array_mut().unwrap().push(json!("key_retired")),
            Addition,
            &place,
            "`key_retired` was added",
        );
        check(
            &base,
            |c| at(c, &place).as_array_mut().unwrap().reverse(),
            Wording,
            &place,
            "another order",
        );
    }
}

/// REP-9
#[test]
fn a_known_value_can_be_added_but_not_removed() {
    let place = "/components/schemas/ErrorDetail/properties/code/x-known-values";
    check(
        &released(),
        |c| at(c, place).as_array_mut().unwrap().push(json!("key_retired")),
        Addition,
        place,
        "`key_retired` was added",
    );
    check(
        &released(),
        |c| {
            at(c, place)
                .as_array_mut()
                .unwrap()
                .retain(|code| code != "invalid_key")
        },
        Breaking,
        place,
        "`invalid_key` was removed",
    );
}

#[test]
fn a_removed_header_is_breaking_and_an_added_one_an_addition() {
    let headers = "/components/responses/Unauthorized/headers";
    for base in [small(), released()] {
        let place = format!("{headers}/X-Request-Id");
        check(
            &base,
            |c| drop(at(c, headers).as_object_mut().unwrap().remove("X-Request-Id")),
            Breaking,
            &place,
            "`X-Request-Id` was removed",
        );
        let place = format!("{headers}/X-Trace");
        check(
            &base,
            |c| at(c, headers)["X-Trace"] = json!({"schema": {"type": "string"}}),
            Addition,
            &place,
            "`X-Trace` was added",
        );
    }
}

#[test]
fn a_required_header_that_becomes_optional_is_breaking() {
    check(
        &small(),
        |c| at(c, "/components/headers/X-Request-Id")["required"] = json!(false),
        Breaking,
        "/components/headers/X-Request-Id/required",
        "may be absent",
    );
}

#[test]
fn a_removed_media_type_is_breaking() {
    let content = "/paths/~1items~1{id}/get/responses/200/content";
    check(
        &small(),
        |c| *at(c, content) = json!({}),
        Breaking,
        &format!("{content}/application~1json"),
        "`application/json` was removed",
    );
}
