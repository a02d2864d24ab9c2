//! A replica is notified of changes to keys and grants when they are committed, before its next poll.

use std::time::Duration;

use chrono::Utc;
use partner_api_signing::Environment;
use partner_api_store::directory::Directory;
use partner_api_store::pool::{PoolSettings, pool};
use partner_api_tests::{ALPHA, BETA, DELTA, Service, fixture};

const NEVER: Duration = Duration::from_secs(3600);

/// KEY-8: without a look at all, and after the connection that hears was lost.
#[tokio::test]
async fn a_revocation_is_heard_also_after_the_connection_was_lost() {
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
