//! What the contract says in two places is the same in both.

use serde_json::json;
use spec_gates::consistency::{codes_by_status, deprecations, error_codes, request_ids};

use crate::contracts::{at, inspectors, released, working};

const KNOWN: &str = "/components/schemas/ErrorDetail/properties/code/x-known-values";

#[test]
fn the_contracts_say_the_same_everywhere() {
    for contract in [released(), working(), inspectors()] {
        let mut wrong = error_codes(&contract);
        wrong.extend(codes_by_status(&contract));
        wrong.extend(request_ids(&contract));
        wrong.extend(deprecations(&contract));
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
fn an_error_code_outside_the_vocabulary_is_found() {
    let mut contract = working();
    at(&mut contract, "/components/responses/NotFound/x-error-codes")
        .as_array_mut()
        .unwrap()
        .push(json!("gone"));
    let [wrong] = &error_codes(&contract)[..] else {
        panic!("not one finding")
    };
    assert!(
        wrong.starts_with("/components/responses/NotFound/x-error-codes: `gone`"),
        "{wrong}"
    );
}

#[test]
fn a_code_of_the_vocabulary_that_no_response_has_is_found() {
    let mut contract = working();
    at(&mut contract, KNOWN).as_array_mut().unwrap().push(json!("teapot"));
    let [wrong] = &error_codes(&contract)[..] else {
        panic!("not one finding")
    };
    assert!(wrong.starts_with(KNOWN) && wrong.contains("`teapot`"), "{wrong}");
}

#[test]
fn an_error_without_codes_and_a_success_with_some_are_found() {
    let mut contract = working();
    let responses = "/paths/~1api~1v1~1partner~1health/get/responses";
    at(&mut contract, responses)["200"]["x-error-codes"] = json!(["not_found"]);
    at(&mut contract, responses)["418"] = json!({"description": "A teapot."});
    let wrong = codes_by_status(&contract);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].starts_with(&format!("{responses}/200: ")), "{wrong:?}");
    assert!(wrong[1].starts_with(&format!("{responses}/418: ")), "{wrong:?}");
}

#[test]
fn a_response_without_the_request_id_is_found_wherever_it_is_used() {
    let mut contract = working();
    at(&mut contract, "/components/responses/ScopeRequired/headers")
        .as_object_mut()
        .unwrap()
        .remove("X-Request-Id");
    let wrong = request_ids(&contract);
    // Of each operation that needs a scope.
    let uses = contract
        .to_string()
        .matches("#/components/responses/ScopeRequired")
        .count();
    assert_eq!(wrong.len(), uses, "{wrong:?}");
    let place = "/paths/~1api~1v1~1partner~1test-line~1measurements/post/responses/403: ";
    assert!(wrong.iter().any(|wrong| wrong.starts_with(place)), "{wrong:?}");
}

/// SVC-11
#[test]
fn an_operation_that_is_to_go_says_so_a_year_before_on_its_answers() {
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
        (with("2027-01-15", "2028-01-14", true, &both), "less than twelve months"),
        (with("2027-01-15", "next year", true, &both), "State both"),
        (with("2027-01-15", "2028-01-15", false, &both), "not `deprecated: true`"),
        (
            with("2027-01-15", "2028-01-15", true, &["Sunset"]),
            "the header Deprecation is not declared",
        ),
    ] {
        let [wrong] = &found[..] else {
            panic!("not one finding: {found:?}")
        };
        assert!(wrong.starts_with(place) && wrong.contains(words), "{wrong}");
    }
}
