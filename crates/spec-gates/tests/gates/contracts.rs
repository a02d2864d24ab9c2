//! Contracts to change, assertions about the reported changes, and the crates that partners use.

use std::fs;
use std::path::PathBuf;

use semver::Version;
use serde_json::Value;
use spec_gates::{Change, Severity, compare, released as read, verdict};

/// Returns the project's root. The environment variable comes first, so that the tests can be run on another copy of the project.
pub fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    PathBuf::from(package).ancestors().nth(2).unwrap().to_owned()
}

/// Returns a small contract with one of everything.
pub fn small() -> Value {
    serde_yaml::from_str(include_str!("small.yaml")).unwrap()
}

/// Returns the newest released contract.
pub fn released() -> Value {
    read::newest(&root().join("spec/released")).unwrap().document
}

/// Returns the working contract.
pub fn working() -> Value {
    read::read(&root().join("spec/partner-api.yaml")).unwrap().document
}

/// Returns the inspectors' contract.
pub fn inspectors() -> Value {
    read::read(&root().join("spec/inspector-api.yaml")).unwrap().document
}

/// Returns the value at a JSON pointer.
pub fn at<'a>(contract: &'a mut Value, pointer: &str) -> &'a mut Value {
    contract
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("the fixture has no {pointer}"))
}

/// Returns the changes that an edit makes.
pub fn changes_of(base: &Value, edit: impl FnOnce(&mut Value)) -> Vec<Change> {
    let mut edited = base.clone();
    edit(&mut edited);
    compare(base, &edited)
}

/// Asserts that the edit makes exactly this change, and that the verdict follows from it.
pub fn check(base: &Value, edit: impl FnOnce(&mut Value), severity: Severity, pointer: &str, words: &str) {
    assert_only(&changes_of(base, edit), severity, pointer, words);
}

/// Asserts that there is exactly this change, and that the verdict accepts the right versions.
pub fn assert_only(changes: &[Change], severity: Severity, pointer: &str, words: &str) {
    let [change] = changes else {
        panic!("expected one change at {pointer}: {changes:#?}")
    };
    assert_eq!(
        (change.severity, change.pointer.as_str()),
        (severity, pointer),
        "{change}"
    );
    assert!(change.what.contains(words), "{change}");

    let changelog = "## 2.0.0\n\n## 1.5.0\n\n## 1.4.1\n\n## 1.4.0\n";
    let accepted = match severity {
        Severity::Breaking => [false, false, false, true],
        Severity::Addition => [false, false, true, true],
        Severity::Wording => [true; 4],
    };
    for (version, accepted) in ["1.4.0", "1.4.1", "1.5.0", "2.0.0"].into_iter().zip(accepted) {
        let verdict = verdict(
            changes,
            &Version::new(1, 4, 0),
            &Version::parse(version).unwrap(),
            changelog,
        );
        assert_eq!(verdict.is_ok(), accepted, "{version}: {verdict:?}");
        if let Err(objections) = verdict {
            assert!(
                objections.len() == 1 && objections[0].starts_with(&format!("{pointer}: ")),
                "{objections:?}"
            );
            assert!(objections[0].contains("raise /info/version"), "{objections:?}");
        }
    }
}

#[test]
fn a_crate_for_partners_contains_its_licenses_and_its_metadata() {
    for folder in ["client", "crates/signing"] {
        let folder = root().join(folder);
        let manifest: toml::Table = fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap();
        let package = &manifest["package"];
        assert_eq!(package["publish"].as_bool(), Some(true), "{}", folder.display());
        for name in [
            "description",
            "documentation",
            "license",
            "repository",
            "readme",
            "keywords",
            "categories",
        ] {
            assert!(package.get(name).is_some(), "{}: {name}", folder.display());
        }
        for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let text = fs::read(folder.join(license)).unwrap_or_default();
            assert!(
                text == fs::read(root().join(license)).unwrap(),
                "{}: {license}",
                folder.display()
            );
        }
        let included = package["include"].as_array().unwrap();
        assert!(included.contains(&"/LICENSE-*".into()), "{included:?}");
    }
    assert!(root().join("client/examples/reports.rs").is_file());
}
