//! The checks of `partner-api doctor`. The file is long because each table of broken deployments is one test.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use chrono::Datelike as _;
use embedded_postgres::{EmbeddedPostgres, Options};
use partner_api_tests::cluster::{self, Database};
use partner_api_tests::port::free_address;
use partner_api_tests::wait::until;
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
        (
            "operator",
            "REVOKE SELECT ON replicas FROM d_operator",
            "failed",
            "SELECT on replicas",
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
    // A check that needs the right says so.
    let (code, checks) = doctor(&deployment);
    let denied = checks.as_array().unwrap().iter().any(|check| {
        check["found"]
            .as_str()
            .unwrap()
            .contains("permission denied for table replicas")
            && check["next"].as_str().unwrap().contains("partner-api migrate --roles")
    });
    assert!(code == 1 && denied, "{checks}");
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

/// A way to break a deployment: SQL that breaks it, SQL that repairs it, and settings of the environment; then the check that finds it,
/// its verdict, and parts of what it says, of which the last is the remedy.
type Broken = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    [&'static str; 2],
);

const NONE: &str = "";
const BROKEN: [Broken; 22] = [
    (
        "INSERT INTO replicas (id, host, address, environment, version, master_keys, connections)
         SELECT gen_random_uuid(), 'one', '10.0.0.1:8080', 'test', '1.4.0', '{}', n FROM unnest(ARRAY[27, 100000]) n",
        "DELETE FROM replicas",
        NONE,
        "connections",
        "failed",
        ["replicas: 2, together with up to 100027 connections", "--pool-size"],
    ),
    (
        NONE,
        NONE,
        "PARTNER_API_READ_DATABASE_URL=\"$PARTNER_API_DATABASE_URL\" PARTNER_API_POOL_SIZE=1000",
        "read connections",
        "failed",
        ["replicas: 1, together with up to 1000 connections", "max_connections"],
    ),
    (
        NONE,
        NONE,
        "PARTNER_API_READ_DATABASE_URL=postgresql://nobody@127.0.0.1:1/none",
        "read connections",
        "warning",
        ["no standby responds", "read_database_url"],
    ),
    (
        "UPDATE deployment SET environment = 'live';
         INSERT INTO audit_log (occurred_at, actor, host, command, kind, subject, action)
         VALUES (now() - interval '9 days', 'ops', 'db', 'backup verify', 'backup', 'a.dump', 'The backup a.dump can be restored.')",
        "UPDATE deployment SET environment = 'test'",
        "PARTNER_API_ENVIRONMENT=live",
        "backup",
        "warning",
        ["last verified at", "partner-api backup verify"],
    ),
    (
        "UPDATE pg_index SET indisvalid = false FROM pg_class c
         WHERE c.oid = indexrelid AND c.oid = (SELECT max(inhrelid) FROM pg_inherits
             WHERE inhparent = 'inspection_form_answer_history_pkey'::regclass)",
        "UPDATE pg_index SET indisvalid = true WHERE NOT indisvalid",
        NONE,
        "schema",
        "failed",
        ["index inspection_form_answer_history_", "REINDEX INDEX inspection_form_answer_history_"],
    ),
    (
        "ALTER DATABASE d SET default_transaction_read_only = on",
        "ALTER DATABASE d RESET default_transaction_read_only",
        NONE,
        "database",
        "failed",
        ["read-only", "ALTER DATABASE"],
    ),
    (
        "ALTER DATABASE d CONNECTION LIMIT 5",
        "ALTER DATABASE d CONNECTION LIMIT -1",
        NONE,
        "connections",
        "failed",
        ["the database allows 5", "--pool-size"],
    ),
    (
        "ALTER INDEX inspections_by_branch RENAME TO away",
        "ALTER INDEX away RENAME TO inspections_by_branch",
        NONE,
        "schema",
        "failed",
        ["inspections_by_branch", "CREATE INDEX"],
    ),
    (
        "ALTER TABLE audit_log DISABLE TRIGGER prevent_modification",
        "ALTER TABLE audit_log ENABLE TRIGGER prevent_modification",
        NONE,
        "schema",
        "failed",
        ["prevent_modification", "ENABLE TRIGGER"],
    ),
    (
        "UPDATE refinery_schema_history SET version = -version",
        "UPDATE refinery_schema_history SET version = -version",
        NONE,
        "migrations",
        "failed",
        ["V1__baseline", "partner-api migrate"],
    ),
    (
        "INSERT INTO refinery_schema_history VALUES (9002, 'later', '2030-01-01T00:00:00Z', '1');
         UPDATE deployment SET required_migration = 9002",
        "DELETE FROM refinery_schema_history WHERE version = 9002; UPDATE deployment SET required_migration = 1",
        NONE,
        "migrations",
        "failed",
        ["V9002__later", "install the version"],
    ),
    (
        NONE,
        NONE,
        "PARTNER_API_ENVIRONMENT=live",
        "deployment",
        "failed",
        ["belongs to the test deployment", "database_url"],
    ),
    (
        NONE,
        NONE,
        "PARTNER_API_MASTER_KEY_FILE=absent.key",
        "master key",
        "failed",
        ["absent.key", "the same master key"],
    ),
    (
        "UPDATE api_keys SET secret_ciphertext = '\\x00'",
        NONE,
        NONE,
        "secrets",
        "failed",
        ["cannot be decrypted", "--other-master-key-file"],
    ),
    (
        NONE,
        NONE,
        "PARTNER_API_DATABASE_URL=\"$PARTNER_API_DATABASE_URL&options=-c%20synchronous_commit%3Doff\"",
        "session",
        "failed",
        ["synchronous_commit is off", "remove the setting"],
    ),
    (
        NONE,
        NONE,
        "PARTNER_API_DATABASE_URL=\"$PARTNER_API_DATABASE_URL&options=-c%20statement_timeout%3D0\"",
        "session",
        "failed",
        ["statement_timeout is 0", "remove the setting"],
    ),
    (
        "INSERT INTO replicas VALUES (gen_random_uuid(), 'one', '10.0.0.1:8080', 'test', '1.4.0', '{}');
         INSERT INTO replicas VALUES (gen_random_uuid(), 'two', '10.0.0.2:8080', 'test', '1.4.0', '{}', now(), now(),
             now() + interval '5 s')",
        "DELETE FROM replicas",
        NONE,
        "replicas' clocks",
        "warning",
        ["5000 ms apart (one is behind two)", "systemctl restart chrony"],
    ),
    (
        "INSERT INTO replicas VALUES (gen_random_uuid(), 'one', '10.0.0.1:8080', 'test', '1.4.0', '{}');
         INSERT INTO replicas VALUES (gen_random_uuid(), 'two', '10.0.0.2:8080', 'test', '1.3.0', '{}')",
        "DELETE FROM replicas",
        NONE,
        "replicas",
        "warning",
        ["1.3.0", "finish the upgrade"],
    ),
    (
        "INSERT INTO rate_windows SELECT key_id, now() - interval '3 days', 1 FROM api_keys",
        "DELETE FROM rate_windows",
        NONE,
        "partners",
        "warning",
        ["the last request of `Acme`", "partner-api request list --partner 'Acme'"],
    ),
    (
        NONE,
        NONE,
        "PARTNER_API_STORAGE_DIR=/proc/none",
        "storage",
        "failed",
        ["/proc/none", "--storage-dir"],
    ),
    (
        NONE,
        NONE,
        "PARTNER_API_STORAGE_DIR=/proc/none",
        "free space",
        "failed",
        ["/proc/none: 0 of 0 MiB", "enlarge the file system"],
    ),
    (
        NONE,
        NONE,
        "PARTNER_API_DATABASE_URL=postgresql://nobody@127.0.0.1:1/none",
        "database",
        "failed",
        ["database", "check that it runs"],
    ),
];

/// With the two of the next test, the tests of certificates, and those of roles above: 15 and more broken deployments.
#[tokio::test]
async fn each_broken_deployment_is_named_with_its_remedy() {
    let deployment = Deployment::new().await;
    deployment.with_one_of_each();
    let client = cluster::connect(&deployment.config).await;
    let name = deployment.config.get_dbname().unwrap();
    let sql = async |text: &str| {
        let text = text.replace("DATABASE d ", &format!("DATABASE {name} "));
        client
            .batch_execute(&text)
            .await
            .unwrap_or_else(|error| panic!("{text}: {error:?}"));
    };
    for (breaks, repairs, environment, check, expected, parts) in BROKEN {
        sql(breaks).await;
        let ran = deployment.shell(&format!("{environment} partner-api doctor --json"));
        let checks: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        let broken = format!("{breaks}{environment}");
        let judged = checks
            .as_array()
            .unwrap()
            .iter()
            .find(|each| each["check"] == check && each["verdict"] == expected);
        let judged = judged.unwrap_or_else(|| panic!("{broken}: {checks:#}"));
        let message = format!("{} {}", judged["found"], judged["next"]);
        for part in parts {
            assert!(message.contains(part), "{broken}: {message}");
        }
        assert!(
            judged["next"].as_str().unwrap().contains(parts[1]),
            "{broken}: {message}"
        );
        sql(repairs).await;
    }
}

/// In a cluster of its own, because the settings concern all databases of a cluster.
#[tokio::test]
async fn a_missing_synchronous_standby_and_a_failing_archive_are_failures() {
    let folder = tempfile::tempdir().unwrap();
    // As root, PostgreSQL runs as another user, who must be able to enter.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // Keepalives concern connections over TCP. The port is fixed, so each run has its own address.
    let port = free_address().port();
    let address = format!("127.{}.{}.1", port >> 8, port & 255);
    let settings = [
        ("archive_mode", "on"),
        ("archive_command", "false"),
        ("listen_addresses", &address),
    ];
    let options = Options {
        durable: false,
        settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        ..Options::of("partner-api")
    };
    let postgres = EmbeddedPostgres::start(folder.path(), options).await.unwrap();
    let deployment = Deployment::over(postgres.config(), None);
    assert_eq!(deployment.run(&["migrate"]).code, 0);
    let (_, checks) = doctor(&deployment);
    assert_eq!(verdict(&checks, "standby").0, "ok", "{checks}");
    assert_eq!(verdict(&checks, "archive").0, "warning", "{checks}");

    let client = cluster::connect(&deployment.config).await;
    let allow = "DO $$ BEGIN
        EXECUTE format('COPY (VALUES (''local all all trust''), (''host all all 127.0.0.0/8 trust'')) TO %L',
            current_setting('hba_file'));
        PERFORM pg_reload_conf(); END $$";
    client.batch_execute(allow).await.unwrap();
    let (user, database) = (
        deployment.config.get_user().unwrap(),
        deployment.config.get_dbname().unwrap(),
    );
    let url = format!("postgresql://{user}@{address}/{database}");
    for (options, expected, part) in [
        ("", "ok", "lost connections end in time"),
        (
            "?options=-c%20tcp_keepalives_idle%3D7200",
            "warning",
            "tcp_keepalives_idle is 7200 s instead of 30 s",
        ),
    ] {
        let line = format!("PARTNER_API_DATABASE_URL='{url}{options}' partner-api doctor --json");
        let checks = until(Duration::from_secs(30), async || {
            let checks: Value = serde_json::from_str(&deployment.shell(&line).stdout).unwrap();
            // PostgreSQL reads the file a moment after the request to do so.
            let connects = checks
                .as_array()
                .unwrap()
                .iter()
                .any(|check| check["check"] == "session");
            connects.then_some(checks)
        })
        .await;
        let (verdict, message) = verdict(&checks, "session");
        assert_eq!(verdict, expected, "{message}");
        assert!(message.contains(part), "{message}");
    }
    client
        .batch_execute("ALTER SYSTEM SET synchronous_standby_names = 'standby1'")
        .await
        .unwrap();
    client
        .batch_execute("SELECT pg_reload_conf(), pg_switch_wal()")
        .await
        .unwrap();
    until(Duration::from_secs(30), async || {
        let seen =
            "SELECT failed_count > 0 AND current_setting('synchronous_standby_names') <> '' FROM pg_stat_archiver";
        client
            .query_one(seen, &[])
            .await
            .unwrap()
            .get::<_, bool>(0)
            .then_some(())
    })
    .await;
    let (code, checks) = doctor(&deployment);
    assert_eq!(code, 1);
    for (check, found, remedy) in [
        (
            "standby",
            "writes wait for a standby (standby1), and none is connected",
            "patronictl reinit",
        ),
        ("archive", "could not be archived", "pgbackrest --stanza=partner check"),
    ] {
        let (verdict, message) = verdict(&checks, check);
        assert_eq!(verdict, "failed", "{message}");
        assert!(message.contains(found) && message.contains(remedy), "{message}");
    }
    postgres.stop().await;
}
