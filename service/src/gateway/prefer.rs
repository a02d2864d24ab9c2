//! Prepared answers, in the sandbox only: `Prefer: code=429, error=rate_limited` (RFC 7240) requests an answer that the document
//! declares, so that partners can test their code for it (SVC-10).

use std::sync::LazyLock;
use std::time::Duration;

use codegen_runtime::Fault;
use dropshot::Body;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use partner_api_signing::Environment;
use serde_json::Value;

use super::public::SPEC_JSON;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::generated::operations::Operation;
use crate::request_log::Reason;

const PREFER: &str = "prefer";

/// `Retry-After` of a prepared answer whose code has it.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The answer that a request asks for: for most, none in particular.
#[derive(Debug, Default, PartialEq, Eq)]
struct Preference {
    status: Option<String>,
    error: Option<String>,
    example: Option<String>,
}

/// The answer that a request asks for; `None` if it asks for none or for the operation's own, and outside the sandbox, where
/// the header has no meaning.
///
/// # Errors
/// The error that the request asks for; 400 for an answer that the document does not declare for the operation.
pub(super) fn answer(
    environment: Environment,
    operation: &Operation,
    headers: &HeaderMap,
) -> Result<Option<Response<Body>>, ApiError> {
    if environment != Environment::Test || !headers.contains_key(PREFER) {
        return Ok(None);
    }
    let preference = Preference::of(headers);
    let Some(status) = &preference.status else {
        return Ok(None);
    };
    let Ok(number) = status.parse::<u16>() else {
        return Err(undeclared(operation, status));
    };
    if operation.successes.contains(&number) {
        return Ok(example(operation, number, preference.example.as_deref()));
    }
    let codes = operation.errors.iter().find(|(declared, _)| *declared == number);
    let codes = codes.map(|(_, codes)| *codes).unwrap_or_default();
    let wanted = |code: &&ErrorCode| preference.error.as_deref().is_none_or(|error| code.as_str() == error);
    match codes.iter().find(wanted) {
        Some(code) => Err(ordered(operation, *code)),
        None if codes.is_empty() => Err(undeclared(operation, status)),
        None => {
            let known: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
            let message = format!("error must be one of {} with code={number}", known.join(", "));
            Err(refused(message))
        }
    }
}

impl Preference {
    /// Reads the headers of this name; of a repeated preference, the first counts (RFC 7240, 2). Other preferences are ignored.
    fn of(headers: &HeaderMap) -> Self {
        let mut found = Preference::default();
        let lines = headers.get_all(PREFER).iter().filter_map(|line| line.to_str().ok());
        for preference in lines.flat_map(|line| line.split([',', ';'])) {
            let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
            let place = match name.trim().to_ascii_lowercase().as_str() {
                "code" => &mut found.status,
                "error" => &mut found.error,
                "example" => &mut found.example,
                _ => continue,
            };
            place.get_or_insert_with(|| value.trim().trim_matches('"').to_string());
        }
        found
    }
}

/// The error that was asked for.
fn ordered(operation: &Operation, code: ErrorCode) -> ApiError {
    let waits = matches!(
        code,
        ErrorCode::RateLimited | ErrorCode::IpRateLimited | ErrorCode::ServiceUnavailable
    );
    ApiError {
        retry_after: waits.then_some(RETRY_AFTER),
        allow: (code == ErrorCode::MethodNotAllowed).then(|| operation.method.to_string()),
        reason: Some(Reason::AnswerOrdered),
        ..ApiError::new(
            code,
            "this answer was ordered with the header Prefer, which only the sandbox knows",
        )
    }
}

fn undeclared(operation: &Operation, status: &str) -> ApiError {
    let errors = operation.errors.iter().map(|(status, _)| status);
    let declared: Vec<String> = operation.successes.iter().chain(errors).map(u16::to_string).collect();
    let status: String = status.chars().filter(|c| c.is_ascii_graphic()).take(16).collect();
    refused(format!("code must be one of {}, is {status}", declared.join(", ")))
}

fn refused(message: String) -> ApiError {
    ApiError::invalid_request(Fault::of_parameter("Prefer", message))
}

/// The document's example of a success, by its name or the first one; `None` if there is no example in JSON.
fn example(operation: &Operation, status: u16, name: Option<&str>) -> Option<Response<Body>> {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(SPEC_JSON).unwrap_or_default());
    let content = DOCUMENT
        .get("paths")?
        .get(operation.path)?
        .get(operation.method.to_ascii_lowercase())?
        .get("responses")?
        .get(status.to_string())?
        .get("content")?
        .get("application/json")?;
    let named = content.get("examples").and_then(Value::as_object);
    let named = named.and_then(|all| match name {
        Some(name) => all.get(name),
        None => all.values().next(),
    });
    let body = content.get("example").or_else(|| named?.get("value"))?;
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).ok()?;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[&'static str]) -> HeaderMap {
        let lines = lines
            .iter()
            .map(|line| (header::HeaderName::from_static(PREFER), HeaderValue::from_static(line)));
        lines.collect()
    }

    #[test]
    fn preferences_are_read_as_rfc_7240_writes_them() {
        let read = |lines: &[&'static str]| Preference::of(&headers(lines));
        let of = |status: &str, error: &str| Preference {
            status: (!status.is_empty()).then(|| status.to_string()),
            error: (!error.is_empty()).then(|| error.to_string()),
            example: None,
        };
        assert_eq!(read(&["code=429, error=rate_limited"]), of("429", "rate_limited"));
        assert_eq!(read(&["Code=\"429\"; error = rate_limited"]), of("429", "rate_limited"));
        assert_eq!(read(&["respond-async, wait=10", "code=404"]), of("404", ""));
        assert_eq!(read(&["code=404, code=500"]), of("404", ""));
        assert_eq!(read(&["handling=lenient"]), of("", ""));
    }

    /// SVC-10
    #[test]
    fn every_declared_error_can_be_ordered_in_the_sandbox_and_none_elsewhere() {
        let mut ordered = 0;
        for operation in crate::generated::operations::OPERATIONS {
            for (status, codes) in operation.errors {
                for code in *codes {
                    let line = format!("code={status}, error={}", code.as_str());
                    let line = HeaderValue::from_str(&line).expect("a header");
                    let headers: HeaderMap = [(header::HeaderName::from_static(PREFER), line)].into_iter().collect();
                    let error = answer(Environment::Test, operation, &headers).expect_err("an error");
                    assert_eq!((error.status(), error.code), (*status, *code));
                    assert!(matches!(answer(Environment::Live, operation, &headers), Ok(None)));
                    ordered += 1;
                }
            }
        }
        assert!(ordered > 100, "{ordered}");
    }

    #[test]
    fn every_success_in_json_has_an_example_that_can_be_ordered() {
        for operation in crate::generated::operations::OPERATIONS {
            // What has no body has no example: there, the operation's own answer is what was ordered.
            for status in operation.successes.iter().filter(|status| **status != 304) {
                let found = example(operation, *status, None);
                assert_eq!(
                    found.is_some(),
                    operation.id != "get_inspection_pdf",
                    "{} {status}",
                    operation.id
                );
            }
        }
    }
}
