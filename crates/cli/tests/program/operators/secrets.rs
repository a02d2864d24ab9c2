//! Rotation of the master key while the service runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use partner_api_tests::cluster::{self, Database};
use partner_api_tests::{ALPHA, Service, fixture};

use super::program::Deployment;

const HEALTH: &str = "/api/v1/partner/health";
const REKEY: [&str; 6] = [
    "secrets",
    "rekey",
    "--master-key-file",
    "new.key",
    "--other-master-key-file",
    "old.key",
];

/// The old key is the fixture's, with which its partners' secrets are encrypted.
fn with_both_keys(config: tokio_postgres::Config, database: Option<Database>) -> Deployment {
    let deployment = Deployment::over(config, database);
    for (name, hex) in [
        ("old.key", fixture::MASTER_KEY.to_owned()),
        ("new.key", "5a".repeat(32)),
    ] {
        let path = deployment.folder.path().join(name);
        fs::write(&path, hex).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    deployment
}

async fn ciphertexts(config: &tokio_postgres::Config) -> String {
    let client = cluster::connect(config).await;
    let all = "SELECT string_agg(encode(secret_ciphertext, 'hex'), ',' ORDER BY key_id) FROM api_keys";
    client.query_one(all, &[]).await.unwrap().get(0)
}

/// KEY-2
#[tokio::test]
async fn secrets_are_reencrypted_with_a_new_key_and_back() {
    let database = Database::create().await;
    let deployment = with_both_keys(database.config(), Some(database));
    let before = ciphertexts(&deployment.config).await;
    let rekeyed = deployment.json(&REKEY);
    assert_eq!(rekeyed["result"]["keys"], rekeyed["result"]["reencrypted"]);
    assert_ne!(ciphertexts(&deployment.config).await, before);
    assert_eq!(deployment.json(&REKEY)["changed"], false);
    // The old key is no longer needed.
    let alone = ["secrets", "rekey", "--master-key-file", "new.key"];
    assert_eq!(deployment.json(&alone)["changed"], false);
    let old = ["secrets", "rekey", "--master-key-file", "old.key"];
    deployment
        .run(&old)
        .failed(1, "it was encrypted with another master key");
    let back = [
        "secrets",
        "rekey",
        "--master-key-file",
        "old.key",
        "--other-master-key-file",
        "new.key",
    ];
    assert_eq!(deployment.json(&back)["changed"], true);
}

/// A replica that has only the old key would reject every request.
#[tokio::test]
async fn rekeying_is_rejected_while_a_replica_does_not_accept_the_new_key() {
    let service = Service::start().await;
    let deployment = with_both_keys(service.database(), None);
    let before = ciphertexts(&deployment.config).await;
    service.eventually(async || service.count("replicas").await == 1).await;
    deployment.run(&REKEY).failed(4, "is not accepted by 127.0.0.1:");
    assert_eq!(ciphertexts(&deployment.config).await, before);

    let new = partner_api_store::secrets::MasterKey::from_hex(&"5a".repeat(32), "the test").unwrap();
    let both = service
        .replica_with(partner_api_tests::Options {
            master_key: fixture::master_key().accepting(&new),
            ..partner_api_tests::Options::default()
        })
        .await;
    // Removes the replica that does not accept the new key.
    service
        .db
        .execute("DELETE FROM replicas WHERE cardinality(master_keys) = 1", &[])
        .await
        .unwrap();
    both.eventually(async || both.count("replicas WHERE cardinality(master_keys) = 2").await == 1)
        .await;
    let rekeyed = deployment.run(&[&REKEY[..], &["--force"]].concat());
    assert_eq!(rekeyed.code, 0, "{}", rekeyed.stderr);
    both.eventually(async || both.get(&ALPHA, HEALTH).await.status == 200)
        .await;
    let rejected = async || service.get(&ALPHA, HEALTH).await.status == 401;
    service.eventually(rejected).await;
}
