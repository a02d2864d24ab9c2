//! Checks every response against the OpenAPI document.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use http::Method;
use jsonschema::Validator;
use regex::Regex;
use serde_json::{Value, json};

use crate::response::TestResponse;
use crate::{leaks, schema};

/// The path under which everything is signed.
pub(crate) const API_ROOT: &str = partner_api::gateway::API_ROOT;

const INSPECTORS_ROOT: &str = partner_api_inspector::gateway::API_ROOT;

/// An OpenAPI document, with validators for responses.
#[derive(Debug)]
pub struct Contract {
    document: Value,
    /// The document's schemas for a validator.
    components: Value,
    /// Validators by schema, cached for tests that read many pages.
    validators: Mutex<HashMap<String, Arc<Validator>>>,
    /// The path under which its operations are.
    root: &'static str,
}

/// The partners' contract.
pub static PARTNERS: LazyLock<Contract> = LazyLock::new(|| {
    Contract::of(
        serde_json::from_str(partner_api::gateway::public::SPEC_JSON).unwrap(),
        API_ROOT,
    )
});

/// The inspectors' contract.
pub static INSPECTORS: LazyLock<Contract> = LazyLock::new(|| {
    Contract::of(
        serde_yaml::from_str(partner_api_inspector::SPEC_YAML).unwrap(),
        INSPECTORS_ROOT,
    )
});

/// All contracts.
pub fn all() -> [&'static Contract; 2] {
    [&PARTNERS, &INSPECTORS]
}

impl Contract {
    fn of(document: Value, root: &'static str) -> Self {
        let components = schema::strict(&document["components"]);
        Contract {
            document,
            components,
            validators: Mutex::default(),
            root,
        }
    }

    /// Returns the document.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Follows `$ref`.
    pub fn resolved<'c>(&'c self, value: &'c Value) -> &'c Value {
        match value["$ref"].as_str() {
            Some(reference) => self.document.pointer(reference.trim_start_matches('#')).unwrap(),
            None => value,
        }
    }
}

/// Returns whether a path is below this root.
fn is_below(root: &str, path: &str) -> bool {
    path.strip_prefix(root)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the contract of a path. Unknown paths belong to the partners' contract.
fn of(path: &str) -> &'static Contract {
    // Only the root is compared, because most tests need not read the inspectors' document.
    match is_below(INSPECTORS_ROOT, path) {
        true => &INSPECTORS,
        false => &PARTNERS,
    }
}

/// Returns whether the inspectors' listener serves this path to inspectors.
pub(crate) fn is_inspectors(path: &str) -> bool {
    path.starts_with("/inspector/")
}

/// Returns the ID of the operation with this path and method; with another method, the path's first operation.
pub fn operation_id(method: &Method, path: &str) -> Option<String> {
    let item = of(path).path_item(path)?;
    let id = |operation: &Value| operation["operationId"].as_str().map(ToOwned::to_owned);
    id(&item[method.as_str().to_lowercase()]).or_else(|| item.as_object()?.values().find_map(id))
}

impl Contract {
    /// Returns the document's entry for a path, compared byte by byte; a variable matches one segment without escapes.
    fn path_item(&self, path: &str) -> Option<&Value> {
        let fits = |template: &str| {
            let (wanted, given): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
            wanted.len() == given.len()
                && wanted.iter().zip(&given).all(|(wanted, given)| {
                    wanted == given || wanted.starts_with('{') && !given.is_empty() && !given.contains('%')
                })
        };
        let paths = self.document["paths"].as_object().unwrap();
        paths.iter().find(|(template, _)| fits(template)).map(|(_, item)| item)
    }
}

