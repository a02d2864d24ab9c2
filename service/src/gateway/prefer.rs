//! Prepared responses in the sandbox: `Prefer: code=429, error=rate_limited` (RFC 7240) requests a response that the contract
//! declares, `Prefer: delay=5` a slow one, and `Prefer: drop` none, so that partners can test how their code handles it (SVC-10).

use std::sync::LazyLock;
use std::time::Duration;

use bounded_listener::DropConnection;
use codegen_runtime::ValidationError;
use dropshot::Body;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use partner_api_gateway::Record;
use partner_api_signing::Environment;
use serde_json::Value;

use super::public::SPEC_JSON;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::generated::operations::Operation;
use crate::request_log::Reason;

const PREFER: &str = "prefer";

/// The `Retry-After` of prepared responses that have one.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The longest delay of a response that can be requested, in seconds.
const DELAY_MAX: u64 = 60;

/// The response that a request prefers, if any.
#[derive(Debug, Default, PartialEq, Eq)]
struct Preference {
    status: Option<String>,
    error: Option<String>,
    example: Option<String>,
    delay: Option<String>,
    drop: Option<String>,
}

/// The manner in which a request prefers to be answered: late, or not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Delivery {
    delay: Duration,
    is_dropped: bool,
}

impl Delivery {
    /// Returns the delivery that a request prefers. Outside the sandbox, and for an invalid preference, it is the normal one.
    pub(super) fn of(environment: Environment, headers: &HeaderMap) -> Self {
        if environment != Environment::Test || !headers.contains_key(PREFER) {
            return Self::default();
        }
        let preference = Preference::of(headers);
        Self {
            delay: preference.delay().ok().flatten().unwrap_or_default(),
            is_dropped: preference.drop.is_some(),
        }
    }

    /// Delays the response to an admitted request, and marks it as not to be sent.
    pub(super) async fn apply(self, record: &Record, response: &mut Response<Body>) {
        // Only responses to admitted requests have the header, except prepared ones with some statuses.
        let is_admitted = response.headers().contains_key("ratelimit") || record.reason == Some(Reason::AnswerOrdered);
        if !is_admitted {
            return;
        }
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        if self.is_dropped {
            response.extensions_mut().insert(DropConnection);
        }
    }
}

/// Returns the prepared response that a request prefers. Returns `None` outside the sandbox, or if the request asks for no response
/// other than the operation's normal one.
///
/// # Errors
/// The error that the request prefers; 400 for a response that the contract does not declare for the operation.
pub(super) fn prepared(
    environment: Environment,
    operation: &Operation,
    headers: &HeaderMap,
) -> Result<Option<Response<Body>>, ApiError> {
    if environment != Environment::Test || !headers.contains_key(PREFER) {
        return Ok(None);
    }
    let preference = Preference::of(headers);
    preference.delay()?;
    let Some(status) = &preference.status else {
        return Ok(None);
    };
    let Ok(number) = status.parse::<u16>() else {
        return Err(undeclared(operation, status));
    };
    if operation.successes.contains(&number) {
        return example(operation, number, preference.example.as_deref());
    }
    let codes = operation.errors.iter().find(|(declared, _)| *declared == number);
    let codes = codes.map(|(_, codes)| *codes).unwrap_or_default();
    let wanted = |code: &&ErrorCode| preference.error.as_deref().is_none_or(|error| code.as_str() == error);
    match codes.iter().find(wanted) {
        Some(code) => Err(requested(operation, *code)),
        None if codes.is_empty() => Err(undeclared(operation, status)),
        None => {
            let known: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
            let message = format!("error must be one of {} with code={number}", known.join(", "));
            Err(invalid(message))
        }
    }
}

