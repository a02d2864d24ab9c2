//! Paging cursors: the position at which the next page begins, authenticated for a partner and for filters.
//!
//! A cursor is the base64url encoding, without padding, of 24 bytes of position and 32 bytes of HMAC-SHA256. The position is
//! the time by which the list is ordered, in microseconds since 1970 as a signed big-endian number, and the 16 bytes of the ID.
//! The HMAC covers a label, the partner's ID, a digest of the filters, and the position. A cursor contains nothing secret.
//! Clients cannot create or alter one, or use it for another partner or other filters. The page size is not covered, so it may
//! change from page to page.

use chrono::{DateTime, Utc};
use data_encoding::BASE64URL_NOPAD;
use hmac::{Hmac, Mac};
use partner_api_signing::hmac_sha256;
use sha2::{Digest, Sha256};
use thiserror::Error;
use uuid::Uuid;

/// Separates these MACs from other uses of the key.
const LABEL: &[u8] = b"partner-api cursor v1";
const POSITION_LENGTH: usize = 8 + 16;
const TAG_LENGTH: usize = 32;

/// The row after which the next page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The time by which the list is ordered, in microseconds: `created_at`, or in a list of changes the time of the change.
    pub time: DateTime<Utc>,
    /// The ID, which orders rows with the same time.
    pub id: Uuid,
}

/// The text is not a cursor of this partner for these filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the cursor does not belong to this list")]
pub struct InvalidCursor;

/// A digest of the filters of a list. Equal filters have equal digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterDigest([u8; 32]);

impl FilterDigest {
    /// Computes the digest of the names and values of the filters that are set, in a fixed order.
    pub fn of<'a>(filters: impl IntoIterator<Item = (&'a str, Option<String>)>) -> Self {
        let mut digest = Sha256::new();
        for (name, value) in filters {
            let Some(value) = value else { continue };
            for part in [name, &value] {
                // The length separates adjacent parts.
                digest.update((part.len() as u64).to_be_bytes());
                digest.update(part);
            }
        }
        Self(digest.finalize().into())
    }
}

/// Encodes and decodes cursors with a key.
#[derive(Clone)]
pub struct CursorCodec {
    mac: Hmac<Sha256>,
    /// The MAC of the other master key that is accepted during a rotation.
    other: Option<Hmac<Sha256>>,
}

impl std::fmt::Debug for CursorCodec {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("CursorCodec")
    }
}

impl CursorCodec {
    /// Creates a codec that encodes with `key`, and decodes cursors of `key` and `other`. All replicas need the same keys, so
    /// that each can continue a list that another one began.
    pub fn new(key: &[u8; 32], other: Option<&[u8; 32]>) -> Self {
        Self {
            mac: hmac_sha256(key),
            other: other.map(hmac_sha256),
        }
    }

    /// Returns the cursor of `position` in the list of `partner` with `filters`.
    pub fn encode(&self, partner: Uuid, filters: FilterDigest, position: Position) -> String {
        let mut bytes = Vec::with_capacity(POSITION_LENGTH + TAG_LENGTH);
        bytes.extend_from_slice(&position.time.timestamp_micros().to_be_bytes());
        bytes.extend_from_slice(position.id.as_bytes());
        let tag = authenticate(&self.mac, partner, filters, &bytes)
            .finalize()
            .into_bytes();
        bytes.extend_from_slice(&tag);
        BASE64URL_NOPAD.encode(&bytes)
    }

    /// Returns the position of a cursor.
    ///
    /// # Errors
    /// If the cursor was not encoded for this partner and these filters.
    pub fn decode(&self, partner: Uuid, filters: FilterDigest, cursor: &str) -> Result<Position, InvalidCursor> {
        let bytes = BASE64URL_NOPAD.decode(cursor.as_bytes()).map_err(|_| InvalidCursor)?;
        if bytes.len() != POSITION_LENGTH + TAG_LENGTH {
            return Err(InvalidCursor);
        }
        let (position, tag) = bytes.split_at(POSITION_LENGTH);
        // The comparison takes constant time.
        let verifies = |mac| authenticate(mac, partner, filters, position).verify_slice(tag).is_ok();
        if !verifies(&self.mac) && !self.other.as_ref().is_some_and(verifies) {
            return Err(InvalidCursor);
        }
        let (micros, id) = position.split_at(8);
        let micros = i64::from_be_bytes(micros.try_into().map_err(|_| InvalidCursor)?);
        Ok(Position {
            time: DateTime::from_timestamp_micros(micros).ok_or(InvalidCursor)?,
            id: Uuid::from_slice(id).map_err(|_| InvalidCursor)?,
        })
    }
}

