//! Tests with the vectors of `spec/signing-vectors.json`, which partners and the samples use as well.

use data_encoding::BASE64;
use partner_api_signing::{
    Canonical, Headers, KeyId, Secret, UnsignedRequest, body_sha256, canonical_query, decode_query, sign, split_target,
    verify,
};
use serde::Deserialize;

const VECTORS: &str = include_str!("../../../../spec/signing-vectors.json");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vectors {
    description: String,
    query_vectors: Vec<QueryVector>,
    rejected_queries: Vec<RejectedQuery>,
    request_vectors: Vec<RequestVector>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryVector {
    name: String,
    raw: Option<String>,
    raw_base64: Option<String>,
    canonical_query: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RejectedQuery {
    name: String,
    raw: String,
    error: String,
    offset: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestVector {
    name: String,
    secret: String,
    method: String,
    target: String,
    timestamp: String,
    nonce: String,
    body: Option<String>,
    body_base64: Option<String>,
    canonical_query: String,
    body_sha256: String,
    canonical_string: String,
    signature: String,
}

fn vectors() -> Vectors {
    let vectors: Vectors = serde_json::from_str(VECTORS).unwrap();
    assert!(!vectors.description.is_empty());
    vectors
}

/// Returns the bytes of a field that is given either as text or as base64.
fn bytes(name: &str, text: Option<String>, base64: Option<String>) -> Vec<u8> {
    match (text, base64) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(base64)) => BASE64.decode(base64.as_bytes()).unwrap(),
        _ => panic!("{name}: give either the text or its base64"),
    }
}

/// SIG-4, SIG-6
#[test]
fn every_query_vector_has_the_expected_canonical_form() {
    let vectors = vectors().query_vectors;
    assert!(vectors.len() >= 20, "too few for SIG-4: {}", vectors.len());
    for vector in vectors {
        let raw = bytes(&vector.name, vector.raw, vector.raw_base64);
        assert_eq!(
            canonical_query(&raw).as_ref(),
            Ok(&vector.canonical_query),
            "{}",
            vector.name
        );
        let again = canonical_query(vector.canonical_query.as_bytes());
        assert_eq!(
            again.as_ref(),
            Ok(&vector.canonical_query),
            "{}: canonical once more",
            vector.name
        );
    }
}

#[test]
fn every_malformed_query_is_rejected_with_the_expected_offset() {
    let vectors = vectors().rejected_queries;
    assert!(!vectors.is_empty());
    for vector in vectors {
        assert_eq!(vector.error, "invalid_request", "{}", vector.name);
        let error = canonical_query(vector.raw.as_bytes()).expect_err(&vector.name);
        assert_eq!(error.offset, vector.offset, "{}", vector.name);
        assert_eq!(error.text.first(), Some(&b'%'), "{}", vector.name);
        assert!(
            vector.raw.as_bytes()[vector.offset..].starts_with(&error.text),
            "{}",
            vector.name
        );
        assert_eq!(decode_query(vector.raw.as_bytes()), Err(error), "{}", vector.name);
    }
}

/// SIG-2, SIG-3, SIG-6
#[test]
fn every_request_vector_has_the_expected_signature() {
    let vectors = vectors().request_vectors;
    assert!(
        vectors.len() >= 13,
        "the worked example and at least twelve more: {}",
        vectors.len()
    );
    let key_id: KeyId = "vip_test_ABCDEFGHIJKLMNOPQRSTUV".parse().unwrap();
    for vector in vectors {
        let name = &vector.name;
        let secret: Secret = vector.secret.parse().unwrap();
        let body = bytes(name, vector.body, vector.body_base64);
        let (path, raw_query) = split_target(&vector.target);

        let query = canonical_query(raw_query.as_bytes()).unwrap();
        assert_eq!(query, vector.canonical_query, "{name}");
        let digest = body_sha256(&body);
        assert_eq!(digest, vector.body_sha256, "{name}");
        let canonical = Canonical {
            method: &vector.method,
            path,
            canonical_query: &query,
            timestamp: &vector.timestamp,
            nonce: &vector.nonce,
            body_sha256: &digest,
        };
        assert_eq!(canonical.render(), vector.canonical_string, "{name}");
        assert_eq!(canonical.to_string(), vector.canonical_string, "{name}");
        assert_eq!(sign(&secret, &vector.canonical_string), vector.signature, "{name}");
        assert!(verify(&secret, &vector.canonical_string, &vector.signature), "{name}");

        // The client formats the timestamp from a number, so vectors with leading zeros apply to the server only.
        let seconds: u64 = vector.timestamp.parse().unwrap();
        if seconds.to_string() == vector.timestamp {
            let request = UnsignedRequest {
                method: &vector.method,
                path,
                raw_query: raw_query.as_bytes(),
                body: &body,
            };
            let headers = Headers::sign(&key_id, &secret, request, seconds, &vector.nonce).unwrap();
            assert_eq!(headers.signature, vector.signature, "{name}");
        }
    }
}
