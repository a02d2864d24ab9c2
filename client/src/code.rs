//! Error codes.

use std::fmt;

/// Declares [`Code`]: each variant with its value in the document.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal,)+) => {
        /// The `error.code` of a response. A code that this version of the crate does not know is [`Other`](Self::Other): handle it by
        /// the status of the response.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $name,)+
            /// A code that was added after this version of the crate.
            Other(String),
        }

        impl Code {
            /// All codes that this version of the crate knows.
            pub const KNOWN: &[Self] = &[$(Self::$name),+];

            /// Returns the value in the document, such as `not_found`.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => $value,)+
                    Self::Other(value) => value,
                }
            }
        }

        impl From<String> for Code {
            fn from(value: String) -> Self {
                match value.as_str() {
                    $($value => Self::$name,)+
                    _ => Self::Other(value),
                }
            }
        }
    };
}

codes! {
    /// 400: a parameter or the body is wrong; the message says which and how.
    InvalidRequest = "invalid_request",
    /// 401: one of the four headers is missing, repeated or malformed.
    MissingSignatureHeaders = "missing_signature_headers",
    /// 401: the key is not accepted here.
    InvalidKey = "invalid_key",
    /// 401: the signature does not verify.
    InvalidSignature = "invalid_signature",
    /// 401: the timestamp is more than 300 s from the service's time.
    ExpiredTimestamp = "expired_timestamp",
    /// 401: the nonce was used before.
    ReplayDetected = "replay_detected",
    /// 403: the key lacks the scope that the operation needs.
    ScopeRequired = "scope_required",
    /// 404: not found, or not accessible with this key.
    NotFound = "not_found",
    /// 405: the path does not support this method.
    MethodNotAllowed = "method_not_allowed",
    /// 408: the body did not arrive in time.
    RequestTimeout = "request_timeout",
    /// 413: the body is larger than 1 MB.
    PayloadTooLarge = "payload_too_large",
    /// 429: the key's quota is used up.
    RateLimited = "rate_limited",
    /// 429: the quota of the IP address is used up.
    IpRateLimited = "ip_rate_limited",
    /// 500: an internal error of the service.
    InternalError = "internal_error",
    /// 503: the service is temporarily unavailable.
    ServiceUnavailable = "service_unavailable",
}

impl Code {
    /// Returns the remedy, if there is a general one that the service's message does not contain.
    pub fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            Self::ExpiredTimestamp => {
                "this machine's clock and the server's differ by more than 300 s: synchronize the clock with NTP (check it with \
                 `timedatectl status`), and compare it with `server_time` of GET /health"
            }
            Self::InvalidSignature => {
                "check that the secret belongs to this key ID, and that no proxy rewrites the path, the query or the body"
            }
            Self::InvalidKey => {
                "check the key ID and that it belongs to the environment of this URL; if both are correct, ask the operator \
                 whether the key is active and your IP address is allowed"
            }
            Self::MissingSignatureHeaders => "check whether a proxy drops or repeats the X-Partner-* headers",
            Self::ReplayDetected => "check whether a proxy sends requests twice",
            Self::RateLimited | Self::IpRateLimited => "send fewer requests, or ask the operator for a higher limit",
            _ => return None,
        })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip_and_an_unknown_one_is_kept() {
        for code in Code::KNOWN {
            assert_eq!(Code::from(code.to_string()), *code);
        }
        assert_eq!(Code::from("brand_new".to_owned()), Code::Other("brand_new".to_owned()));
    }
}