impl Preference {
    /// Parses the `Prefer` headers. Of a repeated preference, the first one counts (RFC 7240, section 2). Others are ignored.
    fn of(headers: &HeaderMap) -> Self {
        let mut found = Preference::default();
        let lines = headers.get_all(PREFER).iter().filter_map(|line| line.to_str().ok());
        for preference in lines.flat_map(|line| line.split([',', ';'])) {
            let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
            let field = match name.trim().to_ascii_lowercase().as_str() {
                "code" => &mut found.status,
                "error" => &mut found.error,
                "example" => &mut found.example,
                "delay" => &mut found.delay,
                "drop" => &mut found.drop,
                _ => continue,
            };
            field.get_or_insert_with(|| value.trim().trim_matches('"').to_string());
        }
        found
    }

    /// Returns the delay.
    ///
    /// # Errors
    /// 400 if it is not a whole number of seconds up to [`DELAY_MAX`].
    fn delay(&self) -> Result<Option<Duration>, ApiError> {
        let Some(text) = &self.delay else { return Ok(None) };
        match text.parse() {
            Ok(seconds @ 1..=DELAY_MAX) => Ok(Some(Duration::from_secs(seconds))),
            _ => Err(invalid(format!(
                "delay must be a whole number of seconds from 1 to {DELAY_MAX}, is {}",
                printable(text)
            ))),
        }
    }
}

/// Returns the requested error.
fn requested(operation: &Operation, code: ErrorCode) -> ApiError {
    let has_retry_after = matches!(
        code,
        ErrorCode::RateLimited | ErrorCode::IpRateLimited | ErrorCode::ServiceUnavailable
    );
    ApiError {
        retry_after: has_retry_after.then_some(RETRY_AFTER),
        allow: (code == ErrorCode::MethodNotAllowed).then(|| operation.method.to_string()),
        reason: Some(Reason::AnswerOrdered),
        ..ApiError::new(
            code,
            "this response was requested with the header Prefer, which only the sandbox supports",
        )
    }
}

fn undeclared(operation: &Operation, status: &str) -> ApiError {
    let errors = operation.errors.iter().map(|(status, _)| status);
    let declared: Vec<String> = operation.successes.iter().chain(errors).map(u16::to_string).collect();
    invalid(format!(
        "code must be one of {}, is {}",
        declared.join(", "),
        printable(status)
    ))
}

/// Returns the beginning of a preference for a message.
fn printable(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).take(40).collect()
}

fn invalid(message: String) -> ApiError {
    ApiError::invalid_request(ValidationError::of_parameter("Prefer", message))
}

/// Returns the contract's example of a success by its name, or the first one. Returns `None` if there is no JSON example.
///
/// # Errors
/// 400 if the success has no example with this name.
fn example(operation: &Operation, status: u16, name: Option<&str>) -> Result<Option<Response<Body>>, ApiError> {
    let named = examples(operation, status);
    let chosen = match name {
        Some(name) => named.iter().find(|(known, _)| *known == name),
        None => named.first(),
    };
    if let (Some(name), None) = (name, chosen) {
        let known: Vec<&str> = named.iter().map(|(known, _)| *known).collect();
        let known = if known.is_empty() {
            "absent".to_string()
        } else {
            format!("one of {}", known.join(", "))
        };
        return Err(invalid(format!(
            "example must be {known} with code={status}, is {}",
            printable(name)
        )));
    }
    Ok(chosen.and_then(|(_, body)| json_response(status, body)))
}

/// Returns the names and bodies of the contract's JSON examples of a success. A single example has the name "example".
fn examples(operation: &Operation, status: u16) -> Vec<(&'static str, &'static Value)> {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(SPEC_JSON).unwrap_or_default());
    let (path, method) = (operation.path, operation.method.to_ascii_lowercase());
    let content = &DOCUMENT["paths"][path][method]["responses"][status.to_string()]["content"]["application/json"];
    let single = content.get("example").map(|body| ("example", body));
    let several = content.get("examples").and_then(Value::as_object);
    let several = several.into_iter().flatten();
    let several = several.filter_map(|(name, example)| Some((name.as_str(), example.get("value")?)));
    single.into_iter().chain(several).collect()
}

