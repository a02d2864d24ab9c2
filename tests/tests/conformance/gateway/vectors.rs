//! The published signing vectors, run against the service itself.

use chrono::Utc;
use partner_api_signing::{
    Canonical, EMPTY_BODY_SHA256, HEADER_KEY_ID, HEADER_NONCE, HEADER_SIGNATURE, HEADER_TIMESTAMP, sign,
};
use partner_api_tests::{ALPHA, Request, Service, TestResponse};
use serde_json::Value;

const LIST: &str = "/api/v1/partner/inspections";

fn vectors(list: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("../../../../spec/signing-vectors.json")).unwrap();
    all[list].as_array().unwrap().clone()
}

/// Sends a raw query, signed with this canonical form.
async fn send(service: &Service, raw: &str, canonical_query: &str) -> TestResponse {
    let (timestamp, nonce) = (Utc::now().timestamp().to_string(), uuid::Uuid::new_v4().to_string());
    let canonical = Canonical {
        method: "GET",
        path: LIST,
        canonical_query,
        timestamp: &timestamp,
        nonce: &nonce,
        body_sha256: EMPTY_BODY_SHA256,
    };
    let signature = sign(&ALPHA.secret.parse().unwrap(), &canonical.render());
    let request = Request::get(&format!("{LIST}?{raw}"))
        .header(HEADER_KEY_ID, ALPHA.id)
        .header(HEADER_TIMESTAMP, &timestamp)
        .header(HEADER_NONCE, &nonce)
        .header(HEADER_SIGNATURE, &signature);
    service.send(request).await
}

/// The vectors that can be sent: the target of an HTTP request must be UTF-8 and must not contain characters that a URI escapes.
fn sendable(list: &str) -> Vec<Value> {
    let mut vectors = vectors(list);
    let all = vectors.len();
    vectors.retain(|vector| {
        let target = vector["raw"].as_str().map(|raw| format!("{LIST}?{raw}"));
        target.is_some_and(|target| target.parse::<http::Uri>().is_ok())
    });
    assert!(
        vectors.len() > 5 && all - vectors.len() <= 3,
        "{} of {all} vectors are left",
        vectors.len()
    );
    vectors
}

/// SIG-4, SIG-6
#[tokio::test]
async fn every_query_vector_verifies_with_its_canonical_form() {
    let service = Service::start().await;
    for vector in sendable("query_vectors") {
        let (raw, canonical) = (
            vector["raw"].as_str().unwrap(),
            vector["canonical_query"].as_str().unwrap(),
        );
        // After the signature check, most of these fail because the list does not have their parameters.
        let status = send(&service, raw, canonical).await.status.as_u16();
        assert!([200, 400].contains(&status), "{}: {status}", vector["name"]);
        // With any other canonical form they do not verify.
        send(&service, raw, &format!("{canonical}&"))
            .await
            .assert_rejected(401, "invalid_signature");
    }
}

#[tokio::test]
async fn every_rejected_query_is_rejected_before_its_signature_is_checked() {
    let service = Service::start().await;
    for vector in sendable("rejected_queries") {
        send(&service, vector["raw"].as_str().unwrap(), "")
            .await
            .assert_rejected(400, "invalid_request");
    }
}
