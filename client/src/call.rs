//! Responses of generated calls: [`Response`], or [`Problem`] in case of an error. Generated code returns the error of an invalid
//! response without its headers, so the last response of a call is tracked.

use std::cell::RefCell;
use std::ops::Deref;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use progenitor_client::{ClientHooks, ClientInfo, OperationInfo};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use crate::clock;
use crate::generated::{Client, Error, ResponseValue, types};
use crate::problem::{LastResponse, Problem, request_id};

/// The path of `submit_measurement`.
const MEASUREMENTS: &str = "/api/v1/partner/test-line/measurements";

/// Extends the `send()` of every generated call.
///
/// `send()` alone returns progenitor's types. `send().response()` returns a [`Response`] with the request ID and the remaining quota, or a
/// [`Problem`] with a remedy:
///
/// ```no_run
/// # async fn example(client: partner_api_client::Client) -> Result<(), partner_api_client::Problem> {
/// use partner_api_client::Call as _;
///
/// let health = client.get_health().send().response().await?;
/// println!("{} (request {:?})", health.server_time, health.request_id());
/// # Ok(())
/// # }
/// ```
pub trait Call<T: Send>: Future<Output = Result<ResponseValue<T>, Error<types::Error>>> + Send + Sized {
    /// Waits for the response.
    fn response(self) -> impl Future<Output = Result<Response<T>, Problem>> + Send {
        async {
            let (outcome, last) = track(self).await;
            match outcome {
                Ok(value) => Ok(Response(value)),
                Err(Error::UnexpectedResponse(response)) => Err(Problem::of_undeclared(response).await),
                Err(error) => Err(Problem::of(error, &last)),
            }
        }
    }
}

impl<T: Send, F: Future<Output = Result<ResponseValue<T>, Error<types::Error>>> + Send> Call<T> for F {}

/// A response of the service. It dereferences to the body and has accessors for the headers.
#[derive(Debug)]
pub struct Response<T>(ResponseValue<T>);

impl<T> Response<T> {
    /// Returns the body.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    /// Returns the status: 200, or 201 if something was created.
    pub fn status(&self) -> StatusCode {
        self.0.status()
    }

    /// Returns all headers.
    pub fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// Returns the request ID, which the operator needs to find the request.
    pub fn request_id(&self) -> Option<&str> {
        self.headers().get("x-request-id")?.to_str().ok()
    }

    /// Returns the remaining quota of the key.
    pub fn rate_limit(&self) -> Option<RateLimit> {
        RateLimit::of(self.headers())
    }

    /// Returns the quota of the key.
    pub fn quota(&self) -> Option<Quota> {
        Quota::of(self.headers())
    }

    /// Returns the time of the response by the service's clock, in whole seconds.
    pub fn date(&self) -> Option<DateTime<Utc>> {
        clock::date(self.headers())
    }

    /// Returns the length of the body in bytes, if the response contains it.
    pub fn content_length(&self) -> Option<u64> {
        self.0.content_length()
    }
}

impl<T> Deref for Response<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl Response<types::MeasurementResponse> {
    /// Returns whether the response describes *another* package with the same `external_id`. That package is unchanged; of this one
    /// only the bytes were recorded. Submit this one again with a new ID.
    pub fn is_payload_mismatch(&self) -> bool {
        let is_true = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"true");
        self.data.payload_mismatch == Some(true)
            || self
                .headers()
                .get("x-idempotency-payload-mismatch")
                .is_some_and(is_true)
    }
}

/// The remaining quota of the key, from the `RateLimit` header of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// The number of requests left in this window.
    pub remaining: u32,
    /// The time until the next window.
    pub resets_in: Duration,
}

impl RateLimit {
    /// Parses a header such as `"default";r=59;t=60`. Returns `None` if it is missing or has another form.
    fn of(headers: &HeaderMap) -> Option<Self> {
        Some(Self {
            remaining: parameter(headers, "ratelimit", "r")?,
            resets_in: Duration::from_secs(parameter(headers, "ratelimit", "t")?.into()),
        })
    }

