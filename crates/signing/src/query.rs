//! CANONICAL_QUERY: the canonical form of a query, which clients and the server compute.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

/// All characters except the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A decoded name and value, as bytes because a query may not be UTF-8.
pub type DecodedPair = (Vec<u8>, Vec<u8>);

/// The error for a query in which a `%` is not followed by two hexadecimal digits. It has no canonical form, and the service
/// responds with 400 `invalid_request`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the query has `{}` at byte {offset}, where two hexadecimal digits must follow the `%`; \
     write a percent sign itself as `%25`",
    Escaped(text)
)]
pub struct MalformedQuery {
    /// The byte offset of the invalid `%` in the raw query, starting at 0.
    pub offset: usize,
    /// The invalid `%` and up to two bytes of the same parameter after it.
    pub text: Vec<u8>,
}

/// Escapes everything except printable ASCII, so that a message never contains raw bytes of a request.
struct Escaped<'a>(&'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

/// Splits a request target at its first `?` into the path and the raw query. The query is empty if there is no `?`, or nothing
/// after it.
pub fn split_target(target: &str) -> (&str, &str) {
    target.split_once('?').unwrap_or((target, ""))
}

/// Decodes a raw query (the bytes after the first `?` of the request target) into its pairs, in the order in which they were sent.
///
/// Pairs are separated by `&` only, and empty ones are skipped. Each is split at its first `=`; without one, the value is empty.
/// `+` is a space and `%XX` a byte. Everything is decoded once.
///
/// # Errors
/// [`MalformedQuery`] for the first `%` that is not followed by two hexadecimal digits.
pub fn decode_query(raw: &[u8]) -> Result<Vec<DecodedPair>, MalformedQuery> {
    let mut pairs = Vec::new();
    let mut offset = 0;
    for piece in raw.split(|byte| *byte == b'&') {
        if !piece.is_empty() {
            let (name, value) = match piece.iter().position(|byte| *byte == b'=') {
                Some(at) => (&piece[..at], &piece[at + 1..]),
                None => (piece, &piece[piece.len()..]),
            };
            // The offset of the value: the end of the piece minus the length of the value.
            let value_offset = offset + piece.len() - value.len();
            pairs.push((decode(name, offset)?, decode(value, value_offset)?));
        }
        offset += piece.len() + 1;
    }
    Ok(pairs)
}

/// Computes CANONICAL_QUERY, the third part of the canonical string, of a raw query (the bytes after the first `?` of the request
/// target, which may be empty): [`canonical_of`] its [decoded pairs](decode_query).
///
/// # Errors
/// [`MalformedQuery`] for the first `%` that is not followed by two hexadecimal digits.
pub fn canonical_query(raw: &[u8]) -> Result<String, MalformedQuery> {
    Ok(canonical_of(&decode_query(raw)?))
}

/// Computes CANONICAL_QUERY of the pairs from [`decode_query`].
///
/// Each byte outside `A-Z a-z 0-9 - . _ ~` is encoded as `%XX` in upper-case hex. The encoded pairs are sorted bytewise by name and
/// then by value, and joined as `name=value` with `&`. The result is its own canonical form.
pub fn canonical_of(pairs: &[DecodedPair]) -> String {
    let mut pairs: Vec<(String, String)> = pairs
        .iter()
        .map(|(name, value)| (encode(name), encode(value)))
        .collect();
    // The pairs are sorted before they are joined: `-` and `.` sort before `=`, so the text `a-=1` would come before `a=2`.
    pairs.sort_unstable();
    let mut canonical = String::with_capacity(pairs.iter().map(|(name, value)| name.len() + value.len() + 2).sum());
    for (name, value) in &pairs {
        if !canonical.is_empty() {
            canonical.push('&');
        }
        canonical.push_str(name);
        canonical.push('=');
        canonical.push_str(value);
    }
    canonical
}

/// Decodes a name or value that begins at `offset` in the raw query.
fn decode(encoded: &[u8], offset: usize) -> Result<Vec<u8>, MalformedQuery> {
    // The library would leave an invalid `%` unchanged.
    let is_malformed = |at: &usize| {
        let digits = encoded[at + 1..].first_chunk::<2>();
        encoded[*at] == b'%' && !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if let Some(at) = (0..encoded.len()).find(is_malformed) {
        return Err(MalformedQuery {
            offset: offset + at,
            text: encoded[at..encoded.len().min(at + 3)].to_vec(),
        });
    }
    let spaced: Vec<u8> = encoded
        .iter()
        .map(|byte| if *byte == b'+' { b' ' } else { *byte })
        .collect();
    Ok(percent_decode(&spaced).collect())
}

fn encode(decoded: &[u8]) -> String {
    percent_encode(decoded, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_a_malformed_escape_has_its_offset_and_a_remedy() {
        let error = canonical_query(b"limit=5&city=50%zz").unwrap_err();
        assert_eq!(
            error,
            MalformedQuery {
                offset: 15,
                text: b"%zz".to_vec()
            }
        );
        assert_eq!(
            error.to_string(),
            "the query has `%zz` at byte 15, where two hexadecimal digits must follow the `%`; write a percent sign \
             itself as `%25`"
        );
    }

    #[test]
    fn the_text_of_an_error_ends_with_its_parameter_and_contains_no_raw_bytes() {
        assert_eq!(decode_query(b"a=%4&b=1").unwrap_err().text, b"%4");
        assert_eq!(
            decode_query(b"a%=1").unwrap_err(),
            MalformedQuery {
                offset: 1,
                text: b"%".to_vec()
            }
        );
        assert!(
            decode_query(b"a=%\x01\n")
                .unwrap_err()
                .to_string()
                .contains(r"`%\x01\n`")
        );
    }

    #[test]
    fn pairs_are_decoded_in_order_including_repeated_ones() {
        let pair = |name: &[u8], value: &[u8]| (name.to_vec(), value.to_vec());
        assert_eq!(
            decode_query(b"limit=2&&a+b=%ff&limit=1&flag").unwrap(),
            [
                pair(b"limit", b"2"),
                pair(b"a b", b"\xff"),
                pair(b"limit", b"1"),
                pair(b"flag", b"")
            ]
        );
    }

    #[test]
    fn a_target_is_split_at_its_first_question_mark() {
        assert_eq!(split_target("/health"), ("/health", ""));
        assert_eq!(split_target("/health?"), ("/health", ""));
        assert_eq!(split_target("/health?a=?"), ("/health", "a=?"));
    }
}
