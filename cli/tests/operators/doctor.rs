//! What the doctor finds.

use partner_api_tests::cluster;
use partner_api_tests::cluster::Database;
use serde_json::Value;

use crate::program::Deployment;

fn verdict<'c>(checks: &'c Value, name: &str) -> (&'c str, String) {
    let check = checks.as_array().unwrap().iter().find(|check| check["check"] == name);
    let check = check.unwrap_or_else(|| panic!("no check of {name}: {checks}"));
    (
        check["verdict"].as_str().unwrap(),
        format!("{} {}", check["found"], check["next"]),
    )
}

fn doctor(deployment: &Deployment) -> (i32, Value) {
    let ran = deployment.run(&["doctor", "--json"]);
    (
        ran.code,
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}")),
    )
}

#[tokio::test]
async fn a_deployment_is_looked_at_from_its_configuration_to_its_keys() {
    let deployment = Deployment::new().await;
    deployment.small_world();
    let (_, checks) = doctor(&deployment);
    for name in [
        "configuration",
        "master key",
        "storage",
        "clock",
        "migrations",
        "secrets",
        "keys",
        "measurements",
    ] {
        assert_eq!(verdict(&checks, name).0, "ok", "{name}: {checks}");
    }
    // The tests' cluster flushes nothing, which the doctor must see.
    assert_eq!(verdict(&checks, "database").0, "failed");
    assert!(verdict(&checks, "database").1.contains("fsync"), "{checks}");
    assert_eq!(verdict(&checks, "replicas").0, "warning");

    let client = cluster::connect(&deployment.config).await;
    let ends = "UPDATE api_keys SET expires_at = now() + interval '2 days'";
    client.batch_execute(ends).await.unwrap();
    let (_, checks) = doctor(&deployment);
    assert_eq!(verdict(&checks, "keys").0, "warning");
    assert!(
        verdict(&checks, "keys").1.contains("partner-api key rotate"),
        "{checks}"
    );

    client
        .batch_execute(
            "INSERT INTO replicas VALUES (gen_random_uuid(), 'elsewhere', '10.0.0.1:8080', 'live', '1.0.0', '{}')",
        )
        .await
        .unwrap();
    let (code, checks) = doctor(&deployment);
    assert_eq!((code, verdict(&checks, "replicas").0), (1, "failed"));
}

#[tokio::test]
async fn what_is_missing_is_told_with_what_to_do() {
    // Sealed under another master key than this deployment's.
    let deployment = Deployment::of(Database::create().await);
    let (code, checks) = doctor(&deployment);
    assert_eq!((code, verdict(&checks, "secrets").0), (1, "failed"));
    assert!(
        verdict(&checks, "secrets").1.contains("--other-master-key-file"),
        "{checks}"
    );

    let client = cluster::connect(&deployment.config).await;
    let newest =
        "DELETE FROM refinery_schema_history WHERE version = (SELECT max(version) FROM refinery_schema_history)";
    client.batch_execute(newest).await.unwrap();
    let (code, checks) = doctor(&deployment);
    assert_eq!((code, verdict(&checks, "migrations").0), (1, "failed"));
    assert!(
        verdict(&checks, "migrations").1.contains("partner-api migrate"),
        "{checks}"
    );

    let ran = deployment.shell("PARTNER_API_DATABASE_URL=postgresql://nobody@127.0.0.1:1/none partner-api doctor");
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout.contains("FAILED") && ran.stdout.contains("see that it runs"),
        "{}",
        ran.stdout
    );
}
