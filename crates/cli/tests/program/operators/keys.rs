//! Keys, their secrets, and the rotation of the master key while the service runs.

use std::os::unix::fs::PermissionsExt;
use std::{fs, thread};

use partner_api_signing::{Secret, certificate_text, sign};
use partner_api_tests::cluster::{self, Database};
use partner_api_tests::{ALPHA, Service, fixture};
use serde_json::json;

use super::program::Deployment;

/// KEY-11
#[tokio::test]
async fn only_two_of_four_concurrently_created_keys_are_accepted() {
    let deployment = Deployment::new().await;
    deployment.run(&["partner", "create", "Acme"]);
    let codes = thread::scope(|scope| {
        let making: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| deployment.run(&["key", "create", "Acme"])))
            .collect();
        let mut codes: Vec<_> = making.into_iter().map(|made| made.join().unwrap().code).collect();
        codes.sort_unstable();
        codes
    });
    assert_eq!(codes, [0, 0, 4, 4]);
    // Extending an expired key does not give a third active key either.
    let keys = deployment.json(&["key", "list"]);
    let first = keys[0]["key_id"].as_str().unwrap();
    assert_eq!(deployment.run(&["key", "expire", first, "--in", "0"]).code, 0);
    assert_eq!(deployment.run(&["key", "create", "Acme"]).code, 0);
    deployment
        .run(&["key", "expire", first, "--never"])
        .failed(4, "already has two active test keys");
}

/// KEY-11: the database enforces it for every program.
#[tokio::test]
async fn the_database_rejects_a_third_active_key() {
    let deployment = Deployment::new().await;
    deployment.with_one_of_each();
    let client = cluster::connect(&deployment.config).await;
    let another = "INSERT INTO api_keys (key_id, partner_id, environment, secret_nonce, secret_ciphertext) \
                   SELECT $1, id, $2, decode(repeat('00', 24), 'hex'), '' FROM partners";
    let insert = async |id: &str, environment: &str| client.execute(another, &[&id, &environment]).await;
    insert("vip_test_B", "test").await.unwrap();
    let rejected = insert("vip_test_C", "test").await.unwrap_err();
    assert_eq!(
        rejected.as_db_error().unwrap().constraint(),
        Some("at_most_two_active_keys")
    );
    // The limit is per environment.
    insert("vip_live_D", "live").await.unwrap();
}

/// KEY-11: the overlap is 24 hours by default, and 0 to 7 days.
#[tokio::test]
async fn a_rotated_key_stays_valid_for_the_overlap() {
    let deployment = Deployment::new().await;
    let key = deployment.with_one_of_each();
    deployment
        .run(&["key", "rotate", &key, "--overlap", "8days"])
        .failed(2, "at most 7days");
    let ends = |id: &str| {
        let keys = deployment.json(&["key", "list", "--all"]);
        let key = keys
            .as_array()
            .unwrap()
            .iter()
            .find(|key| key["key_id"] == id)
            .unwrap()
            .clone();
        (key["state"].as_str().unwrap().to_owned(), key["expires_at"].clone())
    };
    let rotated = deployment.json(&["key", "rotate", "Acme"]);
    let second = rotated["result"]["key_id"].as_str().unwrap().to_owned();
    assert_eq!(rotated["result"]["scopes"][0], "test-line:write");
    assert_eq!(ends(&key).0, "expiring");
    assert_eq!(ends(&second).0, "active");
    // With two active keys, the key must be named, and a rotation with an overlap would give a third.
    deployment
        .run(&["key", "rotate", "Acme"])
        .failed(2, "two active test keys");
    deployment
        .run(&["key", "rotate", &second])
        .failed(4, "already has two active test keys");
    // Without an overlap, the new key replaces the old one.
    let third = deployment.json(&["key", "rotate", &second, "--overlap", "0"]);
    assert_eq!(ends(&second).0, "expired");
    let sooner = ends(&key).1;
    assert_eq!(
        deployment
            .run(&["key", "revoke", third["result"]["key_id"].as_str().unwrap()])
            .code,
        0
    );
    assert_eq!(deployment.run(&["key", "rotate", &key, "--overlap", "7days"]).code, 0);
    assert_eq!(ends(&key).1, sooner, "an earlier expiry must not change");
}

