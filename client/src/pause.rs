//! Pauses between requests.

use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;

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
