//! Entity tags, with which a client avoids downloading content that it already has (REP-16).

use data_encoding::BASE64URL_NOPAD;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// The length of the truncated digest in bytes. 128 bits suffice to prevent collisions.
const DIGEST_LENGTH: usize = 16;

/// An entity tag, including its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ETag(String);

impl ETag {
    /// Computes the tag of a JSON response from its serialized bytes.
    ///
    /// # Errors
    /// If the body cannot be serialized.
    pub fn of_json<T: Serialize>(body: &T) -> Result<Self, serde_json::Error> {
        let mut digest = Sha256::new();
        serde_json::to_writer(&mut digest, body)?;
        Ok(Self::from_digest(digest))
    }

    /// Computes the tag of these bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut digest = Sha256::new();
        digest.update(bytes);
        Self::from_digest(digest)
    }

    /// Computes the tag of a content that has a unique name: the key of an object that is never overwritten, or the tag of an
    /// object store. The result does not reveal the name.
    pub fn of_name(name: &str) -> Self {
        let mut digest = Sha256::new();
        digest.update(name);
        Self::from_digest(digest)
    }

    fn from_digest(digest: Sha256) -> Self {
        Self(format!(
            "\"{}\"",
            BASE64URL_NOPAD.encode(&digest.finalize()[..DIGEST_LENGTH])
        ))
    }

    /// Returns whether `If-None-Match` contains this tag, weak or strong, or is `*` (RFC 9110, section 13.1.2).
    pub fn matches(&self, if_none_match: Option<&str>) -> bool {
        let known = |tag: &str| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == self.0;
        if_none_match.is_some_and(|sent| sent.split(',').map(str::trim).any(known))
    }

    /// Returns whether `If-Range` is this tag.
    pub fn matches_if_range(&self, if_range: &str) -> bool {
        if_range == self.0
    }

    /// Returns the value of the header `ETag`.
    pub fn into_header(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_matches_itself_weak_or_strong_in_any_list() {
        let tag = ETag::of_json(&["a"]).unwrap();
        let text = tag.clone().into_header();
        for known in [
            text.clone(),
            format!("W/{text}"),
            format!("\"x\", {text}"),
            format!("{text},\"x\""),
            "*".to_owned(),
        ] {
            assert!(tag.matches(Some(&known)), "{known}");
        }
        for other in ["", "\"x\"", text.trim_matches('"'), "\"*\"", ","] {
            assert!(!tag.matches(Some(other)), "{other}");
        }
        assert!(!tag.matches(None));
        assert!(tag.matches_if_range(&text) && !tag.matches_if_range(&format!("W/{text}")));
        assert_ne!(tag, ETag::of_json(&["b"]).unwrap());
    }

    #[test]
    fn a_tag_consists_of_characters_that_need_no_escaping() {
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
