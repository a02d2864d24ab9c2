//! The codes of errors.

use std::fmt;

/// Declares [`Code`]: each name with its word in the document.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)+) => {
        /// What went wrong, as the service's `error.code` says it. A code that this version of the crate does not know is
        /// [`Other`](Self::Other): treat it by the answer's status.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $name,)+
            /// One that came after this version of the crate.
            Other(String),
        }

        impl Code {
            /// All codes that this version of the crate knows.
            pub const KNOWN: &[Self] = &[$(Self::$name),+];

            /// The word in the document, such as `not_found`.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => $word,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl From<String> for Code {
            fn from(word: String) -> Self {
                match word.as_str() {
                    $($word => Self::$name,)+
                    _ => Self::Other(word),
                }
            }
        }
    };
}

codes! {
    /// 400: a parameter or the body is wrong; the message says which and how.
    InvalidRequest = "invalid_request",
    /// 401: one of the four headers is absent, doubled or misshapen.
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
    /// 404: there is no such thing, or it is not open to you.
    NotFound = "not_found",
    /// 405: the path has no such method.
    MethodNotAllowed = "method_not_allowed",
    /// 408: the body did not arrive in time.
    RequestTimeout = "request_timeout",
    /// 413: the body is larger than 1 MB.
    PayloadTooLarge = "payload_too_large",
    /// 429: the key's quota is used up.
    RateLimited = "rate_limited",
    /// 429: the address's quota is used up.
    IpRateLimited = "ip_rate_limited",
    /// 500: a fault of the service.
    InternalError = "internal_error",
    /// 503: the service cannot do it for the moment.
    ServiceUnavailable = "service_unavailable",
}

impl Code {
    /// What to do about it, where that can be said.
    pub fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            Self::ExpiredTimestamp => {
                "this machine's clock and the server's differ by more than 300 s: synchronize the clock (NTP; \
                 `timedatectl status` tells whether it is), and compare with `server_time` of GET /health"
            }
            Self::InvalidSignature => {
                "check that the secret belongs to this key id, and that nothing between here and the service \
                 rewrites path, query or body"
            }
            Self::InvalidKey => {
                "check the key id and that it belongs to this address's environment; if they are right, ask the \
                 operator whether the key is active and your address is admitted"
            }
            Self::MissingSignatureHeaders => "look for a proxy that drops or doubles the X-Partner-* headers",
            Self::ReplayDetected => "look for a proxy that sends requests twice",
            Self::ScopeRequired => "ask the operator to give the key this scope",
            Self::RateLimited | Self::IpRateLimited => "send less often, or ask the operator for a higher limit",
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
    fn a_code_is_read_back_from_its_word_and_an_unknown_one_is_kept() {
        for code in Code::KNOWN {
            assert_eq!(Code::from(code.to_string()), *code);
        }
        assert_eq!(Code::from("brand_new".to_owned()), Code::Other("brand_new".to_owned()));
    }
}
