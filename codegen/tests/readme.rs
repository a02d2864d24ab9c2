//! The commands of README.md.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

/// The commands of "Quick start".
fn quick_start() -> Vec<&'static str> {
    let readme = include_str!("../README.md");
    let (_, section) = readme.split_once("## Quick start").unwrap();
    let block = section.split("```").nth(1).unwrap();
    let line = block.trim_start_matches("text").trim();
    line.split(" && ").collect()
}

/// Runs the commands in a folder that contains only the document, without the network.
#[test]
#[ignore = "compiles Dropshot; script/check runs it"]
fn the_quick_start_serves_a_document_from_an_empty_folder() {
    let commands = quick_start();
    let [init, enter, "cargo run"] = commands.as_slice() else {
        panic!("{commands:?}");
    };
    let folder = tempfile::tempdir().unwrap();
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/petstore/openapi.yaml");
    std::fs::copy(document, folder.path().join("petstore.yaml")).unwrap();

    let mut words = init.split(' ');
    assert_eq!(words.next(), Some("dropshot-codegen"));
    let made = Command::new(env!("CARGO_BIN_EXE_dropshot-codegen"))
        .args(words)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let made = folder.path().join(enter.strip_prefix("cd ").unwrap());

    // Compiled dependencies are kept between runs.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
    let cargo = |arguments: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(arguments)
            .current_dir(&made)
            .env("CARGO_NET_OFFLINE", "true")
            .env("CARGO_TARGET_DIR", &target)
            .env("LISTEN", "127.0.0.1:0");
        cargo
    };
    assert!(cargo(&["build"]).status().unwrap().success());
    let mut server = cargo(&["run"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    let address = line.strip_prefix("serving at http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /pets HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(response.starts_with("HTTP/1.1 501 "), "{response}");
}
