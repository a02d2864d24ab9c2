//! Properties of CANONICAL_QUERY and of the headers, tested with generated queries and texts. Each run has new seeds.

use partner_api_signing::{
    DecodedPair, KeyId, Secret, canonical_query, decode_query, is_valid_nonce, parse_timestamp, sign, verify,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// The spelling of a byte in a raw query.
#[derive(Clone, Copy, Debug)]
enum Spelling {
    /// The byte itself, or `+` for a space, where this is possible.
    Short,
    /// `%xx`.
    Lower,
    /// `%XX`.
    Upper,
}

/// A name or a value: its bytes and their spellings.
type Spelled = Vec<(u8, Spelling)>;

fn spelling() -> impl Strategy<Value = Spelling> {
    prop_oneof![Just(Spelling::Short), Just(Spelling::Lower), Just(Spelling::Upper)]
}

/// Generates names and values. Bytes with a special meaning are frequent.
fn spelled() -> impl Strategy<Value = Spelled> {
    let byte = prop_oneof![prop::sample::select(&b"ab-._~%+&=? /\0"[..]), any::<u8>()];
    vec((byte, spelling()), 0..6)
}

/// Generates raw queries, mostly of characters with a special meaning, so that malformed queries are frequent as well.
fn raw_query() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![3 => prop::sample::select(&b"ab%&=+0aF"[..]), 1 => any::<u8>()];
    vec(byte, 0..24)
}

fn spell(bytes: &[(u8, Spelling)], is_name: bool) -> String {
    let mut raw = Vec::new();
    for (byte, spelling) in bytes {
        // An equals sign is literal in a value, but ends a name.
        let separates = matches!(byte, b'%' | b'&' | b'+') || (is_name && *byte == b'=');
        let literal = byte.is_ascii() && !separates;
        match spelling {
            Spelling::Short if *byte == b' ' => raw.push(b'+'),
            Spelling::Short if literal => raw.push(*byte),
            Spelling::Short | Spelling::Lower => raw.extend(format!("%{byte:02x}").bytes()),
            Spelling::Upper => raw.extend(format!("%{byte:02X}").bytes()),
        }
    }
    String::from_utf8(raw).unwrap()
}

fn plain(bytes: &[(u8, Spelling)]) -> Vec<u8> {
    bytes.iter().map(|(byte, _)| *byte).collect()
}

/// A simple implementation of the rules: encode the pairs, sort and join them.
fn naive(pairs: &[DecodedPair]) -> String {
    let encode = |bytes: &[u8]| -> Vec<u8> {
        bytes
            .iter()
            .flat_map(|byte| match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => vec![*byte],
                _ => format!("%{byte:02X}").into_bytes(),
            })
            .collect()
    };
    let mut encoded: Vec<_> = pairs
        .iter()
        .map(|(name, value)| (encode(name), encode(value)))
        .collect();
    encoded.sort();
    let joined: Vec<_> = encoded
        .into_iter()
        .map(|(name, value)| [name, value].join(&b'='))
        .collect();
    String::from_utf8(joined.join(&b'&')).unwrap()
}

