//! What the contract says in two places is the same in both.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::document::{Node, strings};

/// Where the vocabulary of error codes stands.
const KNOWN_CODES: &str = "/components/schemas/ErrorDetail/properties/code/x-known-values";

/// HTTP methods that a path item can have.
pub(crate) const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// Every operation's responses: JSON pointer as written, and the response with its reference followed.
fn responses(contract: &Value) -> Vec<(String, Node<'_>)> {
    let mut found = Vec::new();
    let Some(paths) = Node::root(contract).get("paths") else {
        return found;
    };
    for path in paths.keys() {
        let Some(item) = paths.get(path) else { continue };
        for method in METHODS {
            let Some(responses) = item.get(method).and_then(|operation| operation.get("responses")) else {
                continue;
            };
            for status in responses.keys() {
                if let Some(response) = responses.get(status) {
                    found.push((responses.below(status), response));
                }
            }
        }
    }
    found
}

/// Error codes that a response has in `x-error-codes` and the vocabulary of `ErrorDetail.code` does not, and those of the
/// vocabulary that no operation's response has.
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
            format!("{pointer}: `{code}` is not among the values of {KNOWN_CODES}. Add it there, or correct it here.")
        });
    let unused = known.iter().filter(|code| !used.contains_key(**code)).map(|code| {
        format!("{KNOWN_CODES}: no response of an operation has `{code}` in its x-error-codes. Declare it there, or remove it here.")
    });
    unknown.chain(unused).collect()
}

/// Error responses (4xx, 5xx) without error codes, and other responses with some.
pub fn codes_by_status(contract: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for (pointer, response) in responses(contract) {
        let is_error = pointer
            .rsplit_once('/')
            .is_some_and(|(_, status)| status.starts_with(['4', '5']));
        let has_codes = !strings(response.raw("x-error-codes")).is_empty();
        match (is_error, has_codes) {
            (true, false) => wrong.push(format!(
                "{pointer}: an error response without x-error-codes. List its codes."
            )),
            (false, true) => wrong.push(format!("{pointer}: a success with x-error-codes. Remove them.")),
            _ => {}
        }
    }
    wrong
}

/// Responses of operations that do not declare the header `X-Request-Id`, which every answer has.
pub fn request_ids(contract: &Value) -> Vec<String> {
    responses(contract)
        .into_iter()
        .filter(|(_, response)| {
            !response
                .get("headers")
                .is_some_and(|headers| headers.keys().contains("X-Request-Id"))
        })
        .map(|(pointer, _)| format!("{pointer}: the header X-Request-Id is not declared. Every answer has it: add it."))
        .collect()
}
