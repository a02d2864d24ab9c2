//! Tests of the program `partner`. Those in the modules start a service, which needs Unix. Those in this file also run on Windows: they
//! use a small HTTP server with scripted responses.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[cfg(unix)]
mod certify;
#[cfg(unix)]
mod gateway;
#[cfg(unix)]
mod listen;
#[cfg(unix)]
mod manual;
#[cfg(unix)]
mod map;
#[cfg(unix)]
mod measure;
#[cfg(unix)]
mod profiles;
#[cfg(unix)]
mod program;
#[cfg(unix)]
mod proxy;
#[cfg(unix)]
mod read;
#[path = "../../../../client/tests/client/server.rs"]
mod server;
#[cfg(unix)]
mod sign;
#[cfg(unix)]
mod sync;
#[cfg(unix)]
mod trial;
#[cfg(unix)]
mod watch;

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Output;

use server::{Received, Server, Step};
use tokio::process::Command;

/// A package as Windows programs write it.
const PACKAGE: &str = "{\r\n  \"external_id\": \"A-1\", \"branch_code\": \"ANK-01\", \"plate\": \"34 ABC 123\",\r\n  \
                       \"device_serial\": \"Ölçüm İ\", \"measured_at\": \"2026-05-01T12:30:00+03:00\",\r\n  \
                       \"measurements\": { \"SLIP_FRONT\": -1.40 }\r\n}\r\n";
const RECORDED: &str = r#"{"data":{"measurement_id":"0197c2b0-3c00-7f66-a071-7c8d9e0f1a2b","status":"applied","plate":"34ABC123",
    "inspection_id":"0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f","applied_points":["SLIP_FRONT"],"idempotent_replay":false}}"#;
const UNAVAILABLE: &str = r#"{"error":{"code":"service_unavailable","message":"try again","request_id":"R-1"}}"#;

fn responds(status: u16, body: &str) -> Step {
    let headers = vec!["content-type: application/json".to_owned(), "retry-after: 1".to_owned()];
    Step::Respond(status, headers, body.to_owned())
}

async fn partner(server: &Server, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_partner"));
    command
        .args(arguments)
        .current_dir(folder)
        .env_remove("PARTNER_PROFILE")
        .env("PARTNER_CONFIG", folder.join("config.toml"))
        .env("PARTNER_BASE_URL", &server.base_url)
        .env("PARTNER_KEY_ID", "vip_test_ABCDEFGHIJKLMNOPQRSTUV")
        .env("PARTNER_SECRET", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567");
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

/// Asserts that each attempt sent the package in UTF-8, with its own nonce.
fn assert_packages(attempts: &[Received], count: usize) {
    assert_eq!(attempts.len(), count, "{attempts:?}");
    for attempt in attempts {
        assert!(attempt.line.starts_with("POST /api/v1/partner/test-line/measurements "));
        assert_eq!(String::from_utf8_lossy(&attempt.body), PACKAGE);
    }
    let nonces: HashSet<_> = attempts
        .iter()
        .map(|attempt| attempt.header("x-partner-nonce"))
        .collect();
    assert_eq!(nonces.len(), count);
}

fn utf16(text: &str) -> Vec<u8> {
    let units = std::iter::once(0xfeff).chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

/// MEA-16
#[tokio::test]
async fn a_package_in_utf16_is_sent_again_after_a_broken_connection_and_a_503() {
    let server = Server::start(vec![Step::HangUp, responds(503, UNAVAILABLE), responds(201, RECORDED)]).await;
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("spool")).unwrap();
    // On Windows, the path has a backslash.
    let path = Path::new("spool").join("package.json");
    fs::write(folder.path().join(&path), utf16(PACKAGE)).unwrap();
    let output = partner(&server, folder.path(), &["measure", path.to_str().unwrap(), "--json"]).await;
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("\"applied\""),
        "{output:?}"
    );
    assert_packages(&server.received(), 3);
}

/// MEA-16
#[tokio::test]
async fn a_watched_file_is_sent_again_after_a_broken_connection_and_moved() {
    let health = r#"{"status":"ok"}"#;
    let server = Server::start(vec![responds(200, health), Step::HangUp, responds(201, RECORDED)]).await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("Ölçüm.json"), utf16(PACKAGE)).unwrap();
    let options = ["measure", "--watch", ".", "--once", "--settle", "0s", "--every", "20ms"];
    partner(&server, folder.path(), &options).await;
    let received = server.received();
    assert!(received[0].line.starts_with("GET /api/v1/partner/health "));
    assert_packages(&received[1..], 2);
    assert!(!folder.path().join("Ölçüm.json").exists());
    let sent = fs::read_dir(folder.path().join("sent")).unwrap();
    let contents: Vec<_> = sent.map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
    assert_eq!(contents.len(), 2);
    assert!(contents.contains(&utf16(PACKAGE)));
}
