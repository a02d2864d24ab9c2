//! Keys and their secrets.

use std::thread;

use partner_api_tests::cluster;

use super::program::Deployment;

/// KEY-11
#[tokio::test]
async fn of_four_keys_that_are_made_at_once_two_come_to_be() {
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
    // Two that are both let in make no third by being renewed, either.
    let keys = deployment.json(&["key", "list"]);
    let first = keys[0]["key_id"].as_str().unwrap();
    assert_eq!(deployment.run(&["key", "expire", first, "--in", "0"]).code, 0);
    assert_eq!(deployment.run(&["key", "create", "Acme"]).code, 0);
    deployment
        .run(&["key", "expire", first, "--never"])
        .failed(4, "already has two active test keys");
}

/// KEY-11: by the database itself, whatever program writes.
#[tokio::test]
async fn the_database_refuses_a_third_active_key() {
    let deployment = Deployment::new().await;
    deployment.with_one_of_each();
    let client = cluster::connect(&deployment.config).await;
    let another = "INSERT INTO api_keys (key_id, partner_id, environment, secret_nonce, secret_ciphertext) \
                   SELECT $1, id, $2, decode(repeat('00', 24), 'hex'), '' FROM partners";
    let insert = async |id: &str, environment: &str| client.execute(another, &[&id, &environment]).await;
    insert("vip_test_B", "test").await.unwrap();
    let refused = insert("vip_test_C", "test").await.unwrap_err();
    assert_eq!(
        refused.as_db_error().unwrap().constraint(),
        Some("at_most_two_active_keys")
    );
    // Of each environment.
    insert("vip_live_D", "live").await.unwrap();
}

/// KEY-11: 24 h unless told, 0 to 7 days.
#[tokio::test]
async fn a_rotated_key_goes_on_for_its_overlap() {
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
    // Two are active: which one is meant must be said, and with an overlap there is no room for a third.
    deployment
        .run(&["key", "rotate", "Acme"])
        .failed(2, "two active test keys");
    deployment
        .run(&["key", "rotate", &second])
        .failed(4, "already has two active test keys");
    // Without one, the new key takes the place of the old.
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
    assert_eq!(ends(&key).1, sooner, "a key that ends sooner anyway is left to");
}

/// OPS-3: a random id is like another one only by mistake.
#[tokio::test]
async fn a_mistyped_key_id_is_told_and_another_one_is_not() {
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

/// KEY-2: shown once, to who asked for it, and kept sealed.
#[tokio::test]
async fn a_secret_is_shown_once_and_stands_nowhere_else() {
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