/// Asserts that the document declares the response for its request, and that the response leaks nothing.
#[track_caller]
pub fn check(response: &TestResponse) {
    let (path, _) = response.target.split_once('?').unwrap_or((&response.target, ""));
    let at = format!("{} {} → {}", response.method, response.target, response.status);
    assert!(
        response.header("x-request-id").is_some_and(|id| id.len() >= 16),
        "{at}: no X-Request-Id: {:?}",
        response.headers
    );
    leaks::check(response, &at);
    assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{at}");
    let head = response.method == Method::HEAD;
    let contract = of(path);
    let signed = is_below(API_ROOT, path);
    if signed || is_below(INSPECTORS_ROOT, path) || path.starts_with("/files/") {
        let expected = if response.header("etag").is_some() {
            "private, no-cache"
        } else {
            "no-store"
        };
        assert_eq!(response.header("cache-control"), Some(expected), "{at}");
    }
    let declared = contract.declared_response(response, path);
    if let Some(declared) = declared {
        contract.headers_are_declared(response, declared, &at);
        if !head {
            contract.body_is_declared(response, declared, &at);
        }
    } else if path.starts_with("/files/") && matches!(response.status.as_u16(), 304 | 416) {
        assert!(response.body.is_empty(), "{at}");
        return;
    } else if response.header("content-type") == Some("text/html; charset=utf-8") {
        // A person's browser gets a page, also for a report that is not published.
        return;
    } else if !(200..300).contains(&response.status.as_u16()) {
        // Paths outside the document use the error envelope, too, except for redirects and unchanged pages.
        assert!(!signed || !response.status.is_redirection(), "{at}");
        if !head && !response.status.is_redirection() {
            contract.body_is(response, &json!({ "$ref": "#/components/schemas/Error" }), &at);
        }
    }
    if response.status.is_client_error() || response.status.is_server_error() {
        if !head {
            let id = response.json()["error"]["request_id"].clone();
            assert_eq!(
                id,
                json!(response.header("x-request-id")),
                "{at}: the request IDs of header and body differ"
            );
        }
    } else if signed {
        for name in ["ratelimit-policy", "ratelimit"] {
            assert!(response.header(name).is_some(), "{at}: no {name}");
        }
    }
}

impl Contract {
    /// Returns the document's declaration of this status for this request; `None` if it does not have the path.
    #[track_caller]
    fn declared_response(&self, response: &TestResponse, path: &str) -> Option<&Value> {
        let item = self.path_item(path)?;
        let operation = match &item[response.method.as_str().to_lowercase()] {
            // Another method: what the path's operations declare, except successes.
            Value::Null => {
                assert!(
                    !response.status.is_success(),
                    "{} {path} must not return {}",
                    response.method,
                    response.status
                );
                item.as_object()
                    .unwrap()
                    .values()
                    .find(|operation| operation["operationId"].is_string())
                    .unwrap()
            }
            operation => operation,
        };
        let declared = &operation["responses"][response.status.as_str()];
        let undeclared = || {
            format!(
                "{} does not declare {}: {:?}",
                operation["operationId"], response.status, response.body
            )
        };
        assert!(declared.is_object(), "{}", undeclared());
        let declared = self.resolved(declared);
        if let (Some(code), Some(codes)) = (response.code(), declared["x-error-codes"].as_array()) {
            assert!(
                codes.contains(&json!(code)),
                "{}: {code} is not one of {codes:?}",
                operation["operationId"]
            );
        }
        Some(declared)
    }

    #[track_caller]
    fn headers_are_declared(&self, response: &TestResponse, declared: &Value, at: &str) {
        let headers = declared["headers"].as_object().unwrap();
        for (name, header) in headers {
            let header = self.resolved(header);
            match response.header(name) {
                None => assert!(header["required"] != json!(true), "{at}: no {name}"),
                Some(value) => {
                    let value = match header["schema"]["type"].as_str() {
                        Some("integer") => {
                            json!(value.parse::<i64>().unwrap_or_else(|_| panic!("{at}: {name}: {value}")))
                        }
                        _ => json!(value),
                    };
                    self.validate(&value, &header["schema"], &format!("{at}: header {name}"));
                }
            }
        }
        // The only allowed headers are those that the document declares, those of HTTP itself, and those for browsers.
        for name in response.headers.keys().map(http::HeaderName::as_str) {
            let http_own = matches!(
                name,
                "content-type"
                    | "content-length"
                    | "date"
                    | "transfer-encoding"
                    | "connection"
                    | "cache-control"
                    | "x-content-type-options"
            ) || self.root == INSPECTORS_ROOT
                && matches!(name, "content-security-policy" | "referrer-policy");
            let known = http_own || headers.keys().any(|header| header.eq_ignore_ascii_case(name));
            assert!(known, "{at}: the header {name} is not declared");
        }
    }

