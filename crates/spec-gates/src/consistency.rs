//! What the contract says in two places is the same in both.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::document::{Node, strings};

/// Where the vocabulary of error codes stands.
const KNOWN_CODES: &str = "/components/schemas/ErrorDetail/properties/code/x-known-values";

/// HTTP methods that a path item can have.
pub(crate) const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// Every operation.
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

/// Every operation's responses: JSON pointer as written, and the response with its reference followed.
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

/// Operations that are to go and do not say since when and until when, or with less notice than twelve months, or whose answers
/// do not declare the headers that tell it; and dates without a mark.
pub fn deprecations(contract: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for operation in operations(contract) {
        let day = |name| operation.raw(name).and_then(Value::as_str).filter(|text| is_day(text));
        let has = |name| operation.raw(name).is_some();
        let at = &operation.pointer;
        if !operation.is_true("deprecated") {
            if has("x-deprecated-since") || has("x-sunset") {
                wrong.push(format!(
                    "{at}: dates of its end, and not `deprecated: true`. Mark it, or remove them."
                ));
            }
            continue;
        }
        match (day("x-deprecated-since"), day("x-sunset")) {
            (Some(since), Some(sunset)) if year_later(since).as_str() <= sunset => {}
            (Some(_), Some(sunset)) => wrong.push(format!(
                "{at}/x-sunset: {sunset} is less than twelve months after x-deprecated-since. Give partners that time."
            )),
            _ => wrong.push(format!(
                "{at}: deprecated without x-deprecated-since and x-sunset, days as '2027-01-15'. State both."
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
                    wrong.push(format!(
                        "{at}/responses/{status}: the header {name} is not declared. Add it."
                    ));
                }
            }
        }
    }
    wrong
}

/// Whether a text is a day as `2027-01-15`: the order of such texts is that of the days.
fn is_day(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [4, 2, 2] && parts.concat().bytes().all(|byte| byte.is_ascii_digit())
}

/// The same day of the next year.
fn year_later(day: &str) -> String {
    let year: u32 = day[..4].parse().unwrap_or_default();
    format!("{:04}{}", year + 1, &day[4..])
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