/// OPS-3
#[tokio::test]
async fn a_mistyped_key_id_gets_a_suggestion_and_an_unknown_one_does_not() {
    let deployment = Deployment::new().await;
    let key = deployment.with_one_of_each();
    let mut mistyped = key.clone();
    let last = mistyped.pop().unwrap();
    mistyped.push(if last == 'A' { 'B' } else { 'A' });
    deployment
        .run(&["key", "revoke", &mistyped])
        .failed(3, &format!("did you mean `{key}`?"));
    deployment
        .run(&["key", "revoke", "vip_test_NOBODY"])
        .failed(3, "list them with: partner-api key list");
}

/// KEY-2
#[tokio::test]
async fn a_secret_is_shown_once_and_stored_encrypted() {
    let deployment = Deployment::new().await;
    let key = deployment.with_one_of_each();
    let rotated = deployment.json(&["key", "rotate", &key]);
    let secret = rotated["result"]["secret"].as_str().unwrap();
    assert_eq!(secret.len(), 32);
    for listed in [
        deployment.run(&["key", "list", "--all", "--json"]),
        deployment.run(&["partner", "show", "Acme", "--json"]),
        deployment.run(&["audit", "list", "--json"]),
    ] {
        assert_eq!(listed.code, 0);
        assert!(!listed.stdout.contains(secret));
    }
    let client = cluster::connect(&deployment.config).await;
    let texts = "SELECT string_agg(k::text, '') || (SELECT string_agg(a::text, '') FROM audit_log a) FROM api_keys k";
    let all: String = client.query_one(texts, &[]).await.unwrap().get(0);
    assert!(!all.contains(secret) && all.contains(&key));
}

/// SVC-12
#[tokio::test]
async fn a_certificate_is_verified_with_the_key_that_signed_it() {
    let deployment = Deployment::new().await;
    deployment.with_one_of_each();
    let created = deployment.json(&["key", "create", "Acme"])["result"].clone();
    let (key, secret) = (created["key_id"].as_str().unwrap(), created["secret"].as_str().unwrap());
    let secret: Secret = secret.parse().unwrap();
    let path = |name: &str| deployment.folder.path().join(name).to_str().unwrap().to_owned();
    let write = |name: &str, text: &str| fs::write(path(name), text).unwrap();
    let certificate = json!({ "key_id": key, "passed": false, "steps": [] });
    let signature = sign(&secret, &certificate_text(&certificate.to_string()));
    let file = format!("{:#}", json!({ "certificate": certificate, "signature": signature }));
    write("good.json", &file);
    write("altered.json", &file.replace("false", "true"));
    let page = "<html>\n<!-- made by hand -->\n<p>passed</p>";
    let signature = sign(&secret, &certificate_text(page));
    write("good.html", &format!("{page}\n<!-- {key} {signature} -->\n"));
    write("altered.html", &format!("{page}!\n<!-- {key} {signature} -->\n"));
    write("other.html", page);

    let verified = deployment.json(&["key", "verify", &path("good.json")]);
    assert_eq!(verified, json!({ "key_id": key, "partner": "Acme", "passed": false }));
    let verified = deployment.json(&["key", "verify", &path("good.html")]);
    assert_eq!(verified, json!({ "key_id": key, "partner": "Acme", "passed": null }));
    for name in ["altered.json", "altered.html"] {
        deployment
            .run(&["key", "verify", &path(name)])
            .failed(4, "the file was altered, or signed with another secret");
    }
    deployment
        .run(&["key", "verify", &path("other.html")])
        .failed(2, "must be a certificate");
    // The certificate outlives its key.
    assert_eq!(deployment.run(&["key", "revoke", key]).code, 0);
    assert_eq!(deployment.run(&["key", "verify", &path("good.html")]).code, 0);
}

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
