//! The checks of `partner-api doctor`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use chrono::Datelike as _;
use partner_api_tests::cluster;
use partner_api_tests::cluster::Database;
use serde_json::Value;

use super::program::Deployment;

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
async fn all_parts_of_a_deployment_are_checked() {
    let deployment = Deployment::new().await;
    deployment.with_one_of_each();
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
    // The tests' cluster runs without fsync, which the doctor must report.
    assert_eq!(verdict(&checks, "database").0, "failed");
    assert!(verdict(&checks, "database").1.contains("fsync"), "{checks}");
    assert_eq!(verdict(&checks, "replicas").0, "warning");

    let client = cluster::connect(&deployment.config).await;
    let expire_soon = "UPDATE api_keys SET expires_at = now() + interval '2 days'";
    client.batch_execute(expire_soon).await.unwrap();
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
async fn a_failed_check_names_the_remedy() {
    // The secrets are encrypted with another master key than this deployment's.
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
        ran.stdout.contains("FAILED") && ran.stdout.contains("check that it runs"),
        "{}",
        ran.stdout
    );
}

#[tokio::test]
async fn a_certificate_that_expires_soon_is_a_warning_and_an_unusable_one_a_failure() {
    let deployment = Deployment::new().await;
    let (_, checks) = doctor(&deployment);
    assert_eq!(verdict(&checks, "certificate").0, "ok");

    let key = rcgen::KeyPair::generate().unwrap();
    fs::write(deployment.folder.path().join("tls.key"), key.serialize_pem()).unwrap();
    fs::set_permissions(
        deployment.folder.path().join("tls.key"),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    let check = |days: i64, mode: u32| {
        let mut certificate = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        let end = chrono::Utc::now() + chrono::TimeDelta::days(days);
        certificate.not_after = rcgen::date_time_ymd(end.year(), end.month() as u8, end.day() as u8);
        let certificate = certificate.self_signed(&key).unwrap().pem();
        fs::write(deployment.folder.path().join("tls.crt"), certificate).unwrap();
        fs::set_permissions(
            deployment.folder.path().join("tls.key"),
            fs::Permissions::from_mode(mode),
        )
        .unwrap();
        let line = "PARTNER_API_TLS_CERTIFICATE=tls.crt PARTNER_API_TLS_KEY=tls.key partner-api doctor --json";
        let ran = deployment.shell(line);
        let checks: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        let (verdict, message) = verdict(&checks, "certificate");
        (verdict.to_owned(), message)
    };
    for (days, mode, expected, part) in [
        (30, 0o600, "ok", "matches its key"),
        (10, 0o600, "warning", "renew it"),
        (-1, 0o600, "failed", "expired at"),
        (30, 0o644, "failed", "chmod 600"),
    ] {
        let (verdict, message) = check(days, mode);
        assert_eq!(verdict, expected, "{message}");
        assert!(message.contains(part), "{message}");
    }
}
