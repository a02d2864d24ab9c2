//! The deployment that a database belongs to, and the users of its roles.

use std::path::Path;
use std::process::{Command, Stdio};

use partner_api_tests::cluster::{self, Database, SERVER};
use partner_api_tests::port::free_address;
use serde_json::Value;

use super::program::Deployment;

async fn deployment_id(deployment: &Deployment) -> String {
    let client = cluster::connect(&deployment.config).await;
    let id = client.query_one("SELECT id::text FROM deployment", &[]).await.unwrap();
    id.get(0)
}

/// OPS-10
#[tokio::test]
async fn no_program_of_another_environment_uses_the_database() {
    let deployment = Deployment::new().await;
    deployment.with_one_of_each();
    let id = deployment_id(&deployment).await;
    let before = deployment.state().await;
    for line in [
        "partner-api serve --listen 127.0.0.1:0",
        "partner-api migrate",
        "partner-api key create Acme",
        "partner-api key list",
        "partner-api partner create Other",
        "partner-api organization set izmir --pii-mode FULL",
        "partner-api grant remove Acme izmir",
        "partner-api inspector revoke 'Ayşe Yılmaz'",
        "partner-api template import izmir /dev/null",
        "partner-api secrets rekey",
        "partner-api purge",
        "partner-api erase vehicle WVWZZZ1KZ6W000433",
        "partner-api import --kind vehicles --format csv /dev/null",
        "partner-api export partners",
        "partner-api audit list",
        "partner-api backup create a.dump",
        "partner-api backup verify a.dump",
    ] {
        let ran = deployment.shell(&format!("PARTNER_API_ENVIRONMENT=live {line}"));
        let expected =
            format!("the database belongs to the test deployment {id}, but this program is configured for live");
        assert_eq!(ran.code, 2, "{line}: {ran:?}");
        assert!(ran.stderr.contains(&expected), "{line}: {}", ran.stderr);
    }
    assert_eq!(deployment.state().await, before);
    let checks = deployment.shell("PARTNER_API_ENVIRONMENT=live partner-api doctor --json");
    let checks: Value = serde_json::from_str(&checks.stdout).unwrap();
    let check = checks
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["check"] == "deployment");
    assert_eq!(check.unwrap()["verdict"], "failed", "{checks}");
}

/// OPS-10
#[tokio::test]
async fn a_configured_deployment_id_must_be_that_of_the_database() {
    let deployment = Deployment::new().await;
    let id = deployment_id(&deployment).await;
    let with = |id: &str| deployment.shell(&format!("PARTNER_API_DEPLOYMENT={id} partner-api partner create Acme"));
    let other = "01939b97-5c00-74ad-a4d9-83e75accf8ea";
    let ran = with(other);
    ran.failed(2, &format!("the database belongs to the test deployment {id}"));
    ran.failed(2, &format!("configured for the deployment {other}"));
    with("not-an-id").failed(2, "PARTNER_API_DEPLOYMENT");
    assert_eq!(deployment.state().await["partners"], Value::Null);
    assert_eq!(with(&id).code, 0);
}

/// OPS-10: a database of an earlier version has no environment yet.
#[tokio::test]
async fn a_database_takes_the_environment_of_the_program_that_migrates_it_unless_its_keys_are_of_the_other() {
    let mut deployment = Deployment::of(Database::without_rows().await);
    let client = cluster::connect(&deployment.config).await;
    let unclaimed = "UPDATE deployment SET environment = NULL";
    let environment = async || -> Option<String> {
        let found = client.query_one("SELECT environment FROM deployment", &[]).await;
        found.unwrap().get(0)
    };
    assert_eq!(deployment.run(&["partner", "create", "Acme"]).code, 0);
    assert_eq!(deployment.run(&["key", "create", "Acme"]).code, 0);
    client.batch_execute(unclaimed).await.unwrap();

    deployment.run(&["key", "list"]).failed(1, "partner-api migrate");
    // Operators cannot decide it.
    deployment.run(&["migrate"]).failed(1, "as the owner of the schema");
    assert_eq!(environment().await, None);

    deployment.user = deployment.config.get_user().unwrap().to_owned();
    let live = deployment.shell("PARTNER_API_ENVIRONMENT=live partner-api migrate");
    live.failed(
        2,
        "all keys in the database are of the other environment, but this program is configured for live",
    );
    assert_eq!(environment().await, None);
    let ran = deployment.run(&["migrate"]);
    let id = deployment_id(&deployment).await;
    assert_eq!(
        ran.stdout,
        format!("The schema is up to date.\nThe database belongs to the test deployment {id}.\n")
    );
    assert_eq!(environment().await.as_deref(), Some("test"));
}

