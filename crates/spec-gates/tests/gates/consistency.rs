//! Checks that the contract does not contradict itself.

use serde_json::json;
use spec_gates::consistency::{codes_by_status, deprecations, error_codes, request_ids};

use crate::contracts::{at, inspectors, released, working};

const KNOWN: &str = "/components/schemas/ErrorDetail/properties/code/x-known-values";

#[test]
fn the_contracts_do_not_contradict_themselves() {
    for contract in [released(), working(), inspectors()] {
        let mut problems = error_codes(&contract);
        problems.extend(codes_by_status(&contract));
        problems.extend(request_ids(&contract));
        problems.extend(deprecations(&contract));
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}

#[test]
fn an_error_code_outside_the_vocabulary_is_found() {
    let mut contract = working();
    at(&mut contract, "/components/responses/NotFound/x-error-codes")
        .as_array_mut()
        .unwrap()
        .push(json!("gone"));
    let [problem] = &error_codes(&contract)[..] else {
        panic!("expected one finding")
    };
    assert!(
        problem.starts_with("/components/responses/NotFound/x-error-codes: `gone`"),
        "{problem}"
    );
}

#[test]
fn a_code_of_the_vocabulary_that_no_response_has_is_found() {
    let mut contract = working();
    at(&mut contract, KNOWN).as_array_mut().unwrap().push(json!("teapot"));
    let [problem] = &error_codes(&contract)[..] else {
        panic!("expected one finding")
    };
    assert!(problem.starts_with(KNOWN) && problem.contains("`teapot`"), "{problem}");
}

#[test]
fn an_error_without_codes_and_a_success_with_some_are_found() {
    let mut contract = working();
    let responses = "/paths/~1api~1v1~1partner~1health/get/responses";
    at(&mut contract, responses)["200"]["x-error-codes"] = json!(["not_found"]);
    at(&mut contract, responses)["418"] = json!({"description": "A teapot."});
    let problems = codes_by_status(&contract);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with(&format!("{responses}/200: ")), "{problems:?}");
    assert!(problems[1].starts_with(&format!("{responses}/418: ")), "{problems:?}");
}

#[test]
fn a_response_without_the_request_id_is_found_wherever_it_is_used() {
    let mut contract = working();
    at(&mut contract, "/components/responses/ScopeRequired/headers")
        .as_object_mut()
        .unwrap()
        .remove("X-Request-Id");
    let problems = request_ids(&contract);
    // Each operation that requires a scope uses it.
    let uses = contract
        .to_string()
        .matches("#/components/responses/ScopeRequired")
        .count();
    assert_eq!(problems.len(), uses, "{problems:?}");
    let place = "/paths/~1api~1v1~1partner~1test-line~1measurements/post/responses/403: ";
    assert!(
        problems.iter().any(|problem| problem.starts_with(place)),
        "{problems:?}"
    );
}

/// SVC-11
#[test]
fn a_deprecated_operation_announces_its_end_a_year_before_in_its_responses() {
    let place = "/paths/~1api~1v1~1partner~1health/get";
    let with = |since: &str, sunset: &str, is_marked: bool, headers: &[&str]| {
        let mut contract = working();
        let operation = at(&mut contract, place);
        operation["x-deprecated-since"] = json!(since);
        operation["x-sunset"] = json!(sunset);
        operation["deprecated"] = json!(is_marked);
        for name in headers {
            operation["responses"]["200"]["headers"][*name] = json!({"schema": {"type": "string"}});
        }
        deprecations(&contract)
    };
    let both = ["Deprecation", "Sunset"];
    assert_eq!(with("2027-01-15", "2028-01-15", true, &both), Vec::<String>::new());
    for (found, words) in [
        (with("2027-01-15", "2028-01-14", true, &both), "at least twelve months"),
        (
            with("2027-01-15", "next year", true, &both),
            "must have x-deprecated-since and x-sunset",
        ),
        (
            with("2027-01-15", "2028-01-15", false, &both),
            "require `deprecated: true`",
        ),
        (
            with("2027-01-15", "2028-01-15", true, &["Sunset"]),
            "the header Deprecation is not declared",
        ),
    ] {
        let [problem] = &found[..] else {
            panic!("expected one finding: {found:?}")
        };
        assert!(problem.starts_with(place) && problem.contains(words), "{problem}");
    }
}