    /// Returns the time to wait before the next request so that `reserve` requests are left to others, or `None` if more are left.
    pub fn pause_with_reserve(&self, reserve: u32) -> Option<Duration> {
        (self.remaining <= reserve).then_some(self.resets_in)
    }
}

/// The quota of the key, from the `RateLimit-Policy` header of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The number of requests in each window.
    pub requests: u32,
    /// The length of a window.
    pub window: Duration,
}

impl Quota {
    /// Parses a header such as `"default";q=60;w=60`. Returns `None` if it is missing or has another form.
    fn of(headers: &HeaderMap) -> Option<Self> {
        Some(Self {
            requests: parameter(headers, "ratelimit-policy", "q")?,
            window: Duration::from_secs(parameter(headers, "ratelimit-policy", "w")?.into()),
        })
    }
}

/// Returns a parameter of a header, such as `r` of `"default";r=59;t=60`.
fn parameter(headers: &HeaderMap, header: &str, name: &str) -> Option<u32> {
    let mut pieces = headers.get(header)?.to_str().ok()?.split(';');
    pieces.find_map(|piece| piece.trim().strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

/// Submits the exact bytes of a package, including members that this crate does not know. The request is signed and retried like every
/// call. Without an `external_id` in the package, an attempt whose outcome is unknown is not repeated.
///
/// # Errors
/// See [`Call::response`].
pub async fn submit_raw(
    client: &Client,
    package: impl Into<Bytes>,
) -> Result<Response<types::MeasurementResponse>, Problem> {
    let request = client
        .client()
        .post(format!("{}{MEASUREMENTS}", client.baseurl()))
        .header(CONTENT_TYPE, "application/json")
        .body(package.into())
        .build();
    let send = async {
        let mut request = request.map_err(Error::CommunicationError)?;
        let info = OperationInfo {
            operation_id: "submit_measurement",
        };
        client.pre(&mut request, &info).await?;
        let response = client.exec(request, &info).await?;
        match response.status() {
            StatusCode::OK | StatusCode::CREATED => ResponseValue::from_response(response).await,
            status if status.is_client_error() || status.is_server_error() => {
                Err(Error::ErrorResponse(ResponseValue::from_response(response).await?))
            }
            _ => Err(Error::UnexpectedResponse(response)),
        }
    };
    send.response().await
}

tokio::task_local! {
    static LAST_RESPONSE: RefCell<LastResponse>;
}

/// Records a response of the current call, if it is [tracked](track).
pub(crate) fn record(response: &reqwest::Response) {
    let last = LastResponse {
        request_id: request_id(response.headers()),
        status: Some(response.status()),
    };
    // A call that is sent without `response()` is not tracked.
    let _ = LAST_RESPONSE.try_with(|cell| cell.replace(last));
}

/// Runs a call and returns its output and its last response.
pub(crate) async fn track<F: Future>(call: F) -> (F::Output, LastResponse) {
    LAST_RESPONSE
        .scope(RefCell::default(), async {
            let output = call.await;
            let last = LAST_RESPONSE.try_with(|cell| cell.take()).unwrap_or_default();
            (output, last)
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quota_is_parsed_from_its_header_or_unknown() {
        let of = |value: &str| {
            RateLimit::of(
                &[("ratelimit".parse().unwrap(), value.parse().unwrap())]
                    .into_iter()
                    .collect(),
            )
        };
        let limit = of(r#""default";r=3;t=17"#).unwrap();
        assert_eq!((limit.remaining, limit.resets_in), (3, Duration::from_secs(17)));
        assert_eq!(limit.pause_with_reserve(2), None);
        assert_eq!(limit.pause_with_reserve(3), Some(Duration::from_secs(17)));
        for other in ["", "limit=60", r#""default";r=many;t=17"#, r#""default";r=3"#] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(RateLimit::of(&HeaderMap::new()), None);
        let policy = HeaderMap::from_iter([(
            "ratelimit-policy".parse().unwrap(),
            HeaderValue::from_static(r#""default";q=60;w=30"#),
        )]);
        let quota = Quota {
            requests: 60,
            window: Duration::from_secs(30),
        };
        assert_eq!((Quota::of(&policy), Quota::of(&HeaderMap::new())), (Some(quota), None));
    }
}
