//! `partner-api sandbox` as a process.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

/// SVC-9
#[test]
fn a_reset_without_a_sandbox_creates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let reset = Command::new(env!("CARGO_BIN_EXE_partner-api"))
        .args(["sandbox", "--reset", "alpha", "--data-dir"])
        .arg(folder.path())
        .output()
        .unwrap();
    let message = String::from_utf8(reset.stderr).unwrap();
    assert!(!reset.status.success());
    assert!(message.contains("there is no sandbox in"), "{message}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// SVC-9
#[test]
fn a_sandbox_on_a_used_port_ends_before_it_creates_anything() {
    let other_program = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other_program.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Command::new(env!("CARGO_BIN_EXE_partner-api"))
        .args(["sandbox", "--port", &address.port().to_string()])
        .arg("--data-dir")
        .arg(folder.path())
        .output()
        .unwrap();
    let message = String::from_utf8(sandbox.stderr).unwrap();
    assert!(!sandbox.status.success());
    assert!(
        message.contains(&format!("failed to listen on {address}")) && message.contains("--port"),
        "{message}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
