//! From a generated call to an [`Answer`] or a [`Problem`].

use std::ops::Deref;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use progenitor_client::{ClientHooks, ClientInfo, OperationInfo};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use crate::clock;
use crate::generated::{Client, Error, ResponseValue, types};
use crate::problem::Problem;
use crate::seen;

/// The path to which packages of measurements are posted.
const MEASUREMENTS: &str = "/api/v1/partner/test-line/measurements";

/// What every generated call's `send()` can be continued with.
///
/// `send()` alone gives progenitor's own types; `send().answer()` gives an [`Answer`] that knows its request id and what is
/// left of the quota, or a [`Problem`] that says what to do:
///
/// ```no_run
/// # async fn example(client: partner_api_client::Client) -> Result<(), partner_api_client::Problem> {
/// use partner_api_client::Call as _;
///
/// let health = client.get_health().send().answer().await?;
/// println!("{} (request {:?})", health.server_time, health.request_id());
/// # Ok(())
/// # }
/// ```
pub trait Call<T: Send>: Future<Output = Result<ResponseValue<T>, Error<types::Error>>> + Send + Sized {
    /// Waits for the answer.
    fn answer(self) -> impl Future<Output = Result<Answer<T>, Problem>> + Send {
        async {
            let (outcome, seen) = seen::watch(self).await;
            outcome.map(Answer).map_err(|error| Problem::of(error, &seen))
        }
    }
}

impl<T: Send, F: Future<Output = Result<ResponseValue<T>, Error<types::Error>>> + Send> Call<T> for F {}

/// What the service answered: the body, to which this dereferences, and what its headers say.
#[derive(Debug)]
pub struct Answer<T>(ResponseValue<T>);

impl<T> Answer<T> {
    /// The body.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    /// 200, or 201 for what is new.
    pub fn status(&self) -> StatusCode {
        self.0.status()
    }

    /// All headers.
    pub fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// The id to quote to the operator.
    pub fn request_id(&self) -> Option<&str> {
        self.headers().get("x-request-id")?.to_str().ok()
    }

    /// What is left of the key's quota.
    pub fn rate_limit(&self) -> Option<RateLimit> {
        RateLimit::of(self.headers())
    }

    /// When it was answered, by the service's clock, in whole seconds.
    pub fn date(&self) -> Option<DateTime<Utc>> {
        clock::date(self.headers())
    }

    /// The length of the body in bytes, where it was announced.
    pub fn content_length(&self) -> Option<u64> {
        self.0.content_length()
    }
}

impl<T> Deref for Answer<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl Answer<types::MeasurementResponse> {
    /// Whether it is about *another* package of the same `external_id`: two measurements were given one id, the first one
    /// stands, and nothing of this one was recorded but its bytes. Give this one an id of its own and send it again.
    pub fn is_payload_mismatch(&self) -> bool {
        let told = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"true");
        self.data.payload_mismatch == Some(true)
            || self.headers().get("x-idempotency-payload-mismatch").is_some_and(told)
    }
}

/// What is left of the key's quota, from the `RateLimit` field of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests that still pass in this window.
    pub remaining: u32,
    /// The time until the next window.
    pub resets_in: Duration,
}

impl RateLimit {
    /// Reads `"default";r=59;t=60`. Without the field, or with another form of it, nothing is known.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get("ratelimit")?.to_str().ok()?;
        let parameter = |name: &str| {
            text.split(';')
                .find_map(|piece| piece.trim().strip_prefix(name)?.strip_prefix('=')?.parse().ok())
        };
        Some(Self {
            remaining: parameter("r")?,
            resets_in: Duration::from_secs(parameter("t")?.into()),
        })
    }

    /// How long to wait before the next request, so that this many are left to others: not at all while there are more.
    pub fn pause_leaving(&self, reserve: u32) -> Option<Duration> {
        (self.remaining <= reserve).then_some(self.resets_in)
    }
}

/// Sends a package of measurements as it stands in these bytes: nothing is read, changed or left out of it, members that this
/// crate does not know included. Signed and retried like every call; without an `external_id` in the package an attempt whose
/// outcome is unknown is not repeated.
///
/// # Errors
/// As of any call.
pub async fn submit_raw(
    client: &Client,
    package: impl Into<Bytes>,
) -> Result<Answer<types::MeasurementResponse>, Problem> {
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
    send.answer().await
}

/// The `X-Request-Id` of an answer.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    Some(headers.get("x-request-id")?.to_str().ok()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quota_is_read_from_its_field_or_unknown() {
        let of = |value: &str| {
            RateLimit::of(
                &[("ratelimit".parse().unwrap(), value.parse().unwrap())]
                    .into_iter()
                    .collect(),
            )
        };
        let limit = of(r#""default";r=3;t=17"#).unwrap();
        assert_eq!((limit.remaining, limit.resets_in), (3, Duration::from_secs(17)));
        assert_eq!(limit.pause_leaving(2), None);
        assert_eq!(limit.pause_leaving(3), Some(Duration::from_secs(17)));
        for other in ["", "limit=60", r#""default";r=many;t=17"#, r#""default";r=3"#] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(RateLimit::of(&HeaderMap::new()), None);
    }
}
