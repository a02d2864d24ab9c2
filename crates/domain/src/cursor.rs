//! The cursor of the list: where the next page begins, sealed for the partner and the filters it was made for.
//!
//! A cursor is base64url without padding of 24 bytes of position (microseconds since 1970 of the time that the list is ordered
//! by, signed and big-endian, then the 16 bytes of the id) and 32 bytes of HMAC-SHA256 over a label, the partner's id, a digest of the
//! filters and the position. Nothing in it is secret; it cannot be made or altered by others, nor moved to another
//! partner or to other filters. The page's size is not sealed in: it may change from page to page.

use chrono::{DateTime, Utc};
use data_encoding::BASE64URL_NOPAD;
use hmac::{Hmac, Mac};
use partner_api_signing::hmac_sha256;
use sha2::{Digest, Sha256};
use thiserror::Error;
use uuid::Uuid;

/// Keeps these digests apart from any other that the key or the hash may be used for.
const LABEL: &[u8] = b"partner-api cursor v1";
const POSITION: usize = 8 + 16;
const SEAL: usize = 32;

/// The row after which the next page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The time that the list is ordered by, to the microsecond: `created_at`, or in a list of changes that of its last one.
    pub time: DateTime<Utc>,
    /// Its id, which decides between rows of one time.
    pub id: Uuid,
}

/// The text is no cursor of this partner for these filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not a cursor of this list")]
pub struct InvalidCursor;

/// A digest of the filters a list was asked for; two lists with equal filters have equal digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterDigest([u8; 32]);

impl FilterDigest {
    /// The digest of the filters in normal form: name and value of each one that was given, in a fixed order.
    pub fn of<'a>(filters: impl IntoIterator<Item = (&'a str, Option<String>)>) -> Self {
        let mut digest = Sha256::new();
        for (name, value) in filters {
            let Some(value) = value else { continue };
            for part in [name, &value] {
                // Lengths keep neighbouring parts from running into each other.
                digest.update((part.len() as u64).to_be_bytes());
                digest.update(part);
            }
        }
        Self(digest.finalize().into())
    }
}

/// Makes and opens cursors under one key.
#[derive(Clone)]
pub struct CursorSealer {
    mac: Hmac<Sha256>,
    /// Of the master key that goes or comes, while it is accepted, too.
    other: Option<Hmac<Sha256>>,
}

impl std::fmt::Debug for CursorSealer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("CursorSealer")
    }
}

impl CursorSealer {
    /// A sealer under `key`, which opens what was sealed under `other`, too. All replicas need the same keys, or a page of
    /// one is not continued by another.
    pub fn new(key: &[u8; 32], other: Option<&[u8; 32]>) -> Self {
        Self {
            mac: hmac_sha256(key),
            other: other.map(hmac_sha256),
        }
    }

    /// The cursor of `position` in the list of `partner` under `filters`.
    pub fn seal(&self, partner: Uuid, filters: FilterDigest, position: Position) -> String {
        let mut bytes = Vec::with_capacity(POSITION + SEAL);
        bytes.extend_from_slice(&position.time.timestamp_micros().to_be_bytes());
        bytes.extend_from_slice(position.id.as_bytes());
        let seal = over(&self.mac, partner, filters, &bytes).finalize().into_bytes();
        bytes.extend_from_slice(&seal);
        BASE64URL_NOPAD.encode(&bytes)
    }

