//! Checks that the contract does not contradict itself.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::document::{Node, strings};

/// The place of the list of all error codes.
const KNOWN_CODES: &str = "/components/schemas/ErrorDetail/properties/code/x-known-values";

/// HTTP methods that a path item can have.
pub(crate) const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// Returns all operations.
fn operations(contract: &Value) -> Vec<Node<'_>> {
    let paths = Node::root(contract).get("paths");
    let paths = paths
        .iter()
        .flat_map(|paths| paths.keys().into_iter().filter_map(|path| paths.get(path)));
    let items: Vec<Node<'_>> = paths.collect();
    items
        .iter()
        .flat_map(|item| METHODS.into_iter().filter_map(|method| item.get(method)))
        .collect()
}

/// Returns the responses of all operations: the JSON pointer as written, and the response with its reference followed.
fn responses(contract: &Value) -> Vec<(String, Node<'_>)> {
    let mut found = Vec::new();
    for operation in operations(contract) {
        let Some(responses) = operation.get("responses") else {
            continue;
        };
        for status in responses.keys() {
            if let Some(response) = responses.get(status) {
                found.push((responses.below(status), response));
            }
        }
    }
    found
}

/// Compares the error codes of the responses with the list of `ErrorDetail.code`. Returns a message for each code that is missing
/// in the list, and for each code of the list that no response has.
pub fn error_codes(contract: &Value) -> Vec<String> {
    let known = strings(contract.pointer(KNOWN_CODES));
    let mut used: BTreeMap<&str, String> = BTreeMap::new();
    for (_, response) in responses(contract) {
        for code in strings(response.raw("x-error-codes")) {
            used.entry(code).or_insert_with(|| response.below("x-error-codes"));
        }
    }
    let unknown = used
        .iter()
        .filter(|(code, _)| !known.contains(**code))
        .map(|(code, pointer)| {
            format!("{pointer}: `{code}` is missing in {KNOWN_CODES}. Add it there, or correct it here.")
        });
    let unused = known.iter().filter(|code| !used.contains_key(**code)).map(|code| {
        format!("{KNOWN_CODES}: no response of an operation has `{code}` in its x-error-codes. Declare it there, or remove it here.")
    });
    unknown.chain(unused).collect()
}

/// Returns a message for each error response (4xx, 5xx) without error codes, and for each other response with some.
pub fn codes_by_status(contract: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for (pointer, response) in responses(contract) {
        let is_error = pointer
            .rsplit_once('/')
            .is_some_and(|(_, status)| status.starts_with(['4', '5']));
        let has_codes = !strings(response.raw("x-error-codes")).is_empty();
        match (is_error, has_codes) {
            (true, false) => problems.push(format!(
                "{pointer}: an error response must have x-error-codes. List its codes."
            )),
            (false, true) => problems.push(format!(
                "{pointer}: a success response must not have x-error-codes. Remove them."
            )),
            _ => {}
        }
    }
    problems
}

/// Returns a message for each deprecated operation that lacks its dates, has less than twelve months between them, or does not
/// declare the headers; and for each operation that has such dates but is not deprecated.
pub fn deprecations(contract: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for operation in operations(contract) {
        let day = |name| operation.raw(name).and_then(Value::as_str).filter(|text| is_day(text));
        let has = |name| operation.raw(name).is_some();
        let at = &operation.pointer;
        if !operation.is_true("deprecated") {
            if has("x-deprecated-since") || has("x-sunset") {
                problems.push(format!(
                    "{at}: x-deprecated-since and x-sunset require `deprecated: true`. Add it, or remove them."
                ));
            }
            continue;
        }
        match (day("x-deprecated-since"), day("x-sunset")) {
            (Some(since), Some(sunset)) if year_later(since).as_str() <= sunset => {}
            (Some(_), Some(sunset)) => problems.push(format!(
                "{at}/x-sunset: {sunset} must be at least twelve months after x-deprecated-since."
            )),
            _ => problems.push(format!(
                "{at}: a deprecated operation must have x-deprecated-since and x-sunset, as dates like '2027-01-15'."
            )),
        }
        let responses = operation.get("responses");
        for status in responses
            .iter()
            .flat_map(Node::keys)
            .filter(|status| !status.starts_with(['4', '5']))
        {
            let response = responses.as_ref().and_then(|responses| responses.get(status));
            let declared = response.and_then(|response| response.get("headers"));
            for name in ["Deprecation", "Sunset"] {
                if !declared.as_ref().is_some_and(|headers| headers.keys().contains(name)) {
                    problems.push(format!(
                        "{at}/responses/{status}: the header {name} is not declared. Add it."
                    ));
                }
            }
        }
    }
    problems
}

/// Returns whether a text is a date such as `2027-01-15`. Such texts sort like the dates.
fn is_day(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [4, 2, 2] && parts.concat().bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the same day of the next year.
fn year_later(day: &str) -> String {
    let year: u32 = day[..4].parse().unwrap_or_default();
    format!("{:04}{}", year + 1, &day[4..])
}

/// Returns a message for each response that does not declare the header `X-Request-Id`.
pub fn request_ids(contract: &Value) -> Vec<String> {
    responses(contract)
        .into_iter()
        .filter(|(_, response)| {
            !response
                .get("headers")
                .is_some_and(|headers| headers.keys().contains("X-Request-Id"))
        })
        .map(|(pointer, _)| {
            format!("{pointer}: the header X-Request-Id is not declared. Every response has it: add it.")
        })
        .collect()
}
