//! The commands of README.md.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The commands of "Quick start".
fn quick_start() -> Vec<&'static str> {
    let readme = include_str!("../README.md");
    let (_, section) = readme.split_once("## Quick start").unwrap();
    let block = section.split("```").nth(1).unwrap();
    let line = block.trim_start_matches("text").trim();
    line.split(" && ").collect()
}

/// A command in a new crate, without the network.
///
/// Cargo resolves its dependencies from the registry's index and archives in `CARGO_HOME`, which an earlier build of the workspace
/// has filled. Offline, a vendored folder has the same archives; here, it would only be copied from them.
fn cargo(folder: &Path, arguments: &[&str]) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(arguments)
        .current_dir(folder)
        .env("CARGO_NET_OFFLINE", "true")
        // Compiled dependencies are kept between runs. Debug information and incremental compilation would only use disk space.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_INCREMENTAL", "0")
        .env(
            "CARGO_TARGET_DIR",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme"),
        )
        .env("LISTEN", "127.0.0.1:0");
    cargo
}

fn generator(folder: &Path, arguments: &[&str]) {
    let made = Command::new(env!("CARGO_BIN_EXE_dropshot-codegen"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Runs the commands in a folder that contains only the document.
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
    let words: Vec<&str> = init.strip_prefix("dropshot-codegen ").unwrap().split(' ').collect();
    generator(folder.path(), &words);
    let made = folder.path().join(enter.strip_prefix("cd ").unwrap());
    assert!(cargo(&made, &["build"]).status().unwrap().success());
    let mut server = cargo(&made, &["run"]).stdout(Stdio::piped()).spawn().unwrap();
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

/// Errors with the members of Dropshot's own, and with those of this project's service, which are in an envelope.
#[test]
#[ignore = "compiles Dropshot; script/check runs it"]
fn the_errors_of_a_new_crate_match_the_schema_of_the_document_on_the_first_day() {
    let folder = tempfile::tempdir().unwrap();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let archive = std::fs::read_to_string(format!("{root}/codegen/fixtures/round_trip.txtar")).unwrap();
    let all = dropshot_codegen::archive::files(&archive);
    let (_, dropshots) = all.iter().find(|(name, _)| name == "pets.json").unwrap();
    std::fs::write(folder.path().join("dropshots.json"), dropshots).unwrap();
    let own = format!("{root}/spec/partner-api.yaml");
    for (spec, name) in [("dropshots.json", "dropshots"), (&own, "own")] {
        generator(folder.path(), &["--spec", spec, "init", name]);
        assert!(
            cargo(&folder.path().join(name), &["test"]).status().unwrap().success(),
            "{spec}"
        );
    }
}

/// The packages that `cargo publish` uploads, which contain what the sources include at compile time.
#[test]
fn both_crates_can_be_packaged() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let packages = [
        "package",
        "-p",
        "codegen-runtime",
        "-p",
        "dropshot-codegen",
        "--allow-dirty",
        "--no-verify",
    ];
    let target = tempfile::tempdir().unwrap();
    let made = cargo(root, &packages)
        .env("CARGO_TARGET_DIR", target.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut made: Vec<_> = std::fs::read_dir(target.path().join("package"))
        .unwrap()
        .flatten()
        .collect();
    made.retain(|entry| entry.path().extension().is_some_and(|extension| extension == "crate"));
    assert_eq!(made.len(), 2, "{made:?}");

    let listed = cargo(root, &[&packages[..6], &["--list"]].concat()).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for file in [
        "README.md",
        "templates/client/decimal_number.rs",
        "templates/crate.txtar",
        "templates/operation.txtar",
    ] {
        assert!(listed.lines().any(|line| line == file), "{file} is missing:\n{listed}");
    }
}

/// The `rust-version` of a package; `None` if it states none.
fn stated(package: &Value) -> Option<(u32, u32)> {
    let mut numbers = package["rust_version"]
        .as_str()?
        .split('.')
        .map(|part| part.parse().unwrap());
    Some((numbers.next()?, numbers.next()?))
}

/// The crates that this workspace publishes, with all that they are built from, compile with the version of Rust that they state, as
/// far as the dependencies say. clippy's `incompatible_msrv` checks their own code.
#[test]
fn no_dependency_of_a_published_crate_states_a_newer_version_of_rust() {
    let arguments = ["metadata", "--format-version", "1"];
    // On a machine that has built only the default members, Cargo downloads what others need.
    let read = cargo(Path::new(env!("CARGO_MANIFEST_DIR")), &arguments)
        .env("CARGO_NET_OFFLINE", "false")
        .output()
        .unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let metadata: Value = serde_json::from_slice(&read.stdout).unwrap();
    let by_id = |list: &'_ Value| -> BTreeMap<String, Value> {
        let all = list.as_array().unwrap().iter();
        all.map(|one| (one["id"].as_str().unwrap().into(), one.clone()))
            .collect()
    };
    let (packages, nodes) = (by_id(&metadata["packages"]), by_id(&metadata["resolve"]["nodes"]));
    let is_published = |package: &&Value| package["source"].is_null() && package["publish"].is_null();
    let published: Vec<&Value> = packages.values().filter(is_published).collect();
    assert_eq!(published.len(), 4, "{published:?}");
    for package in published {
        let mut open = vec![package["id"].as_str().unwrap()];
        let mut seen = BTreeSet::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let newer = stated(&packages[id]) > stated(package);
            assert!(
                !newer,
                "{} needs {id}, which states {:?}",
                package["name"],
                stated(&packages[id])
            );
            let dependencies = nodes[id]["deps"].as_array().unwrap().iter();
            let is_built = |it: &&Value| {
                it["dep_kinds"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|kind| kind["kind"] != "dev")
            };
            open.extend(dependencies.filter(is_built).map(|it| it["pkg"].as_str().unwrap()));
        }
        assert!(seen.len() > 10, "{seen:?}");
    }
}