fn json_response(status: u16, body: &Value) -> Option<Response<Body>> {
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
    fn preferences_are_parsed_as_in_rfc_7240() {
        let read = |lines: &[&'static str]| Preference::of(&headers(lines));
        let of = |status: &str, error: &str| Preference {
            status: (!status.is_empty()).then(|| status.to_string()),
            error: (!error.is_empty()).then(|| error.to_string()),
            ..Preference::default()
        };
        assert_eq!(read(&["code=429, error=rate_limited"]), of("429", "rate_limited"));
        assert_eq!(read(&["Code=\"429\"; error = rate_limited"]), of("429", "rate_limited"));
        assert_eq!(read(&["respond-async, wait=10", "code=404"]), of("404", ""));
        assert_eq!(read(&["code=404, code=500"]), of("404", ""));
        assert_eq!(read(&["handling=lenient"]), of("", ""));
    }

    /// SVC-10
    #[test]
    fn a_delivery_is_read_only_in_the_sandbox_and_an_invalid_delay_is_rejected() {
        let both = Delivery {
            delay: Duration::from_secs(7),
            is_dropped: true,
        };
        let request = headers(&["delay=7, drop", "delay=9"]);
        assert_eq!(Delivery::of(Environment::Test, &request), both);
        assert_eq!(Delivery::of(Environment::Live, &request), Delivery::default());
        let operation = &crate::generated::operations::OPERATIONS[0];
        for line in [
            "delay=0",
            "delay=61",
            "delay=1.5",
            "delay=-1",
            "delay",
            "delay=99999999999999999999",
        ] {
            let request = headers(&[line]);
            assert_eq!(Delivery::of(Environment::Test, &request), Delivery::default(), "{line}");
            let error = prepared(Environment::Test, operation, &request).expect_err(line);
            assert_eq!(error.status(), 400, "{line}");
        }
    }

    /// SVC-10
    #[test]
    fn every_declared_error_can_be_requested_in_the_sandbox_and_none_elsewhere() {
        let mut requested = 0;
        for operation in crate::generated::operations::OPERATIONS {
            for (status, codes) in operation.errors {
                for code in *codes {
                    let line = format!("code={status}, error={}", code.as_str());
                    let line = HeaderValue::from_str(&line).expect("a header");
                    let headers: HeaderMap = [(header::HeaderName::from_static(PREFER), line)].into_iter().collect();
                    let error = prepared(Environment::Test, operation, &headers).expect_err("an error");
                    assert_eq!((error.status(), error.code), (*status, *code));
                    assert!(matches!(prepared(Environment::Live, operation, &headers), Ok(None)));
                    requested += 1;
                }
            }
        }
        assert!(requested > 100, "{requested}");
    }

    #[test]
    fn every_success_in_json_has_an_example_that_can_be_requested() {
        for operation in crate::generated::operations::OPERATIONS {
            // A response without a body has no example; the operation itself sends it.
            for status in operation.successes.iter().filter(|status| **status != 304) {
                let found = example(operation, *status, None).expect("no error");
                assert_eq!(
                    found.is_some(),
                    operation.id != "get_inspection_pdf",
                    "{} {status}",
                    operation.id
                );
            }
        }
    }

    #[test]
    fn an_unknown_example_is_rejected_with_the_known_names() {
        let operations = crate::generated::operations::OPERATIONS;
        let submit = operations.iter().find(|operation| operation.id == "submit_measurement");
        let request = headers(&["code=201, example=nope"]);
        let error = prepared(Environment::Test, submit.expect("an operation"), &request).expect_err("an error");
        assert_eq!(error.status(), 400);
        let details = format!("{error:?}");
        let known = examples(submit.expect("an operation"), 201);
        assert!(
            !known.is_empty() && known.iter().all(|(name, _)| details.contains(name)),
            "{details}"
        );
    }
}