/// Returns the offset of the first `%` that is not followed by two hexadecimal digits, if there is one.
fn first_malformed(raw: &[u8]) -> Option<usize> {
    (0..raw.len()).find(|at| {
        raw[*at] == b'%'
            && !raw
                .get(at + 1..at + 3)
                .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

proptest! {
    /// SIG-4
    #[test]
    fn every_spelling_of_the_same_pairs_has_the_same_canonical_form(
        pairs in vec((spelled(), spelled(), 0_usize..3), 0..6)
    ) {
        let mut raw = String::new();
        for (name, value, empty_pieces) in &pairs {
            raw += &format!("{}={}{}", spell(name, true), spell(value, false), "&".repeat(empty_pieces + 1));
        }
        let expected: Vec<DecodedPair> = pairs.iter().map(|(name, value, _)| (plain(name), plain(value))).collect();
        prop_assert_eq!(canonical_query(raw.as_bytes()).unwrap(), naive(&expected));
        prop_assert_eq!(decode_query(raw.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn the_order_of_the_parameters_does_not_matter(
        (pairs, shuffled) in vec((spelled(), spelled()), 0..6)
            .prop_flat_map(|pairs| (Just(pairs.clone()), Just(pairs).prop_shuffle()))
    ) {
        let join = |pairs: &[(Spelled, Spelled)]| -> String {
            pairs
                .iter()
                .map(|(name, value)| format!("{}={}", spell(name, true), spell(value, false)))
                .collect::<Vec<_>>()
                .join("&")
        };
        prop_assert_eq!(canonical_query(join(&pairs).as_bytes()), canonical_query(join(&shuffled).as_bytes()));
    }

    #[test]
    fn a_canonical_query_is_its_own_canonical_form(raw in raw_query()) {
        if let Ok(canonical) = canonical_query(&raw) {
            prop_assert_eq!(canonical_query(canonical.as_bytes()), Ok(canonical));
        }
    }

    #[test]
    fn a_query_is_rejected_only_if_an_escape_is_malformed(raw in raw_query()) {
        match (canonical_query(&raw), first_malformed(&raw)) {
            (Ok(_), None) => {}
            (Err(error), Some(at)) => {
                prop_assert_eq!(error.offset, at);
                prop_assert!(raw[at..].starts_with(&error.text));
            }
            (result, malformed) => prop_assert!(false, "{result:?}, malformed at {malformed:?}"),
        }
    }

    #[test]
    fn any_bytes_have_a_canonical_form_that_decodes_to_the_same_pairs(raw in vec(any::<u8>(), 0..40)) {
        if let (Ok(pairs), Ok(canonical)) = (decode_query(&raw), canonical_query(&raw)) {
            let mut sorted = pairs;
            let mut decoded = decode_query(canonical.as_bytes()).unwrap();
            sorted.sort();
            decoded.sort();
            prop_assert_eq!(decoded, sorted);
        }
    }

    #[test]
    fn a_timestamp_is_parsed_only_if_it_consists_of_digits(
        text in prop_oneof!["[0-9]{0,30}", "[ +-]?[0-9٣]{1,12}[.e ]?[0-9]?", ".*"]
    ) {
        let is_plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        prop_assert_eq!(parse_timestamp(&text).is_some(), is_plain);
        if let Some(timestamp) = parse_timestamp(&text) {
            let digits = text.trim_start_matches('0');
            let digits = if digits.is_empty() { "0" } else { digits };
            prop_assert!(timestamp == i64::MAX || timestamp.to_string() == digits);
        }
    }

    #[test]
    fn a_nonce_is_valid_only_in_visible_ascii(
        nonce in prop_oneof!["[!-~]{14,18}", "[!-~]{126,130}", "[ -\u{7f}]{16,20}", ".{8,40}"]
    ) {
        let is_valid = (16..=128).contains(&nonce.len()) && nonce.chars().all(|c| ('!'..='~').contains(&c));
        prop_assert_eq!(is_valid_nonce(nonce.as_bytes()), is_valid);
    }

    #[test]
    fn a_key_id_is_parsed_as_it_is_written(
        text in prop_oneof!["vip_(test|live)_[A-Z2-7a-z189]{20,24}", "vip_(test|live)_[A-Z2-7]{22}", ".*"]
    ) {
        if let Ok(key) = text.parse::<KeyId>() {
            prop_assert_eq!(key.as_str(), &text);
        }
    }

    /// SIG-2
    #[test]
    fn a_signature_is_valid_for_its_canonical_string_alone(
        random in any::<[u8; 20]>(),
        canonical in ".{0,60}",
        other in ".{0,60}",
        forged in prop_oneof!["sha256=[0-9a-f]{64}", "sha256=[0-9A-F]{0,66}", ".*"],
    ) {
        let secret = Secret::generate(&random);
        let signature = sign(&secret, &canonical);
        prop_assert!(verify(&secret, &canonical, &signature));
        prop_assert_eq!(verify(&secret, &other, &signature), other == canonical);
        prop_assert!(!verify(&secret, &canonical, &forged));
    }
}
