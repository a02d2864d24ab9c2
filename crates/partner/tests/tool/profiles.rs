use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use partner_api_tests::{ALPHA, Service};
use serde_json::json;

use crate::program::Program;

fn mode(path: impl AsRef<std::path::Path>) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// KEY-1
#[tokio::test]
async fn a_profile_is_added_with_its_secret_in_a_private_file_and_used() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let add = [
        "profile",
        "add",
        "sandbox",
        "--base-url",
        &service.base_url,
        "--key-id",
        ALPHA.id,
    ];
    let added = program.fed(&mut program.bare(&add), ALPHA.secret.as_bytes()).await;
    assert_eq!(added.code, 0, "{}", added.stderr);
    let folder = program.path(".config/partner");
    assert_eq!(mode(folder.join("config.toml")), 0o600);
    assert_eq!(mode(folder.join("sandbox.secret")), 0o600);
    assert!(
        !fs::read_to_string(folder.join("config.toml"))
            .unwrap()
            .contains(ALPHA.secret)
    );
    // The first one is the default.
    let health = program.bare(&["health", "--json"]).output().await.unwrap();
    assert!(health.status.success(), "{health:?}");
    let again = program.fed(&mut program.bare(&add), ALPHA.secret.as_bytes()).await;
    again.failed(4, "already has a profile `sandbox`");
    let other = program.bare(&["--profile", "sandbx", "health"]).output().await.unwrap();
    crate::program::Ran::from(other).failed(3, "did you mean `sandbox`?");
}

#[tokio::test]
async fn a_secret_comes_from_a_program_a_variable_or_a_private_file() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let add = |name: &str, more: &[&str]| {
        let arguments = [
            &[
                "profile",
                "add",
                name,
                "--base-url",
                &service.base_url,
                "--key-id",
                ALPHA.id,
            ],
            more,
        ]
        .concat();
        program.bare(&arguments)
    };
    fs::write(program.path("secret"), ALPHA.secret).unwrap();
    fs::set_permissions(program.path("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    // Like a keyring client, `cat` prints the secret.
    let command = ["--secret-command", "cat", "secret"];
    for (name, more) in [
        ("keyring", &command[..]),
        ("variable", &["--secret-env", "MY_SECRET"]),
        ("file", &["--secret-file", "secret"]),
    ] {
        let added = add(name, more).output().await.unwrap();
        assert!(added.status.success(), "{added:?}");
        let mut health = program.bare(&["--profile", name, "health"]);
        let health = health.env("MY_SECRET", ALPHA.secret).output().await.unwrap();
        assert!(health.status.success(), "{name}: {health:?}");
    }
    let names: Vec<_> = program
        .json(&["profile", "list"])
        .await
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["name"].clone())
        .collect();
    assert_eq!(names, [json!("file"), json!("keyring"), json!("variable")]);
    fs::set_permissions(program.path("secret"), fs::Permissions::from_mode(0o640)).unwrap();
    let open = program.bare(&["--profile", "file", "health"]).output().await.unwrap();
    crate::program::Ran::from(open).failed(4, "chmod 600");
}

#[tokio::test]
async fn without_a_key_the_error_names_the_command_that_adds_one() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let nothing = program.bare(&["health"]).output().await.unwrap();
    crate::program::Ran::from(nothing).failed(2, "partner profile add");
}

/// ERR-3, ERR-4
#[tokio::test]
async fn a_rejected_key_is_exit_code_4_and_no_message_contains_the_secret() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let mut wrong = program.command(&["health"]);
    let secret = "WRONGWRONGWRONGWRONGWRONGWRONGWR";
    let ran = crate::program::Ran::from(wrong.env("PARTNER_SECRET", secret).output().await.unwrap());
    ran.failed(4, "invalid_signature");
    let mut misread = program.command(&["health"]);
    let ran = crate::program::Ran::from(misread.env("PARTNER_SECRET", "not a secret").output().await.unwrap());
    ran.failed(2, "a secret must have 32 characters");
    assert!(!ran.stderr.contains("not a secret"));
}

#[tokio::test]
async fn a_sandbox_json_selects_one_of_its_partners() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let manifest = json!({
        "base_url": service.base_url, "environment": "test",
        "partners": [{ "name": "alpha", "key_id": ALPHA.id, "secret": ALPHA.secret }],
        "examples": { "open_report": { "plate": "35OPN205", "branch_code": "IZMIR-01" } }
    });
    fs::write(program.path("sandbox.json"), manifest.to_string()).unwrap();
    let health = program
        .bare(&["--sandbox", "sandbox.json", "health"])
        .output()
        .await
        .unwrap();
    assert!(health.status.success(), "{health:?}");
    let beta = program
        .bare(&["--sandbox", "sandbox.json", "--as", "beta", "health"])
        .output()
        .await
        .unwrap();
    crate::program::Ran::from(beta).failed(3, "its partners are alpha");
}

#[tokio::test]
async fn a_wrong_url_or_file_is_named_before_anything_is_sent() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let doubled = format!("{}/api/v1/partner", service.base_url);
    program
        .run(&["--base-url", &doubled, "health"])
        .await
        .failed(2, "must not end with /api/v1/partner");
    program
        .run(&["--base-url", "127.0.0.1:9", "health"])
        .await
        .failed(2, "must begin with http:// or https://");
    program
        .run(&["--sandbox", "nope.json", "health"])
        .await
        .failed(3, "nope.json");
}

/// Notepad and PowerShell write such files.
#[tokio::test]
async fn a_secret_file_with_a_byte_order_mark_or_in_utf_16_is_read() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let line = format!("\u{feff}{}\r\n", ALPHA.secret);
    let utf16: Vec<u8> = line.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for bytes in [line.into_bytes(), utf16] {
        fs::write(program.path("secret"), bytes).unwrap();
        fs::set_permissions(program.path("secret"), fs::Permissions::from_mode(0o600)).unwrap();
        let ran = program.run(&["--secret-file", "secret", "health"]).await;
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
}
