//! Withdrawn access ends on every replica within 5 seconds.

use chrono::{TimeDelta, Utc};
use partner_api_signing::Secret;
use partner_api_store::secrets::MasterKey;
use partner_api_tests::fixture::{branches, organizations, partners};
use partner_api_tests::{ALPHA, BETA, DELTA, Request, Service, TestKey};

use partner_api_tests::measurements::package;

const HEALTH: &str = "/api/v1/partner/health";

/// Waits until each replica answers the key's health with this status.
async fn until_health_is(replicas: &[&Service], key: &TestKey, status: u16) {
    let changed = async || {
        for replica in replicas {
            if replica.get(key, HEALTH).await.status != status {
                return false;
            }
        }
        true
    };
    replicas[0].within_five_seconds(changed).await;
}

/// KEY-8
#[tokio::test]
async fn a_revoked_key_works_nowhere_and_the_partners_other_one_does() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let revoke = format!("UPDATE api_keys SET revoked_at = now() WHERE key_id = '{}'", ALPHA.id);
    service.db.execute(&revoke, &[]).await.unwrap();
    until_health_is(&[&service, &replica], &ALPHA, 401).await;
    for service in [&service, &replica] {
        let write = service.measure(&ALPHA, package("M-1", "35 OPN 205")).await;
        write.assert_refused(401, "invalid_key");
        service
            .get(&partner_api_tests::fixture::ALPHA_ROTATED, HEALTH)
            .await
            .assert_status(200);
    }
    assert_eq!(service.count("measurements").await, 0);
}

/// KEY-8
#[tokio::test]
async fn a_disabled_partner_is_shut_out_until_it_is_enabled() {
    let service = Service::start().await;
    let replica = service.replica().await;
    for (enabled, status) in [(false, 401), (true, 200)] {
        let set = format!(
            "UPDATE partners SET is_enabled = {enabled} WHERE id = '{}'",
            partners::DELTA
        );
        service.db.execute(&set, &[]).await.unwrap();
        until_health_is(&[&service, &replica], &DELTA, status).await;
        // Nobody else notices.
        service.get(&ALPHA, HEALTH).await.assert_status(200);
    }
}

/// KEY-8
#[tokio::test]
async fn a_narrowed_grant_hides_reports_and_refuses_measurements() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let list = "/api/v1/partner/inspections?limit=100";
    service
        .measure(&ALPHA, package("M-1", "34 ABC 123"))
        .await
        .assert_status(201);
    // One branch of the MASKED organization instead of all of them.
    let narrow = format!(
        "BEGIN;
         UPDATE grants SET all_branches = false WHERE partner_id = '{0}' AND organization_id = '{1}';
         INSERT INTO grant_branches VALUES ('{0}', '{1}', '{2}');
         COMMIT",
        partners::ALPHA,
        organizations::MASKED,
        branches::ANK_01
    );
    service.db.batch_execute(&narrow).await.unwrap();
    let narrowed = async || {
        let mut seen = service.get(&ALPHA, list).await.data("branch_id");
        seen.extend(replica.get(&ALPHA, list).await.data("branch_id"));
        !seen.contains(&branches::IZMIR_01.to_owned())
    };
    service.within_five_seconds(narrowed).await;
    for service in [&service, &replica] {
        let write = service.measure(&ALPHA, package("M-2", "34 ABC 123")).await;
        write.assert_refused(404, "not_found");
        // Nor is what was sent there before told again.
        service
            .measure(&ALPHA, package("M-1", "34 ABC 123"))
            .await
            .assert_refused(404, "not_found");
        assert!(
            service
                .get(&ALPHA, list)
                .await
                .data("branch_id")
                .contains(&branches::ANK_01.to_owned())
        );
    }
}

/// KEY-8
#[tokio::test]
async fn a_scope_that_is_taken_away_is_missing_everywhere() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let take = format!("UPDATE api_keys SET scopes = '{{}}' WHERE key_id = '{}'", ALPHA.id);
    service.db.execute(&take, &[]).await.unwrap();
    let refused = async |service: &Service| service.measure(&ALPHA, "no json").await.status == 403;
    service
        .within_five_seconds(async || refused(&service).await && refused(&replica).await)
        .await;
}

/// KEY-12
#[tokio::test]
async fn a_key_expires_at_its_moment_without_a_reload() {
    let first = Service::start().await;
    let expires_at = Utc::now() + TimeDelta::seconds(2);
    let set = "UPDATE api_keys SET expires_at = $1 WHERE key_id = $2";
    first.db.execute(set, &[&expires_at, &BETA.id]).await.unwrap();
    // It knows of the moment from its start.
    let service = first.replica().await;
    let expired = async || {
        let sent = Utc::now();
        let answer = service.get(&BETA, HEALTH).await;
        if answer.status == 200 {
            assert!(sent < expires_at, "sent {sent}, expired {expires_at}");
            return false;
        }
        answer.assert_refused(401, "invalid_key");
        assert!(Utc::now() >= expires_at, "it had not expired");
        true
    };
    service.within_five_seconds(expired).await;
}

#[tokio::test]
async fn a_key_under_another_master_key_locks_nobody_else_out() {
    let service = Service::start().await;
    let stranger = TestKey {
        id: "vip_test_STRANGERAAAAAAAAAAAAAA",
        secret: "STRANGERSTRANGERSTRANGERSTRANGER",
        ..ALPHA
    };
    let secret: Secret = stranger.secret.parse().unwrap();
    let (nonce, sealed) = MasterKey::from_hex(&"f0".repeat(32), "another")
        .unwrap()
        .seal(stranger.id, &secret)
        .unwrap();
    let insert = "INSERT INTO api_keys (key_id, partner_id, environment, secret_nonce, secret_ciphertext, rate_limit) \
                  SELECT $1, partner_id, 'test', $2, $3, 777 FROM api_keys WHERE key_id = $4";
    let inserted = service
        .db
        .execute(insert, &[&stranger.id, &nonce.as_slice(), &sealed, &ALPHA.id])
        .await;
    assert_eq!(inserted.unwrap(), 1);
    // So that its arrival can be seen.
    let set = format!("UPDATE api_keys SET rate_limit = 778 WHERE key_id = '{}'", BETA.id);
    service.db.execute(&set, &[]).await.unwrap();
    let loaded = async || {
        let answer = service.get(&BETA, HEALTH).await;
        answer.assert_status(200).header("ratelimit-policy") == Some("\"default\";q=778;w=60")
    };
    service.within_five_seconds(loaded).await;
    for service in [&service, &service.replica().await] {
        service.get(&stranger, HEALTH).await.assert_refused(401, "invalid_key");
        service.get(&ALPHA, HEALTH).await.assert_status(200);
        service
            .send(Request::get(HEALTH).signed_by(&DELTA))
            .await
            .assert_status(200);
    }
}
