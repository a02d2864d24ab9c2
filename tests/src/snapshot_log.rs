//! The check that the whole suite asserts every snapshot on disk exactly once.
//!
//! Under `test-postgres --whole-suite` each assertion writes a line to a file of its test, in the folder that [`VARIABLE`] names.
//! When the suite has passed, the lines are compared with `snapshots/`. If a test was retried, its last run counts.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Names the folder of the log.
pub const VARIABLE: &str = "SNAPSHOT_LOG";

/// Records that this snapshot (`<operation id>/<case>.snap`) is asserted here, if the variable is set.
///
/// # Errors
/// If the log cannot be written.
pub fn record(file: &str, place: &Location<'_>) -> io::Result<()> {
    let Some(folder) = std::env::var_os(VARIABLE) else {
        return Ok(());
    };
    static LOG: OnceLock<PathBuf> = OnceLock::new();
    let log = LOG.get_or_init(|| {
        let log = Path::new(&folder).join(name_of(|variable| std::env::var(variable).ok()));
        // An earlier run of this test may have left one. If it cannot be removed, its lines are reported as duplicates.
        let _ = fs::remove_file(&log);
        log
    });
    // One write, because without nextest tests are threads of one process.
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)?
        .write_all(format!("{file}\t{place}\n").as_bytes())
}

/// Returns the name of this process's file: that of the test if nextest runs it, else the process ID.
fn name_of(variable: impl Fn(&str) -> Option<String>) -> String {
    match (variable("NEXTEST_BINARY_ID"), variable("NEXTEST_TEST_NAME")) {
        (Some(binary), Some(test)) => format!("{binary} {test}").replace("::", ".").replace('/', "-"),
        _ => std::process::id().to_string(),
    }
}

/// Returns every assertion of a log: the snapshot and the place.
///
/// # Errors
/// If the log cannot be read.
pub fn read(folder: &Path) -> io::Result<Vec<(String, String)>> {
    let mut asserted = Vec::new();
    for entry in fs::read_dir(folder)? {
        let text = fs::read_to_string(entry?.path())?;
        asserted.extend(text.lines().map(|line| {
            let (file, place) = line.split_once('\t').unwrap_or((line, ""));
            (file.to_owned(), place.to_owned())
        }));
    }
    Ok(asserted)
}

/// Returns the differences between the suite's assertions and the files on disk, one sentence each.
pub fn findings(asserted: &[(String, String)], files: &[String]) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (file, place) in asserted {
        places.entry(file).or_default().push(place);
    }
    let mut findings = Vec::new();
    for (file, places) in &mut places {
        if places.len() > 1 {
            places.sort_unstable();
            findings.push(format!(
                "snapshots/{file} is asserted {} times, at {}: each response needs a unique name",
                places.len(),
                places.join(" and ")
            ));
        }
        if !files.iter().any(|existing| existing == file) {
            findings.push(format!(
                "snapshots/{file} was asserted at {}, and does not exist",
                places[0]
            ));
        }
    }
    let orphans = files.iter().filter(|file| !places.contains_key(file.as_str()));
    findings.extend(orphans.map(|file| format!("snapshots/{file} is asserted by no test; remove it")));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asserted(entries: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(file, place): &(&str, &str)| ((*file).to_owned(), (*place).to_owned());
        entries.iter().map(owned).collect()
    }

    #[test]
    fn a_snapshot_that_exists_and_is_asserted_once_is_no_finding() {
        let log = asserted(&[("a/x.snap", "t.rs:1:1"), ("b/x.snap", "t.rs:1:1")]);
        let files = ["a/x.snap".to_owned(), "b/x.snap".to_owned()];
        assert_eq!(findings(&log, &files), Vec::<String>::new());
    }

    #[test]
    fn an_orphan_a_duplicate_and_a_missing_file_are_found() {
        let log = asserted(&[
            ("a/x.snap", "u.rs:2:1"),
            ("a/x.snap", "t.rs:1:1"),
            ("a/z.snap", "t.rs:9:1"),
        ]);
        let files = ["a/x.snap".to_owned(), "a/y.snap".to_owned()];
        assert_eq!(
            findings(&log, &files),
            [
                "snapshots/a/x.snap is asserted 2 times, at t.rs:1:1 and u.rs:2:1: each response needs a unique name",
                "snapshots/a/z.snap was asserted at t.rs:9:1, and does not exist",
                "snapshots/a/y.snap is asserted by no test; remove it",
            ]
        );
    }

    #[test]
    fn a_retried_test_writes_the_same_file_and_another_test_a_different_one() {
        let of = |binary: &'static str, test: &'static str| {
            name_of(|variable| {
                Some(match variable {
                    "NEXTEST_BINARY_ID" => binary.to_owned(),
                    "NEXTEST_TEST_NAME" => test.to_owned(),
                    other => panic!("{other}"),
                })
            })
        };
        assert_eq!(of("a", "x"), of("a", "x"));
        assert_ne!(of("a", "x"), of("a", "y"));
        assert_ne!(of("a", "x"), of("b", "x"));
        assert_eq!(name_of(|_| None), std::process::id().to_string());
    }

    #[test]
    fn without_assertions_every_file_is_an_orphan() {
        assert_eq!(findings(&[], &["a/x.snap".to_owned()]).len(), 1);
    }
}
