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
        "deployment",
        "schema",
        "connections",
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

/// The doctor judges the user that it connects as.
#[tokio::test]
async fn a_user_with_too_many_or_too_few_rights_is_reported() {
    let mut deployment = Deployment::new().await;
    let superuser = deployment.config.get_user().unwrap().to_owned();
    for (user, expected, part) in [
        // The roles of the harness are those of its template, and not of this database.
        (cluster::OPERATOR, "failed", "lacks"),
        (cluster::SERVER, "warning", "TEMPORARY in the database"),
        (&superuser, "warning", "is a superuser"),
    ] {
        deployment.user = user.to_owned();
        let (_, checks) = doctor(&deployment);
        let (verdict, message) = verdict(&checks, "role");
        assert_eq!(verdict, expected, "{user}: {message}");
        assert!(message.contains(part), "{user}: {message}");
    }
}

/// The rights are compared after the roles of this database were created.
#[tokio::test]
async fn rights_that_a_role_lacks_or_does_not_need_are_named() {
    let mut deployment = Deployment::new().await;
    deployment.user = deployment.config.get_user().unwrap().to_owned();
    let database = deployment.config.get_dbname().unwrap().to_owned();
    assert_eq!(deployment.run(&["migrate", "--roles"]).code, 0);
    let client = cluster::connect(&deployment.config).await;
    let users = ["owner", "server", "operator"]
        .map(|role| format!("CREATE ROLE {database}_{role}_user LOGIN IN ROLE {database}_{role};"));
    client.batch_execute(&users.concat()).await.unwrap();
    for (user, change, expected, part) in [
        ("owner", "", "warning", "owns the schema"),
        ("server", "", "ok", "exactly the rights of"),
        ("operator", "", "ok", "exactly the rights of"),
        (
            "server",
            "GRANT SELECT, UPDATE ON audit_log TO PUBLIC",
            "warning",
            "SELECT on audit_log, UPDATE on audit_log",
        ),
        ("operator", "", "warning", "UPDATE on audit_log"),
        (
            "server",
            "REVOKE ALL ON audit_log FROM PUBLIC",
            "ok",
            "exactly the rights of",
        ),
        (
            "server",
            "GRANT TEMPORARY ON DATABASE d TO PUBLIC",
            "warning",
            "TEMPORARY in the database",
        ),
        (
            "server",
            "REVOKE TEMPORARY ON DATABASE d FROM PUBLIC; GRANT CREATE ON SCHEMA public TO PUBLIC",
            "warning",
            "CREATE in the schema",
        ),
        (
            "server",
            "REVOKE CREATE ON SCHEMA public FROM PUBLIC; ALTER ROLE server CREATEROLE",
            "warning",
            "CREATEROLE",
        ),
        (
            "server",
            "ALTER ROLE server NOCREATEROLE; REVOKE INSERT ON used_nonces FROM d_server",
            "failed",
            "INSERT on used_nonces",
        ),
        (
            "server",
            "REVOKE EXECUTE ON FUNCTION create_partition FROM d_server",
            "failed",
            "EXECUTE on create_partition",
        ),
        (
            "operator",
            "REVOKE INSERT ON audit_log FROM d_operator",
            "failed",
            "INSERT on audit_log",
        ),
    ] {
        let change = change
            .replace("DATABASE d ", &format!("DATABASE {database} "))
            .replace("d_", &format!("{database}_"))
            .replace("ROLE server", &format!("ROLE {database}_server_user"))
            .replace(&format!("use{database}_"), "used_");
        client.batch_execute(&change).await.unwrap();
        deployment.user = format!("{database}_{user}_user");
        let (_, checks) = doctor(&deployment);
        let (verdict, message) = verdict(&checks, "role");
        assert_eq!(verdict, expected, "{user}: {change}: {message}");
        assert!(message.contains(part), "{user}: {change}: {message}");
    }
    // Creating the roles again repairs the rights.
    deployment.user = deployment.config.get_user().unwrap().to_owned();
    assert_eq!(deployment.run(&["migrate", "--roles"]).code, 0);
    for user in ["server", "operator"] {
        deployment.user = format!("{database}_{user}_user");
        let (_, checks) = doctor(&deployment);
        assert_eq!(verdict(&checks, "role").0, "ok", "{checks}");
    }
    let users = ["owner", "server", "operator"].map(|role| format!("DROP ROLE {database}_{role}_user;"));
    client.batch_execute(&users.concat()).await.unwrap();
}

#[tokio::test]
async fn limits_that_a_replica_would_exceed_and_a_read_only_database_are_failures() {
    let deployment = Deployment::new().await;
    let client = cluster::connect(&deployment.config).await;
    let name = deployment.config.get_dbname().unwrap();
    for (change, check, expected, part) in [
        (
            "CONNECTION LIMIT 27",
            "connections",
            "warning",
            "the database allows 27",
        ),
        ("CONNECTION LIMIT 26", "connections", "failed", "--pool-size"),
        (
            "SET default_transaction_read_only = on",
            "database",
            "failed",
            "read-only",
        ),
    ] {
        let change = format!("ALTER DATABASE {name} {change}");
        client.batch_execute(&change).await.unwrap();
        let (code, checks) = doctor(&deployment);
        let (verdict, message) = verdict(&checks, check);
        assert_eq!((code, verdict), (1, expected), "{change}: {message}");
        assert!(message.contains(part), "{change}: {message}");
    }
}

#[tokio::test]
async fn a_missing_or_disabled_object_of_the_schema_is_named_with_its_remedy() {
    let deployment = Deployment::new().await;
    let client = cluster::connect(&deployment.config).await;
    for (change, parts) in [
        (
            "ALTER TABLE audit_log DISABLE TRIGGER prevent_modification",
            [
                "trigger prevent_modification on audit_log",
                "ALTER TABLE audit_log ENABLE TRIGGER prevent_modification",
            ],
        ),
        (
            "ALTER TABLE audit_log ENABLE TRIGGER ALL; DROP TRIGGER protect_raw_package ON measurements",
            ["trigger protect_raw_package on measurements", "CREATE TRIGGER"],
        ),
        (
            "DROP INDEX inspections_by_branch",
            ["index inspections_by_branch on inspections", "CREATE INDEX"],
        ),
        (
            "ALTER TABLE photos DROP CONSTRAINT photos_inspection_id_organization_id_fkey",
            [
                "constraint photos_inspection_id_organization_id_fkey on photos",
                "migrations",
            ],
        ),
        (
            "DROP FUNCTION drop_partition",
            ["function drop_partition", "migrations"],
        ),
        ("DROP TABLE report_sweep", ["table report_sweep", "migrations"]),
    ] {
        client.batch_execute(change).await.unwrap();
        let (code, checks) = doctor(&deployment);
        let (verdict, message) = verdict(&checks, "schema");
        assert_eq!((code, verdict), (1, "failed"), "{change}: {message}");
        for part in parts {
            assert!(message.contains(part), "{change}: {message}");
        }
    }
}