    /// The position in a cursor that was sealed for this partner and these filters.
    pub fn open(&self, partner: Uuid, filters: FilterDigest, cursor: &str) -> Result<Position, InvalidCursor> {
        let bytes = BASE64URL_NOPAD.decode(cursor.as_bytes()).map_err(|_| InvalidCursor)?;
        if bytes.len() != POSITION + SEAL {
            return Err(InvalidCursor);
        }
        let (position, seal) = bytes.split_at(POSITION);
        // Compares in constant time.
        let made = |mac| over(mac, partner, filters, position).verify_slice(seal).is_ok();
        if !made(&self.mac) && !self.other.as_ref().is_some_and(made) {
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

fn over(mac: &Hmac<Sha256>, partner: Uuid, filters: FilterDigest, position: &[u8]) -> Hmac<Sha256> {
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

    fn sealer() -> CursorSealer {
        CursorSealer::new(&[42; 32], None)
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
        sealer().seal(PARTNER, filters(None), position())
    }

    #[test]
    fn a_cursor_opens_to_the_position_it_was_sealed_with() {
        assert_eq!(sealer().open(PARTNER, filters(None), &cursor()), Ok(position()));
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
            sealer().open(Uuid::from_u128(8), filters(None), &cursor()),
            Err(InvalidCursor)
        );
    }

    #[test]
    fn a_cursor_does_not_fit_other_filters() {
        assert_eq!(
            sealer().open(PARTNER, filters(Some("published")), &cursor()),
            Err(InvalidCursor)
        );
    }

    #[test]
    fn a_cursor_of_another_key_is_refused() {
        assert_eq!(
            CursorSealer::new(&[43; 32], None).open(PARTNER, filters(None), &cursor()),
            Err(InvalidCursor)
        );
    }

    /// REP-4
    #[test]
    fn every_altered_byte_is_noticed() {
        let bytes = BASE64URL_NOPAD.decode(cursor().as_bytes()).unwrap();
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut altered = bytes.clone();
                altered[place] ^= 1 << bit;
                let altered = BASE64URL_NOPAD.encode(&altered);
                assert_eq!(
                    sealer().open(PARTNER, filters(None), &altered),
                    Err(InvalidCursor),
                    "{place} {bit}"
                );
            }
        }
    }

    #[test]
    fn every_altered_character_is_noticed() {
        let cursor = cursor();
        for place in 0..cursor.len() {
            for other in ['A', 'B', 'z', '0', '-', '_', '=', '+', '/', ' ', '%'] {
                let mut altered: Vec<char> = cursor.chars().collect();
                if altered[place] == other {
                    continue;
                }
                altered[place] = other;
                let altered: String = altered.into_iter().collect();
                assert_eq!(
                    sealer().open(PARTNER, filters(None), &altered),
                    Err(InvalidCursor),
                    "{altered}"
                );
            }
        }
    }

    #[test]
    fn a_truncated_or_lengthened_cursor_is_refused() {
        let cursor = cursor();
        for length in 0..cursor.len() {
            assert_eq!(
                sealer().open(PARTNER, filters(None), &cursor[..length]),
                Err(InvalidCursor)
            );
        }
        for more in ["A", "AAAA", "=", "=="] {
            assert_eq!(
                sealer().open(PARTNER, filters(None), &format!("{cursor}{more}")),
                Err(InvalidCursor)
            );
        }
    }

    #[test]
    fn filters_that_run_together_alike_differ() {
        let one = FilterDigest::of([("a", Some("bc".to_owned()))]);
        let other = FilterDigest::of([("ab", Some("c".to_owned()))]);
        assert_ne!(one, other);
    }

    proptest! {
        #[test]
        fn bytes_that_nobody_sealed_are_refused(bytes in proptest::collection::vec(any::<u8>(), POSITION + SEAL)) {
            let text = BASE64URL_NOPAD.encode(&bytes);
            prop_assert_eq!(text.len(), cursor().len());
            prop_assert_eq!(sealer().open(PARTNER, filters(None), &text), Err(InvalidCursor));
        }

        #[test]
        fn every_position_makes_the_round_trip(micros in -62_000_000_000_000_000_i64..253_000_000_000_000_000, id: u128) {
            let position = Position {
                time: DateTime::from_timestamp_micros(micros).unwrap(),
                id: Uuid::from_u128(id),
            };
            let cursor = sealer().seal(PARTNER, filters(Some("archived")), position);
            prop_assert_eq!(sealer().open(PARTNER, filters(Some("archived")), &cursor), Ok(position));
        }
    }
}
