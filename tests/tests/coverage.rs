//! What the document declares has its snapshot. Needs no database.

// A test says what is wrong by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;

use partner_api_tests::coverage::{Coverage, files, first_difference, folder};

#[test]
fn every_declared_answer_has_a_snapshot_and_every_snapshot_is_declared() {
    let coverage = Coverage::read();
    // An empty document would be covered by nothing.
    assert!(coverage.declared.len() > 100, "{}", coverage.declared.len());
    let findings = coverage.findings();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn the_table_is_what_the_snapshots_say() {
    let kept = fs::read_to_string(folder().join("COVERAGE.md")).unwrap();
    if let Some(difference) = first_difference(&kept, &Coverage::read().table()) {
        panic!("stale: snapshots/COVERAGE.md, {difference}\nrun `cargo run --bin coverage`");
    }
}

#[test]
fn no_snapshot_is_pending_and_nothing_else_lies_between_them() {
    let strange: Vec<String> = files().into_iter().filter(|file| !file.ends_with(".snap")).collect();
    assert!(strange.is_empty(), "in snapshots/: {strange:?}");
    let beside = fs::read_dir(folder()).unwrap().map(Result::unwrap);
    for entry in beside.filter(|entry| !entry.file_type().unwrap().is_dir()) {
        let name = entry.file_name().into_string().unwrap();
        assert!(
            matches!(&*name, "COVERAGE.md" | "exceptions.toml"),
            "in snapshots/: {name}"
        );
    }
}