/// OPS-4
#[tokio::test]
async fn a_configuration_that_must_be_corrected_is_exit_code_2_for_every_command() {
    let deployment = Deployment::new().await;
    for (setting, part) in [
        ("PARTNER_API_POOL_SIZE=0", "--pool-size"),
        ("PARTNER_API_CONFIG=absent.toml", "absent.toml"),
        ("PARTNER_API_LISTEN=nowhere", "PARTNER_API_LISTEN"),
        ("PARTNER_API_DATABASE_URL=partner", "database URL"),
        ("PARTNER_API_DEPLOYMENT=none", "PARTNER_API_DEPLOYMENT"),
    ] {
        for command in ["serve", "migrate", "migrate --status", "partner list", "doctor"] {
            let ran = deployment.shell(&format!("{setting} partner-api {command}"));
            assert_eq!(ran.code, 2, "{setting} {command}: {ran:?}");
            // The doctor shows an unusable URL among its checks.
            let shown = if command == "doctor" { &ran.stdout } else { "" };
            let message = format!("{}{shown}", ran.stderr);
            assert!(message.contains(part), "{setting} {command}: {message}");
        }
    }
    let file = |name: &str, text: &str| std::fs::write(deployment.folder.path().join(name), text).unwrap();
    file("typo.toml", "environment = \"test\"\npool_sise = 4\n");
    file("syntax.toml", "environment = test\n");
    file("empty.pem", "");
    let private = deployment.shell("chmod 600 empty.pem");
    assert_eq!(private.code, 0);
    // systemd restarts a service forever unless it exits with 2.
    for (setting, part) in [
        ("PARTNER_API_CONFIG=typo.toml", "pool_sise"),
        ("PARTNER_API_CONFIG=syntax.toml", "syntax.toml"),
        ("PARTNER_API_MASTER_KEY_FILE=absent.key", "absent.key"),
        ("PARTNER_API_LOG_LEVEL=loud,=x", "--log-level"),
        (
            "PARTNER_API_TLS_CERTIFICATE=absent.pem PARTNER_API_TLS_KEY=absent.key",
            "absent.pem",
        ),
        (
            "PARTNER_API_TLS_CERTIFICATE=empty.pem PARTNER_API_TLS_KEY=empty.pem",
            "contains no certificate",
        ),
        ("PARTNER_API_STORAGE_DIR=/proc/none", "/proc/none"),
    ] {
        let ran = deployment.shell(&format!("{setting} partner-api serve --listen 127.0.0.1:0"));
        assert_eq!(ran.code, 2, "{setting}: {ran:?}");
        assert!(ran.stderr.contains(part), "{setting}: {}", ran.stderr);
    }
}

/// A service that a deployment runs with its role; stopped when dropped.
struct Serving(std::process::Child);

