//! The retry policy, and pauses between requests.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// The number, duration and spacing of the attempts at a request.
///
/// The client retries connection failures, 429 `rate_limited`/`ip_rate_limited`, 408, 503 `service_unavailable`, and the 502 and 504
/// of gateways. After a broken connection, 408, 502, 503 or 504 the outcome is unknown. The request is then retried only if it is safe
/// to repeat: a GET, or a body with an `external_id`. Requests that were certainly not processed are always retried: the connection was
/// never established, the status is 429, or the timestamp was rejected.
///
/// The client waits at least as long as `Retry-After` asks. Without the header, the pause doubles from [`base_pause`](Self::base_pause)
/// with every attempt. Half of it is random, so that clients do not retry simultaneously.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of attempts, including the first one. 1 disables retries.
    pub attempts: u32,
    /// The maximum time of all attempts and pauses together. If the next pause would exceed it, the last response is returned
    /// immediately.
    pub total: Duration,
    /// The timeout of one attempt, from the connection to the end of the body, limited by the rest of `total`. `None` leaves it to the
    /// HTTP client.
    pub attempt: Option<Duration>,
    /// The first pause without `Retry-After`.
    pub base_pause: Duration,
    /// The longest pause without `Retry-After`.
    pub max_pause: Duration,
}

impl Default for RetryPolicy {
    /// Five attempts within 90 s, 30 s each, with pauses from 250 ms to 10 s. This is enough for a full rate-limit window of the key.
    fn default() -> Self {
        Self {
            attempts: 5,
            total: Duration::from_secs(90),
            attempt: Some(Duration::from_secs(30)),
            base_pause: Duration::from_millis(250),
            max_pause: Duration::from_secs(10),
        }
    }
}

impl RetryPolicy {
    /// Returns a policy with a single attempt of at most 30 s.
    pub fn never() -> Self {
        Self {
            attempts: 1,
            ..Self::default()
        }
    }

    /// Returns the pause after `attempt` (from 1) without `Retry-After`. `random` is from 0 to 1.
    fn backoff(&self, attempt: u32, random: f64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let whole = self.base_pause.saturating_mul(1 << doublings).min(self.max_pause);
        whole / 2 + (whole / 2).mul_f64(random)
    }

    /// Returns the pause before the next attempt, or `None` if this outcome is final.
    pub(crate) fn pause(
        &self,
        outcome: &reqwest::Result<reqwest::Response>,
        attempt: u32,
        repeatable: bool,
        left: Duration,
    ) -> Option<Duration> {
        if attempt >= self.attempts {
            return None;
        }
        let random = rand::random::<f64>();
        let pause = match outcome {
            Ok(response) => {
                if !status_allows(response.status(), repeatable) {
                    return None;
                }
                match retry_after(response.headers(), Utc::now()) {
                    // The random part prevents all clients from retrying at the start of the window.
                    Some(retry_after) => retry_after + self.base_pause.mul_f64(random),
                    None => self.backoff(attempt, random),
                }
            }
            Err(error) => {
                let not_sent = error.is_connect();
                let broken = error.is_request() || error.is_timeout() || error.is_body();
                if !(not_sent || broken && repeatable) {
                    return None;
                }
                self.backoff(attempt, random)
            }
        };
        (pause < left).then_some(pause)
    }
}

/// Returns whether a response with this status may be retried.
fn status_allows(status: StatusCode, repeatable: bool) -> bool {
    match status {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::REQUEST_TIMEOUT
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => repeatable,
        _ => false,
    }
}

/// Returns the pause that `Retry-After` asks for. It is a number of seconds, or a date if a proxy sent it.
pub(crate) fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = DateTime::parse_from_rfc2822(value).ok()?;
    Some((date.to_utc() - now).to_std().unwrap_or_default())
}

/// A pause before the next request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Its length.
    pub duration: Duration,
    /// Its reason.
    pub reason: PauseReason,
}

/// The reason of a [`Pause`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PauseReason {
    /// The quota of the key or of the IP address is used up, except for a reserve.
    Quota,
    /// The response had this status, and the request is retried.
    Status(StatusCode),
    /// No response arrived, and the request is retried.
    NoResponse,
}

impl PauseReason {
    /// Returns the reason for a retry after this outcome.
    pub(crate) fn of(outcome: &reqwest::Result<reqwest::Response>) -> Self {
        match outcome.as_ref().map(reqwest::Response::status) {
            Ok(StatusCode::TOO_MANY_REQUESTS) => Self::Quota,
            Ok(status) => Self::Status(status),
            Err(_) => Self::NoResponse,
        }
    }
}

impl fmt::Display for PauseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quota => f.write_str("the quota is used up"),
            Self::Status(status) => write!(f, "the service responded {}", status.as_u16()),
            Self::NoResponse => f.write_str("the service did not respond"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum_and_are_half_random() {
        let policy = RetryPolicy::default();
        for (attempt, min, max) in [(1, 125, 250), (2, 250, 500), (3, 500, 1000), (40, 5000, 10_000)] {
            assert_eq!(policy.backoff(attempt, 0.0).as_millis(), min, "attempt {attempt}");
            assert_eq!(policy.backoff(attempt, 1.0).as_millis(), max, "attempt {attempt}");
        }
    }

    #[test]
    fn retry_after_is_parsed_as_seconds_or_a_date() {
        let now = "2026-06-15T09:30:00Z".parse().unwrap();
        for (value, pause) in [
            ("17", Some(17)),
            ("Mon, 15 Jun 2026 09:30:05 GMT", Some(5)),
            ("Mon, 15 Jun 2026 09:29:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ] {
            let headers = [(RETRY_AFTER, value.parse().unwrap())].into_iter().collect();
            assert_eq!(retry_after(&headers, now), pause.map(Duration::from_secs), "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn only_temporary_failures_are_retried() {
        for (status, repeatable, allowed) in [
            (429, false, true),
            (503, true, true),
            (503, false, false),
            (408, true, true),
            (408, false, false),
            (502, true, true),
            (504, false, false),
            (500, true, false),
            (401, true, false),
            (200, true, false),
        ] {
            assert_eq!(
                status_allows(StatusCode::from_u16(status).unwrap(), repeatable),
                allowed,
                "{status}"
            );
        }
    }
}
