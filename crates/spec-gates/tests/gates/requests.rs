//! Changes of requests: existing clients can keep sending theirs.

use serde_json::{Value, json};
use spec_gates::Severity::{Addition, Breaking};

use crate::contracts::{assert_only, at, changes_of, check, released, small, working};

#[test]
fn a_new_required_parameter_is_breaking_and_an_optional_one_an_addition() {
    for (base, operation) in [
        (small(), "/paths/~1items~1{id}/get"),
        (released(), "/paths/~1api~1v1~1partner~1inspections/get"),
    ] {
        for (required, severity) in [(true, Breaking), (false, Addition)] {
            let parameter =
                json!({"name": "language", "in": "query", "required": required, "schema": {"type": "string"}});
            let mut place = String::new();
            let edit = |c: &mut Value| {
                let parameters = at(c, operation)
                    .as_object_mut()
                    .unwrap()
                    .entry("parameters")
                    .or_insert(json!([]));
                place = format!("{operation}/parameters/{}", parameters.as_array().unwrap().len());
                parameters.as_array_mut().unwrap().push(parameter);
            };
            let found = changes_of(&base, edit);
            assert_only(&found, severity, &place, "`language` was added");
        }
    }
}

#[test]
fn a_removed_parameter_is_breaking_because_unknown_ones_are_rejected() {
    check(
        &small(),
        |c| *at(c, "/paths/~1items/post/parameters") = json!([]),
        Breaking,
        "/paths/~1items/post/parameters/0",
        "`limit` was removed",
    );
}

#[test]
fn a_parameter_that_becomes_required_is_breaking() {
    let pointer = "/paths/~1items/post/parameters/0";
    check(
        &small(),
        |c| at(c, pointer)["required"] = json!(true),
        Breaking,
        &format!("{pointer}/required"),
        "is required now",
    );
}

#[test]
fn a_new_required_request_member_is_breaking_and_an_optional_one_an_addition() {
    for (base, schema) in [
        (small(), "/components/schemas/NewItem"),
        (working(), "/components/schemas/MeasurementRequest"),
    ] {
        let place = format!("{schema}/properties/color");
        check(
            &base,
            |c| at(c, schema)["properties"]["color"] = json!({"type": "string"}),
            Addition,
            &place,
            "added to requests",
        );
        let required = |c: &mut Value| {
            at(c, schema)["properties"]["color"] = json!({"type": "string"});
            at(c, schema)["required"].as_array_mut().unwrap().push(json!("color"));
        };
        check(&base, required, Breaking, &place, "existing clients do not send it");
    }
}

#[test]
fn a_request_member_that_becomes_required_is_breaking() {
    let schema = "/components/schemas/MeasurementRequest";
    let edit = |c: &mut Value| {
        at(c, schema)["required"]
            .as_array_mut()
            .unwrap()
            .push(json!("external_id"))
    };
    check(
        &working(),
        edit,
        Breaking,
        &format!("{schema}/properties/external_id"),
        "is required in requests now",
    );
}

#[test]
fn a_removed_request_member_is_breaking_because_its_value_would_be_lost() {
    let schema = "/components/schemas/MeasurementRequest/properties";
    check(
        &working(),
        |c| drop(at(c, schema).as_object_mut().unwrap().remove("device_serial")),
        Breaking,
        &format!("{schema}/device_serial"),
        "removed from requests",
    );
}

#[test]
fn a_narrowed_bound_of_a_request_is_breaking_and_a_widened_one_an_addition() {
    let limit = "/paths/~1items/post/parameters/0/schema/maximum";
    check(
        &small(),
        |c| *at(c, limit) = json!(50),
        Breaking,
        limit,
        "from 100 to 50 in requests",
    );
    check(
        &small(),
        |c| *at(c, limit) = json!(500),
        Addition,
        limit,
        "more is accepted",
    );
    let plate = "/components/schemas/MeasurementRequest/properties/plate";
    check(
        &working(),
        |c| at(c, plate)["maxLength"] = json!(31),
        Breaking,
        &format!("{plate}/maxLength"),
        "from 32 to 31",
    );
    check(
        &working(),
        |c| at(c, plate)["minLength"] = json!(2),
        Breaking,
        &format!("{plate}/minLength"),
        "rejected",
    );
    check(
        &working(),
        |c| drop(at(c, plate).as_object_mut().unwrap().remove("maxLength")),
        Addition,
        &format!("{plate}/maxLength"),
        "from 32 to nothing",
    );
    let values = "/components/schemas/MeasurementRequest/properties/measurements";
    check(
        &working(),
        |c| at(c, values)["maxProperties"] = json!(49),
        Breaking,
        &format!("{values}/maxProperties"),
        "from 50 to 49",
    );
    check(
        &working(),
        |c| at(c, values)["x-key-pattern"] = json!("^[A-Z]+$"),
        Breaking,
        &format!("{values}/x-key-pattern"),
        "from",
    );
    let digits =
        "/components/schemas/MeasurementRequest/properties/measurements/additionalProperties/x-max-significant-digits";
    check(
        &working(),
        |c| *at(c, digits) = json!(17),
        Breaking,
        digits,
        "from 18 to 17",
    );
}

