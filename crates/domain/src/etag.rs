//! What names the very bytes of an answer, so that they need not be sent again (REP-16).

use data_encoding::BASE64URL_NOPAD;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// How much of the digest is kept: 128 bits, of which no two answers will ever be alike.
const KEPT: usize = 16;

/// An entity tag, in its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ETag(String);

impl ETag {
    /// Of a JSON answer: of the bytes that it is sent as.
    ///
    /// # Errors
    /// It does not serialise.
    pub fn of_json<T: Serialize>(body: &T) -> Result<Self, serde_json::Error> {
        let mut digest = Sha256::new();
        serde_json::to_writer(&mut digest, body)?;
        Ok(Self::from_digest(digest))
    }

    /// Of these bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut digest = Sha256::new();
        digest.update(bytes);
        Self::from_digest(digest)
    }

    /// Of what something else names: the key of an object that is never overwritten, or the store's own tag. It does not tell
    /// that name.
    pub fn of_name(name: &str) -> Self {
        let mut digest = Sha256::new();
        digest.update(name);
        Self::from_digest(digest)
    }

    fn from_digest(digest: Sha256) -> Self {
        Self(format!("\"{}\"", BASE64URL_NOPAD.encode(&digest.finalize()[..KEPT])))
    }

    /// Whether a client that sent this `If-None-Match` has it: one of a list, whatever the list says of its strength (RFC 9110,
    /// 13.1.2), or `*`.
    pub fn is_known(&self, if_none_match: Option<&str>) -> bool {
        let known = |tag: &str| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == self.0;
        if_none_match.is_some_and(|sent| sent.split(',').map(str::trim).any(known))
    }

    /// Whether a client that sent this `If-Range` has the beginning of it.
    pub fn is_same(&self, if_range: &str) -> bool {
        if_range == self.0
    }

    /// As the header has it.
    pub fn into_header(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_known_by_its_name_in_any_list_and_no_other() {
        let tag = ETag::of_json(&["a"]).unwrap();
        let text = tag.clone().into_header();
        for known in [
            text.clone(),
            format!("W/{text}"),
            format!("\"x\", {text}"),
            format!("{text},\"x\""),
            "*".to_owned(),
        ] {
            assert!(tag.is_known(Some(&known)), "{known}");
        }
        for other in ["", "\"x\"", text.trim_matches('"'), "\"*\"", ","] {
            assert!(!tag.is_known(Some(other)), "{other}");
        }
        assert!(!tag.is_known(None));
        assert_ne!(tag, ETag::of_json(&["b"]).unwrap());
    }

    #[test]
    fn a_tag_needs_no_escaping_and_tells_nothing_of_the_key() {
        let text = ETag::of_name("reports/1/2-abc.pdf").into_header();
        let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap();
        assert_eq!(inner.len(), 22);
        assert!(
            inner
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        );
    }
}
