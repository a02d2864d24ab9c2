//! The canonical string, which is the part of a request that is signed.

use std::fmt;

use sha2::{Digest, Sha256};

/// BODY_SHA256 of a request without a body: the SHA-256 of the empty byte string in lower-case hex.
pub const EMPTY_BODY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Computes BODY_SHA256: the SHA-256 of the exact bytes of the body in lower-case hex.
pub fn body_sha256(body: &[u8]) -> String {
    format!("{:x}", Sha256::digest(body))
}

/// The six parts of the canonical string. `Display` joins them with line feeds, without a trailing one.
///
/// The canonical string contains nothing secret, so the service may show it to a partner whose signature is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canonical<'a> {
    /// METHOD, in any letter case. The canonical string has it in upper case.
    pub method: &'a str,
    /// PATH: the raw path as sent, beginning with `/api/v1/partner/...`, without host and query.
    pub path: &'a str,
    /// CANONICAL_QUERY, from [`canonical_query`](crate::canonical_query); empty if there is no query.
    pub canonical_query: &'a str,
    /// TIMESTAMP: the exact text of the header (Unix time in seconds).
    pub timestamp: &'a str,
    /// NONCE: the exact text of the header.
    pub nonce: &'a str,
    /// BODY_SHA256, from [`body_sha256`].
    pub body_sha256: &'a str,
}

impl Canonical<'_> {
    /// Returns the canonical string, in one allocation.
    pub fn render(&self) -> String {
        let parts = [
            self.path,
            self.canonical_query,
            self.timestamp,
            self.nonce,
            self.body_sha256,
        ];
        let length = self.method.len() + parts.iter().map(|part| part.len() + 1).sum::<usize>();
        let mut rendered = String::with_capacity(length);
        rendered.push_str(self.method);
        rendered.make_ascii_uppercase();
        for part in parts {
            rendered.push('\n');
            rendered.push_str(part);
        }
        rendered
    }
}

impl fmt::Display for Canonical<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constant_is_the_digest_of_an_empty_body() {
        assert_eq!(body_sha256(b""), EMPTY_BODY_SHA256);
    }

    /// SIG-3
    #[test]
    fn an_empty_query_has_its_line_and_there_is_no_trailing_line_feed() {
        let canonical = Canonical {
            method: "get",
            path: "/api/v1/partner/health",
            canonical_query: "",
            timestamp: "1780000000",
            nonce: "0123456789abcdef",
            body_sha256: "b",
        };
        assert_eq!(
            canonical.to_string(),
            "GET\n/api/v1/partner/health\n\n1780000000\n0123456789abcdef\nb"
        );
    }
}