#[test]
fn another_pattern_format_or_default_of_a_request_is_breaking() {
    let code = "/components/schemas/MeasurementRequest/properties/branch_code/pattern";
    check(
        &working(),
        |c| *at(c, code) = json!("^[A-Z]+$"),
        Breaking,
        code,
        "`pattern` changed from",
    );
    let time = "/components/schemas/MeasurementRequest/properties/measured_at/format";
    check(
        &working(),
        |c| *at(c, time) = json!("date"),
        Breaking,
        time,
        "`format` changed from",
    );
    let default = "/paths/~1items/post/parameters/0/schema/default";
    check(
        &small(),
        |c| *at(c, default) = json!(10),
        Breaking,
        default,
        "omitting the value",
    );
}

#[test]
fn a_new_enum_value_in_a_request_is_an_addition_because_clients_need_not_send_it() {
    let place = "/components/schemas/Mode/enum";
    check(
        &small(),
        |c| at(c, place).as_array_mut().unwrap().push(json!("slow")),
        Addition,
        place,
        "\"slow\" was added to requests",
    );
    let place = "/components/schemas/InspectionStatus/enum";
    let found = changes_of(&released(), |c| {
        at(c, place).as_array_mut().unwrap().push(json!("DRAFT"))
    });
    // The released enum is used in both directions: in a filter of requests, and in responses.
    assert_eq!(
        found
            .iter()
            .map(|change| (change.severity, change.pointer.as_str()))
            .collect::<Vec<_>>(),
        [(Addition, place), (Breaking, place)]
    );
}

#[test]
fn an_enum_value_that_is_removed_from_a_request_is_breaking() {
    let place = "/components/schemas/Mode/enum";
    check(
        &small(),
        |c| *at(c, place) = json!(["fast"]),
        Breaking,
        place,
        "\"safe\" was removed from requests",
    );
}

#[test]
fn an_integer_that_becomes_a_number_is_wider() {
    let limit = "/paths/~1items/post/parameters/0/schema/type";
    check(
        &small(),
        |c| *at(c, limit) = json!("number"),
        Addition,
        limit,
        "more is accepted",
    );
    let count = "/components/schemas/Item/properties/count/type";
    check(
        &small(),
        |c| *at(c, count) = json!("number"),
        Breaking,
        count,
        "existing clients do not know",
    );
}

#[test]
fn a_request_body_that_is_new_removed_or_required_is_breaking_and_an_optional_one_an_addition() {
    let operation = "/paths/~1items~1{id}/get";
    let body =
        |required: bool| json!({"required": required, "content": {"application/json": {"schema": {"type": "object"}}}});
    let place = format!("{operation}/requestBody");
    check(
        &small(),
        |c| at(c, operation)["requestBody"] = body(true),
        Breaking,
        &place,
        "required request body",
    );
    check(
        &small(),
        |c| at(c, operation)["requestBody"] = body(false),
        Addition,
        &place,
        "optional request body",
    );
    let post = "/paths/~1items/post";
    check(
        &small(),
        |c| drop(at(c, post).as_object_mut().unwrap().remove("requestBody")),
        Breaking,
        &format!("{post}/requestBody"),
        "removed",
    );
    let content = format!("{post}/requestBody/content");
    check(
        &small(),
        |c| at(c, &content)["text/csv"] = json!({"schema": {"type": "string"}}),
        Addition,
        &format!("{content}/text~1csv"),
        "`text/csv` was added",
    );
}