impl Serving {
    /// Stops the service as systemd does, and waits until it has ended.
    fn stop(mut self) {
        let process = nix::unistd::Pid::from_raw(self.0.id().try_into().unwrap());
        nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGTERM).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The roles that `migrate --roles` creates suffice for the program.
#[tokio::test]
async fn the_program_serves_with_a_user_of_the_servers_role() {
    let mut deployment = Deployment::of(Database::without_rows().await);
    let superuser = deployment.config.get_user().unwrap().to_owned();
    deployment.user.clone_from(&superuser);
    for _ in 0..2 {
        let ran = deployment.run(&["migrate", "--roles"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let database = deployment.config.get_dbname().unwrap();
        assert!(
            ran.stdout.contains(&format!("IN ROLE \"{database}_server\"")),
            "{}",
            ran.stdout
        );
    }
    let (server, operator) = (user(&deployment, "server").await, user(&deployment, "operator").await);
    deployment.user = operator;
    let key = deployment.with_one_of_each();
    assert!(key.starts_with("vip_test_"));

    let (address, internal) = (free_address(), free_address());
    deployment.user = server;
    let mut serve = Command::new(env!("CARGO_BIN_EXE_partner-api"));
    deployment
        .prepare(serve.args(["serve", "--listen", &address.to_string()]))
        .env("PARTNER_API_INTERNAL_LISTEN", internal.to_string())
        .stderr(Stdio::null());
    let serving = Serving(serve.spawn().unwrap());
    let ready = format!("until curl --silent --fail http://{internal}/ready; do sleep 0.1; done");
    assert_eq!(deployment.shell(&ready).code, 0);
    let health = deployment.shell(&format!("curl --silent http://{address}/api/v1/partner/health"));
    assert!(health.stdout.contains("request_id"), "{}", health.stdout);
    // A replica that was stopped does not count as serving any more; see `replicas` of the doctor.
    let listed = "SELECT count(*), min(connections) FROM replicas";
    let client = cluster::connect(&deployment.config).await;
    let row = client.query_one(listed, &[]).await.unwrap();
    assert_eq!((row.get(0), row.get(1)), (1_i64, Some(27_i32)));
    serving.stop();
    assert_eq!(client.query_one(listed, &[]).await.unwrap().get::<_, i64>(0), 0);

    // The roles of the template have no rights in this database beyond its own, and nobody else may connect.
    let may = "SELECT has_database_privilege($1::text, current_database(), 'TEMPORARY')";
    assert!(!client.query_one(may, &[&SERVER]).await.unwrap().get::<_, bool>(0));
    let revoked = format!(
        "DROP ROLE {}, {}",
        deployment.user,
        deployment.user.replace("server", "operator")
    );
    client.batch_execute(&revoked).await.unwrap();
}

/// Creates a user in a role of the deployment's database.
async fn user(deployment: &Deployment, role: &str) -> String {
    let name = format!("{role}_of_{}", deployment.config.get_dbname().unwrap());
    let client = cluster::connect(&deployment.config).await;
    let create = format!(
        "CREATE ROLE {name} LOGIN IN ROLE {}_{role}",
        deployment.config.get_dbname().unwrap()
    );
    client.batch_execute(&create).await.unwrap();
    name
}

/// OPS-12: the next release has migrated the database, and this one administers it.
#[tokio::test]
async fn the_commands_work_on_a_schema_that_a_later_release_expanded_but_not_on_a_contracted_one() {
    let mut deployment = Deployment::new().await;
    let later = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixture/migrations");
    let migrations = cluster::migrations_with(&later);
    cluster::apply(&deployment.config, &migrations).await.unwrap();
    let key = deployment.with_one_of_each();
    for line in [
        format!("partner-api key rotate {key}"),
        format!("partner-api key revoke {key}"),
        "partner-api grant remove Acme izmir".to_owned(),
        "partner-api audit list".to_owned(),
        "partner-api request list".to_owned(),
        "partner-api migrate".to_owned(),
    ] {
        let ran = deployment.shell(&line);
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
    }
    let status = deployment.run(&["migrate", "--status"]).stdout;
    assert!(
        status.contains("V9001__station_notes") && status.contains("by a newer program"),
        "{status}"
    );
    let pending = deployment.run(&["migrate", "--dry-run"]).stdout;
    assert!(
        pending.contains("this program can use it: V9001__station_notes"),
        "{pending}"
    );
    let checks = deployment.run(&["doctor"]).stdout;
    assert!(checks.contains("finish the upgrade, or install"), "{checks}");
    // The roles would lose what the later release gave them.
    deployment.user = deployment.config.get_user().unwrap().to_owned();
    deployment
        .run(&["migrate", "--roles"])
        .failed(1, "run this command with the version that migrated it");

    let client = cluster::connect(&deployment.config).await;
    let contract = "UPDATE deployment SET required_migration = 9001";
    client.batch_execute(contract).await.unwrap();
    for line in [
        "serve --listen 127.0.0.1:0",
        "migrate",
        "key list",
        "partner create Other",
    ] {
        let ran = deployment.shell(&format!("partner-api {line}"));
        assert_eq!(ran.code, 1, "{line}: {ran:?}");
        let expected = "it requires a program that knows V9001__station_notes";
        assert!(ran.stderr.contains(expected), "{line}: {}", ran.stderr);
    }
}