fn authenticate(mac: &Hmac<Sha256>, partner: Uuid, filters: FilterDigest, position: &[u8]) -> Hmac<Sha256> {
    mac.clone()
        .chain_update(LABEL)
        .chain_update(partner)
        .chain_update(filters.0)
        .chain_update(position)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PARTNER: Uuid = Uuid::from_u128(7);

    fn codec() -> CursorCodec {
        CursorCodec::new(&[42; 32], None)
    }

    fn filters(status: Option<&str>) -> FilterDigest {
        FilterDigest::of([("organization_id", None), ("status", status.map(str::to_owned))])
    }

    fn position() -> Position {
        Position {
            time: DateTime::from_timestamp_micros(1_780_000_000_123_456).unwrap(),
            id: Uuid::from_u128(0x0197_0000_0000_7000_8000_0000_0000_0001),
        }
    }

    fn cursor() -> String {
        codec().encode(PARTNER, filters(None), position())
    }

    #[test]
    fn a_cursor_decodes_to_its_position() {
        assert_eq!(codec().decode(PARTNER, filters(None), &cursor()), Ok(position()));
    }

    #[test]
    fn a_cursor_needs_no_escaping_in_a_query() {
        assert!(
            cursor()
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        );
    }

    #[test]
    fn another_partner_cannot_use_a_cursor() {
        assert_eq!(
            codec().decode(Uuid::from_u128(8), filters(None), &cursor()),
            Err(InvalidCursor)
        );
    }

    #[test]
    fn a_cursor_is_rejected_with_other_filters() {
        assert_eq!(
            codec().decode(PARTNER, filters(Some("published")), &cursor()),
            Err(InvalidCursor)
        );
    }

    #[test]
    fn a_cursor_of_another_key_is_rejected() {
        assert_eq!(
            CursorCodec::new(&[43; 32], None).decode(PARTNER, filters(None), &cursor()),
            Err(InvalidCursor)
        );
    }

    /// REP-4
    #[test]
    fn a_cursor_with_an_altered_byte_is_rejected() {
        let bytes = BASE64URL_NOPAD.decode(cursor().as_bytes()).unwrap();
        for index in 0..bytes.len() {
            for bit in 0..8 {
                let mut altered = bytes.clone();
                altered[index] ^= 1 << bit;
                let altered = BASE64URL_NOPAD.encode(&altered);
                assert_eq!(
                    codec().decode(PARTNER, filters(None), &altered),
                    Err(InvalidCursor),
                    "{index} {bit}"
                );
            }
        }
    }

    #[test]
    fn a_cursor_with_an_altered_character_is_rejected() {
        let cursor = cursor();
        for index in 0..cursor.len() {
            for other in ['A', 'B', 'z', '0', '-', '_', '=', '+', '/', ' ', '%'] {
                let mut altered: Vec<char> = cursor.chars().collect();
                if altered[index] == other {
                    continue;
                }
                altered[index] = other;
                let altered: String = altered.into_iter().collect();
                assert_eq!(
                    codec().decode(PARTNER, filters(None), &altered),
                    Err(InvalidCursor),
                    "{altered}"
                );
            }
        }
    }

    #[test]
    fn a_truncated_or_extended_cursor_is_rejected() {
        let cursor = cursor();
        for length in 0..cursor.len() {
            assert_eq!(
                codec().decode(PARTNER, filters(None), &cursor[..length]),
                Err(InvalidCursor)
            );
        }
        for more in ["A", "AAAA", "=", "=="] {
            assert_eq!(
                codec().decode(PARTNER, filters(None), &format!("{cursor}{more}")),
                Err(InvalidCursor)
            );
        }
    }

    #[test]
    fn filters_with_the_same_concatenation_have_different_digests() {
        let one = FilterDigest::of([("a", Some("bc".to_owned()))]);
        let other = FilterDigest::of([("ab", Some("c".to_owned()))]);
        assert_ne!(one, other);
    }

    proptest! {
        #[test]
        fn random_bytes_are_rejected(bytes in proptest::collection::vec(any::<u8>(), POSITION_LENGTH + TAG_LENGTH)) {
            let text = BASE64URL_NOPAD.encode(&bytes);
            prop_assert_eq!(text.len(), cursor().len());
            prop_assert_eq!(codec().decode(PARTNER, filters(None), &text), Err(InvalidCursor));
        }

        /// REP-4
        #[test]
        fn any_other_text_is_rejected(text in prop_oneof!["[A-Za-z0-9_=-]{0,90}", ".*"]) {
            prop_assume!(text != cursor());
            prop_assert_eq!(codec().decode(PARTNER, filters(None), &text), Err(InvalidCursor));
        }

        #[test]
        fn every_position_is_encoded_and_decoded(micros in -62_000_000_000_000_000_i64..253_000_000_000_000_000, id: u128) {
            let position = Position {
                time: DateTime::from_timestamp_micros(micros).unwrap(),
                id: Uuid::from_u128(id),
            };
            let cursor = codec().encode(PARTNER, filters(Some("archived")), position);
            prop_assert_eq!(codec().decode(PARTNER, filters(Some("archived")), &cursor), Ok(position));
        }
    }
}
