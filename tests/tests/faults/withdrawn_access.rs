//! Withdrawn access ends on every replica within 5 seconds.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use partner_api_signing::{Environment, Secret};
use partner_api_store::directory::Directory;
use partner_api_store::pool::{PoolSettings, pool};
use partner_api_store::secrets::MasterKey;
use partner_api_tests::fixture::{self, branches, organizations, partners};
use partner_api_tests::{ALPHA, BETA, DELTA, Request, Service, TestKey};

use partner_api_tests::measurements::package;

/// The interval of polls in a test of notifications.
const NEVER: Duration = Duration::from_secs(3600);
const HEALTH: &str = "/api/v1/partner/health";

/// Waits until each replica returns this status for a health request of the key.
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
async fn a_revoked_key_stops_working_everywhere_and_the_partners_other_key_works() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let revoke = format!("UPDATE api_keys SET revoked_at = now() WHERE key_id = '{}'", ALPHA.id);
    service.db.execute(&revoke, &[]).await.unwrap();
    until_health_is(&[&service, &replica], &ALPHA, 401).await;
    for service in [&service, &replica] {
        let write = service.measure(&ALPHA, package("M-1", "35 OPN 205")).await;
        write.assert_rejected(401, "invalid_key");
        service
            .get(&partner_api_tests::fixture::ALPHA_ROTATED, HEALTH)
            .await
            .assert_status(200);
    }
    assert_eq!(service.count("measurements").await, 0);
}

/// KEY-8
#[tokio::test]
async fn a_disabled_partner_is_rejected_until_it_is_enabled() {
    let service = Service::start().await;
    let replica = service.replica().await;
    for (enabled, status) in [(false, 401), (true, 200)] {
        let set = format!(
            "UPDATE partners SET is_enabled = {enabled} WHERE id = '{}'",
            partners::DELTA
        );
        service.db.execute(&set, &[]).await.unwrap();
        until_health_is(&[&service, &replica], &DELTA, status).await;
        // Other keys are not affected.
        service.get(&ALPHA, HEALTH).await.assert_status(200);
    }
}

/// KEY-8
#[tokio::test]
async fn a_narrowed_grant_hides_reports_and_rejects_measurements() {
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
        let mut listed = service.get(&ALPHA, list).await.data("branch_id");
        listed.extend(replica.get(&ALPHA, list).await.data("branch_id"));
        !listed.contains(&branches::IZMIR_01.to_owned())
    };
    service.within_five_seconds(narrowed).await;
    for service in [&service, &replica] {
        let write = service.measure(&ALPHA, package("M-2", "34 ABC 123")).await;
        write.assert_rejected(404, "not_found");
        // A replay of an earlier package is not found either.
        service
            .measure(&ALPHA, package("M-1", "34 ABC 123"))
            .await
            .assert_rejected(404, "not_found");
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
async fn a_revoked_scope_is_missing_on_every_replica() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let revoke = format!("UPDATE api_keys SET scopes = '{{}}' WHERE key_id = '{}'", ALPHA.id);
    service.db.execute(&revoke, &[]).await.unwrap();
    let rejected = async |service: &Service| service.measure(&ALPHA, "no json").await.status == 403;
    service
        .within_five_seconds(async || rejected(&service).await && rejected(&replica).await)
        .await;
}

/// KEY-12
#[tokio::test]
async fn a_key_expires_on_time_without_a_reload() {
    let first = Service::start().await;
    let expires_at = Utc::now() + TimeDelta::seconds(2);
    let set = "UPDATE api_keys SET expires_at = $1 WHERE key_id = $2";
    first.db.execute(set, &[&expires_at, &BETA.id]).await.unwrap();
    // The replica loads the time of expiry when it starts.
    let service = first.replica().await;
    let expired = async || {
        let sent = Utc::now();
        let response = service.get(&BETA, HEALTH).await;
        if response.status == 200 {
            assert!(sent < expires_at, "sent {sent}, expired {expires_at}");
            return false;
        }
        response.assert_rejected(401, "invalid_key");
        assert!(Utc::now() >= expires_at, "it had not expired");
        true
    };
    service.within_five_seconds(expired).await;
}

#[tokio::test]
async fn a_key_under_another_master_key_does_not_affect_other_keys() {
    let service = Service::start().await;
    let foreign = TestKey {
        id: "vip_test_STRANGERAAAAAAAAAAAAAA",
        secret: "STRANGERSTRANGERSTRANGERSTRANGER",
        ..ALPHA
    };
    let secret: Secret = foreign.secret.parse().unwrap();
    let (nonce, ciphertext) = MasterKey::from_hex(&"f0".repeat(32), "another")
        .unwrap()
        .encrypt(foreign.id, &secret)
        .unwrap();
    let insert = "INSERT INTO api_keys (key_id, partner_id, environment, secret_nonce, secret_ciphertext, rate_limit) \
                  SELECT $1, partner_id, 'test', $2, $3, 777 FROM api_keys WHERE key_id = $4";
    let inserted = service
        .db
        .execute(insert, &[&foreign.id, &nonce.as_slice(), &ciphertext, &ALPHA.id])
        .await;
    assert_eq!(inserted.unwrap(), 1);
    // Another change, which shows when the key has been loaded.
    let set = format!("UPDATE api_keys SET rate_limit = 778 WHERE key_id = '{}'", BETA.id);
    service.db.execute(&set, &[]).await.unwrap();
    let loaded = async || {
        let response = service.get(&BETA, HEALTH).await;
        response.assert_status(200).header("ratelimit-policy") == Some("\"default\";q=778;w=60")
    };
    service.within_five_seconds(loaded).await;
    for service in [&service, &service.replica().await] {
        service.get(&foreign, HEALTH).await.assert_rejected(401, "invalid_key");
        service.get(&ALPHA, HEALTH).await.assert_status(200);
        service
            .send(Request::get(HEALTH).signed_by(&DELTA))
            .await
            .assert_status(200);
    }
}

/// KEY-8, without any poll, and after the listening connection was lost.
#[tokio::test]
async fn a_replica_is_notified_of_a_revocation_even_after_a_lost_connection() {
    let service = Service::start().await;
    let pool = pool(service.database(), &PoolSettings::default()).unwrap();
    let directory = Directory::load(&pool, Environment::Test, fixture::master_key(), 4)
        .await
        .unwrap();
    let keeping = tokio::spawn(directory.clone().keep_fresh(pool, service.database(), NEVER));
    let is_gone = |id: &'static str| {
        let directory = directory.clone();
        async move || directory.key(id, Utc::now()).is_err()
    };
    let revoke = async |id: &str| {
        let revoke = "UPDATE api_keys SET revoked_at = now() WHERE key_id = $1";
        service.db.execute(revoke, &[&id]).await.unwrap();
    };
    assert!(directory.key(ALPHA.id, Utc::now()).is_ok());
    revoke(ALPHA.id).await;
    service.within_five_seconds(is_gone(ALPHA.id)).await;

    let cut = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
               WHERE datname = current_database() AND application_name = 'partner-api notifications'";
    assert!(service.db.execute(cut, &[]).await.unwrap() >= 1);
    revoke(BETA.id).await;
    service.within_five_seconds(is_gone(BETA.id)).await;
    revoke(DELTA.id).await;
    service.within_five_seconds(is_gone(DELTA.id)).await;
    keeping.abort();
}
