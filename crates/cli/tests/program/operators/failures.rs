//! Failed commands and their messages.

use std::fs;
use std::process::Command;

use regex::Regex;

use super::program::Deployment;

/// OPS-3, OPS-4
#[tokio::test]
async fn a_failed_command_has_an_exit_code_and_a_message_and_changes_nothing() {
    let deployment = Deployment::new().await;
    let key = deployment.with_one_of_each();
    let before = deployment.state().await;
    for (line, code, words) in [
        ("partner-api partner create Acme", 4, "partner `Acme` already exists"),
        ("partner-api partner create ' Acme'", 2, "starts or ends with a space"),
        ("partner-api partner create ''", 2, "it is empty"),
        ("partner-api partner show Akme", 3, "did you mean `Acme`?"),
        ("partner-api partner show nobody", 3, "partner-api partner list"),
        (
            "partner-api key create Acme --scope test-line:wirte",
            2,
            "did you mean `test-line:write`?",
        ),
        (
            "partner-api key create Acme --expires-at 2020-01-01T00:00:00Z",
            2,
            "must be in the future",
        ),
        (
            "partner-api key create Acme --expires-at tomorrow",
            2,
            "like 2026-12-01T00:00:00+03:00",
        ),
        ("partner-api key create Acme --rate-limit 0", 2, "--rate-limit"),
        ("partner-api key revoke vip_test_", 2, "2 or more"),
        ("partner-api key revoke vip_test_NONE", 3, "there is no key"),
        ("partner-api key expire KEY", 2, "--never"),
        ("partner-api grant add Acme izmirr", 3, "did you mean `izmir`?"),
        (
            "partner-api grant add Acme izmir --branch IZM-03",
            3,
            "did you mean `IZM-01` or `IZM-02`?",
        ),
        ("partner-api grant add Acme izmir --branch IZM-01", 4, "add --only"),
        (
            "partner-api grant remove Acme izmir --branch IZM-01",
            4,
            "--only --branch CODE",
        ),
        (
            "partner-api allowlist add KEY 10.0.0.1/8",
            2,
            "did you mean 10.0.0.0/8?",
        ),
        ("partner-api allowlist add KEY 10.0.0", 2, "expected a CIDR block"),
        (
            "partner-api organization create Ankara --slug Ankara",
            2,
            "like izmir-vehicle",
        ),
        ("partner-api organization create Ankara --slug izmir", 4, "already"),
        ("partner-api organization set izmir", 2, "--name"),
        (
            "partner-api organization set izmir --pii-mode some",
            2,
            "NONE, MASKED or FULL",
        ),
        (
            "partner-api branch create izmir ızm-01 --name X --city Y",
            4,
            "already has a branch `IZM-01`",
        ),
        ("partner-api branch set izmir IZM-01", 2, "--name"),
        ("partner-api inspector create Ali", 2, "--branch"),
        (
            "partner-api inspector create ' Ali' --branch IZM-01",
            2,
            "starts or ends with a space",
        ),
        (
            "partner-api inspector create Ali --branch IZM-03",
            3,
            "did you mean `IZM-01` or `IZM-02`?",
        ),
        (
            "partner-api inspector create Ali --branch Bornowa",
            3,
            "did you mean `Bornova`?",
        ),
        (
            "partner-api inspector create 'ayşe yılmaz' --branch Konak",
            4,
            "inspector `ayşe yılmaz` already exists in `izmir`",
        ),
        (
            "partner-api inspector show 'Ayse Yilmaz'",
            3,
            "did you mean `Ayşe Yılmaz`?",
        ),
        ("partner-api inspector revoke nobody", 3, "partner-api inspector list"),
        (
            "partner-api threshold set izmir SLIP_FRONT --good 1,5..2",
            2,
            "like 1.5",
        ),
        (
            "partner-api threshold set izmir SLIP_FRONT --good ..",
            2,
            "at least one bound",
        ),
        (
            "partner-api threshold set izmir SLIP_FRONT --good 1..2 --borderline 1.5..3",
            2,
            "must include the good range",
        ),
        (
            "partner-api threshold set izmir slip --good 1..2",
            2,
            "is not a measurement point",
        ),
        ("partner-api range set izmir SLIP_FRONT ..", 2, "at least one bound"),
        (
            "partner-api range set izmir SLIP_FRONT -2000..5",
            2,
            "a range can only be narrowed",
        ),
        (
            "partner-api range remove izmir SLIP_REARS",
            3,
            "did you mean `SLIP_REAR`?",
        ),
        (
            "partner-api threshold remove izmir SLIP_FRONTS",
            3,
            "did you mean `SLIP_FRONT`?",
        ),
        ("partner-api template import izmir no-such-file", 2, "no-such-file"),
        ("partner-api template import izmir .", 2, "directory"),
        (
            "echo '[{code: A, nam: B}]' | partner-api template import izmir -",
            2,
            "unknown field `nam`",
        ),
        (
            "partner-api measurement show 01a200b8-aeae-74c2-995c-7055164aa494",
            3,
            "there is no measurement",
        ),
    ] {
        let line = line.replace("KEY", &key);
        // A second key, so that the prefix is ambiguous.
        if line.contains("revoke vip_test_") {
            deployment.shell("partner-api key create Acme");
        }
        let ran = deployment.shell(&line);
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{line}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(words),
            "{line}: {words:?} is not in {:?}",
            ran.stderr
        );
        if line.contains("NONE") {
            let keys = deployment.json(&["key", "list"]);
            let other = keys
                .as_array()
                .unwrap()
                .iter()
                .find(|other| other["key_id"] != *key)
                .unwrap();
            deployment.run(&["key", "revoke", other["key_id"].as_str().unwrap()]);
        }
    }
    assert_eq!(deployment.state().await, before);
}

