//! Keys: their permissions, their IDs and the storage of their secrets.

use data_encoding::HEXLOWER;
use partner_api::admission::nonces::BUCKET;
use partner_api_tests::fixture::{self, KEYS, REPORTED, Subject};
use partner_api_tests::operations::{OPERATIONS, operation};
use partner_api_tests::{ALPHA, Service, TestKey};

const HEALTH: &str = "/api/v1/partner/health";

/// KEY-4, ERR-6
#[tokio::test]
async fn only_operations_that_write_need_the_scope_of_the_document() {
    let service = Service::start().await;
    assert!(REPORTED.permissions.is_empty());
    for operation in OPERATIONS.iter() {
        let request = operation.request(&Subject::MASKED).signed_by(&REPORTED);
        let response = service.send(request).await;
        let scope = operation.required_scope();
        assert_eq!(scope.is_none(), operation.method() == "GET", "{}", operation.id);
        match scope {
            None => {
                response.assert_status(200);
            }
            Some(scope) => {
                let message = response.assert_rejected(403, "scope_required").message();
                assert!(message.contains(scope), "{}: {message}", operation.id);
            }
        }
    }
    assert_eq!(
        operation("submit_measurement").required_scope(),
        Some("test-line:write")
    );
}

/// KEY-1, LIM-1
#[tokio::test]
async fn a_key_may_have_another_prefix_and_has_60_requests_a_minute_by_default() {
    const OTHER: TestKey = TestKey {
        id: "acme_test_OTHERAAAAAAAAAAAAAAAAA",
        secret: "OTHEROTHEROTHEROTHEROTHEROTHER22",
        ..ALPHA
    };
    let service = Service::start().await;
    service.get(&OTHER, HEALTH).await.assert_rejected(401, "invalid_key");
    let (nonce, ciphertext) = fixture::master_key()
        .encrypt(OTHER.id, &OTHER.secret.parse().unwrap())
        .unwrap();
    let partner: uuid::Uuid = OTHER.partner.parse().unwrap();
    service
        .db
        .execute(
            "INSERT INTO api_keys (key_id, partner_id, environment, secret_nonce, secret_ciphertext) \
             VALUES ($1, $2, 'test', $3, $4)",
            &[&OTHER.id, &partner, &nonce.as_slice(), &ciphertext],
        )
        .await
        .unwrap();
    let response = service.replica().await.get(&OTHER, HEALTH).await;
    // Its limit, scopes and allowlist are the defaults.
    assert_eq!(
        response.assert_status(200).header("ratelimit-policy"),
        Some("\"default\";q=60;w=60")
    );
}

/// KEY-2
#[tokio::test]
async fn no_secret_is_in_any_column() {
    let service = Service::start().await;
    // Rows that requests insert are searched, too.
    service.get(&ALPHA, HEALTH).await.assert_status(200);
    let body = r#"{"branch_code":"IZMIR-01","plate":"34 ABC 123","measurements":{"BRAKE_FRONT_LEFT":2.85}}"#;
    service.measure(&ALPHA, body).await.assert_status(201);
    let tables = "SELECT quote_ident(relname) FROM pg_class \
                  WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')";
    let tables = service.db.query(tables, &[]).await.unwrap();
    assert!(tables.len() > 10, "{}", tables.len());
    for table in tables {
        let table: String = table.get(0);
        for secret in KEYS.iter().map(|key| key.secret).chain([fixture::MASTER_KEY]) {
            // The text of a row shows a bytea in hex.
            let hex = HEXLOWER.encode(secret.as_bytes());
            let found = service
                .count(&format!(
                    "{table} AS t WHERE position('{secret}' IN t::text) + position('{hex}' IN t::text) > 0"
                ))
                .await;
            assert_eq!(found, 0, "a secret is in {table}");
        }
    }
}

/// KEY-6
#[test]
fn a_nonce_is_stored_for_at_least_900_seconds() {
    // This is longer than a timestamp 300 s ahead is valid, plus a slow body and the queue.
    assert!(BUCKET.as_secs() >= 900);
}