    #[track_caller]
    fn body_is_declared(&self, response: &TestResponse, declared: &Value, at: &str) {
        let Some(content) = declared["content"].as_object() else {
            assert!(response.body.is_empty(), "{at}: a body is not declared");
            return;
        };
        let content_type = response
            .header("content-type")
            .unwrap_or_else(|| panic!("{at}: no Content-Type"));
        let declared = content.iter().find(|(declared, _)| *declared == content_type);
        let (_, media) = declared.unwrap_or_else(|| panic!("{at}: Content-Type {content_type}, declared: {content:?}"));
        if content_type == "application/json" {
            self.body_is(response, &media["schema"], at);
        }
    }

    #[track_caller]
    fn body_is(&self, response: &TestResponse, schema: &Value, at: &str) {
        assert_eq!(response.header("content-type"), Some("application/json"), "{at}");
        self.validate(&response.json(), schema, at);
        times_are_to_the_microsecond(&response.json(), at);
    }

    #[track_caller]
    fn validate(&self, value: &Value, schema: &Value, at: &str) {
        let validator = self.validator(schema);
        let errors: Vec<_> = validator
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(
            errors.is_empty(),
            "{at}: does not match the document:\n{}\n{value:#}",
            errors.join("\n")
        );
    }

    /// Returns the validator of one of the document's schemas.
    fn validator(&self, schema: &Value) -> Arc<Validator> {
        let build = || {
            let mut root = schema.clone();
            if let Some(members) = root.as_object_mut() {
                members.retain(|name, _| !name.starts_with("x-") && name != "example" && name != "format");
                members.insert("components".to_owned(), self.components.clone());
            }
            let options = jsonschema::options().should_validate_formats(true);
            Arc::new(options.build(&root).unwrap())
        };
        let mut built = self.validators.lock().unwrap();
        built.entry(schema.to_string()).or_insert_with(build).clone()
    }
}

/// REQ-18, for every text that is a time.
#[track_caller]
fn times_are_to_the_microsecond(value: &Value, at: &str) {
    match value {
        Value::Object(members) => members
            .values()
            .for_each(|value| times_are_to_the_microsecond(value, at)),
        Value::Array(items) => items.iter().for_each(|item| times_are_to_the_microsecond(item, at)),
        Value::String(text) => {
            let is_finer = is_like(text, r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7,}Z");
            assert!(!is_finer, "{at}: {text} is finer than a microsecond");
        }
        _ => {}
    }
}

/// Returns whether `text` matches the whole of `pattern`.
pub fn is_like(text: &str, pattern: &str) -> bool {
    // Cached, because every time and ID is matched. Compiling took nine tenths of the time of a test that reads many pages.
    static COMPILED: LazyLock<Mutex<HashMap<String, Regex>>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().unwrap();
    compiled
        .entry(pattern.to_owned())
        .or_insert_with(|| Regex::new(&format!("^(?:{pattern})$")).unwrap())
        .is_match(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_byte_for_byte() {
        let id = |path| operation_id(&Method::GET, path);
        assert_eq!(
            id("/api/v1/partner/inspections/1/forms").as_deref(),
            Some("get_inspection_forms")
        );
        for path in [
            "/api/v1/partner/inspections/",
            "/api/v1/partner//inspections",
            "/api/v1/partner/%69nspections",
        ] {
            assert_eq!(id(path), None, "{path}");
        }
    }
}
