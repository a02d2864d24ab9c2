//! When to try again, and how long to wait before.

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// How often, how long and at what pace a request is tried.
///
/// Retried are connection failures, 429 `rate_limited`/`ip_rate_limited`, 408, 503 `service_unavailable`, and the 502 and 504
/// of gateways. Whether a request took effect is unknown after a broken connection and after all of these but 429: it is then
/// retried only when a second record cannot come of it, which is to say when it is a GET, or when its body has an
/// `external_id`. What was certainly not processed (a connection that was never made, a 429, a timestamp that was refused) is
/// always retried.
///
/// A `Retry-After` is waited for in full; without one the pause doubles from [`base_pause`](Self::base_pause) with
/// every attempt, half of it random so that clients do not return in step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts at most, the first one included; 1 never retries.
    pub attempts: u32,
    /// The time that all attempts and pauses may take together. A pause that would end later is not begun: the last
    /// answer is returned at once.
    pub total: Duration,
    /// The time one attempt may take, from the connection to the end of the body, and never more than what is left of
    /// `total`. `None` leaves it to the HTTP client.
    pub attempt: Option<Duration>,
    /// The first pause.
    pub base_pause: Duration,
    /// The longest pause that is chosen by the client itself.
    pub max_pause: Duration,
}

impl Default for RetryPolicy {
    /// Five attempts within 90 s, 30 s each; pauses from 250 ms to 10 s. A full window of the key's limit fits in.
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
    /// One attempt and no more, of at most 30 s.
    pub fn never() -> Self {
        Self {
            attempts: 1,
            ..Self::default()
        }
    }

    /// The pause after `attempt` (from 1) without word from the service; `random` is from 0 to 1.
    fn backoff(&self, attempt: u32, random: f64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let whole = self.base_pause.saturating_mul(1 << doublings).min(self.max_pause);
        whole / 2 + (whole / 2).mul_f64(random)
    }

    /// The pause before the next attempt, or `None` when this outcome is final.
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
                    // Not all at the same moment: the window's first second is everyone's.
                    Some(told) => told + self.base_pause.mul_f64(random),
                    None => self.backoff(attempt, random),
                }
            }
            Err(error) => {
                let never_sent = error.is_connect();
                let broken = error.is_request() || error.is_timeout() || error.is_body();
                if !(never_sent || broken && repeatable) {
                    return None;
                }
                self.backoff(attempt, random)
            }
        };
        (pause < left).then_some(pause)
    }
}

/// Whether an answer of this status may be followed by another attempt.
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

/// The pause that `Retry-After` asks for: whole seconds, or a date (as proxies send it).
pub(crate) fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = DateTime::parse_from_rfc2822(value).ok()?;
    Some((date.to_utc() - now).to_std().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_are_random_by_half() {
        let policy = RetryPolicy::default();
        for (attempt, least, most) in [(1, 125, 250), (2, 250, 500), (3, 500, 1000), (40, 5000, 10_000)] {
            assert_eq!(policy.backoff(attempt, 0.0).as_millis(), least, "attempt {attempt}");
            assert_eq!(policy.backoff(attempt, 1.0).as_millis(), most, "attempt {attempt}");
        }
    }

    #[test]
    fn retry_after_is_read_as_seconds_and_as_a_date() {
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
    fn only_what_passes_by_itself_is_worth_another_attempt() {
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