/// OPS-3
#[tokio::test]
async fn a_not_found_message_names_an_existing_command() {
    let deployment = Deployment::new().await;
    deployment.with_one_of_each();
    fs::write(deployment.folder.path().join("not-ours.pdf"), "%PDF-1.7").unwrap();
    let command = Regex::new("partner-api [a-z]+ [a-z]+").unwrap();
    for (line, named) in [
        ("partner show QQ", "partner-api partner list"),
        ("key revoke QQ", "partner-api key list"),
        ("organization set QQ --name Q", "partner-api organization list"),
        ("branch set izmir QQ --name Q", "partner-api branch list"),
        ("inspector show QQ", "partner-api inspector list"),
        ("threshold remove izmir QQ", "partner-api threshold list"),
        ("range remove izmir QQ", "partner-api range list"),
        (
            "measurement show 01a200b8-aeae-74c2-995c-7055164aa494",
            "partner-api measurement list",
        ),
        (
            "request show 01a200b8-aeae-74c2-995c-7055164aa494",
            "partner-api request list",
        ),
        ("report verify not-ours.pdf", "partner-api report show"),
    ] {
        let ran = deployment.shell(&format!("partner-api {line}"));
        assert_eq!(ran.code, 3, "{line}: {}", ran.stderr);
        let advised = command.find(&ran.stderr).map(|found| found.as_str());
        assert_eq!(advised, Some(named), "{line}: {}", ran.stderr);
        assert_eq!(deployment.shell(&format!("{named} --help")).code, 0, "{named}");
    }
    let ran = deployment.run(&["report", "show", "QQ"]);
    ran.failed(3, "there is no report `QQ`; expected the number or ID");
}

/// OPS-4: a command does not apply migrations.
#[tokio::test]
async fn a_command_rejects_a_schema_that_is_not_migrated() {
    let deployment = Deployment::new().await;
    let client = partner_api_tests::cluster::connect(&deployment.config).await;
    let none = "DELETE FROM refinery_schema_history";
    client.batch_execute(none).await.unwrap();
    deployment.run(&["partner", "list"]).failed(1, "partner-api migrate");
}

#[tokio::test]
async fn an_unreachable_database_is_reported_with_the_reason() {
    let ran = Command::new(env!("CARGO_BIN_EXE_partner-api"))
        .args(["partner", "list"])
        .env("PARTNER_API_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(1));
    let words = String::from_utf8(ran.stderr).unwrap();
    assert!(words.contains("the database cannot be reached"), "{words}");
}
