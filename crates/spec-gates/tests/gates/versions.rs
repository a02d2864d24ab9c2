//! The real contracts, their versions, and changes that no rule covers.

use std::collections::BTreeMap;

use regex::Regex;
use semver::Version;
use serde_json::{Value, json};
use spec_gates::Severity::{Addition, Breaking, Wording};
use spec_gates::accepted::Accepted;
use spec_gates::{accepted, compare, released as read, verdict};

use crate::contracts::{at, changes_of, check, released, root, small, working};

/// SVC-4
#[test]
fn the_working_contract_can_be_released_with_its_version() {
    let root = root();
    let base = read::newest(&root.join("spec/released")).unwrap();
    let working = read::read(&root.join("spec/partner-api.yaml")).unwrap();
    let changelog = std::fs::read_to_string(root.join("CHANGELOG.md")).unwrap();
    let accepted = accepted::read(&root.join("spec/accepted-changes.yaml")).unwrap();
    let changes = accepted::accept(compare(&base.document, &working.document), &accepted, &base.version);
    let changes = changes.unwrap_or_else(|unneeded| panic!("spec/accepted-changes.yaml: {}", unneeded.join("\n")));
    if let Err(objections) = verdict(&changes, &base.version, &working.version, &changelog) {
        panic!("{}", objections.join("\n"));
    }
}

/// SVC-4
#[test]
fn each_version_has_the_same_month_in_both_documents_and_none_is_in_the_future() {
    let heading = Regex::new(r"(?m)^(?:##|-) (\d+\.\d+\.\d+) \((\d{4}-\d{2})\)").unwrap();
    let months = |text: &str| -> BTreeMap<Version, String> {
        let found = heading.captures_iter(text);
        found
            .map(|version| (version[1].parse().unwrap(), version[2].to_owned()))
            .collect()
    };
    let changelog = months(&std::fs::read_to_string(root().join("CHANGELOG.md")).unwrap());
    let mut contract = working();
    let description = at(&mut contract, "/info/description").as_str().unwrap();
    assert_eq!(changelog, months(description));
    let mut dated: Vec<_> = changelog.into_values().collect();
    assert!(dated.len() >= 5 && dated.is_sorted(), "{dated:?}");
    let this_month = chrono::Utc::now().format("%Y-%m").to_string();
    assert!(
        dated.pop().unwrap() <= this_month,
        "a version is dated after {this_month}"
    );
}

#[test]
fn a_breaking_change_is_accepted_only_at_its_place_and_since_its_version() {
    let pointer = "/components/schemas/Kind/enum";
    let changes = || changes_of(&small(), |contract| *at(contract, pointer) = json!(["a", "b", "c"]));
    assert!(changes().iter().any(|change| change.severity == Breaking));
    let entry = |pointer: &str| Accepted {
        base: "1.4.0".to_owned(),
        pointer: pointer.to_owned(),
        why: String::new(),
    };
    let severities = |base, entries: &[Accepted]| {
        let changes = accepted::accept(changes(), entries, &base)?;
        Ok::<_, Vec<String>>(changes.iter().map(|change| change.severity).collect::<Vec<_>>())
    };
    let unaccepted = severities(Version::new(1, 4, 0), &[]).unwrap();
    assert!(unaccepted.contains(&Breaking));
    let accepted = severities(Version::new(1, 4, 0), &[entry(pointer)]).unwrap();
    assert_eq!(accepted.len(), unaccepted.len());
    assert!(!accepted.contains(&Breaking), "{accepted:?}");
    assert_eq!(severities(Version::new(1, 5, 0), &[entry(pointer)]), Ok(unaccepted));
    let unneeded = severities(Version::new(1, 4, 0), &[entry("/components/schemas/Item")]).unwrap_err();
    assert!(unneeded[0].contains("remove the entry"), "{unneeded:?}");
}

#[test]
fn a_contract_is_compatible_with_itself_under_the_same_version() {
    for contract in [small(), released(), working()] {
        assert_eq!(compare(&contract, &contract), []);
    }
}

#[test]
fn sets_in_another_order_are_equal() {
    let same = changes_of(&small(), |contract| {
        *at(contract, "/components/schemas/Item/required") = json!(["kind", "id"]);
        *at(contract, "/components/schemas/Kind/enum") = json!(["b", "a"]);
    });
    assert_eq!(same, []);
}

#[test]
fn a_change_of_wording_requires_no_new_version() {
    let words = |c: &mut Value, pointer: &str| *at(c, pointer) = json!("Another text.");
    check(
        &small(),
        |c| words(c, "/components/schemas/Item/description"),
        Wording,
        "/components/schemas/Item/description",
        "wording",
    );
    check(
        &released(),
        |c| words(c, "/info/description"),
        Wording,
        "/info/description",
        "wording",
    );
    check(
        &released(),
        |c| words(c, "/components/responses/NotFound/description"),
        Wording,
        "/components/responses/NotFound/description",
        "wording",
    );
    check(
        &released(),
        |c| words(c, "/components/schemas/Branch/properties/name/example"),
        Wording,
        "/components/schemas/Branch/properties/name/example",
        "wording",
    );
}

#[test]
fn deprecation_requires_a_minor_version() {
    let operation = "/paths/~1items~1{id}/get";
    check(
        &small(),
        |c| at(c, operation)["deprecated"] = json!(true),
        Addition,
        &format!("{operation}/deprecated"),
        "deprecated",
    );
}

#[test]
fn a_change_that_no_rule_covers_is_breaking() {
    let schema = "/components/schemas/Item";
    check(
        &small(),
        |c| at(c, schema)["x-new-rule"] = json!(1),
        Breaking,
        &format!("{schema}/x-new-rule"),
        "no rule covers",
    );
    let limit = "/paths/~1items/post/parameters/0";
    check(
        &small(),
        |c| at(c, limit)["explode"] = json!(false),
        Breaking,
        &format!("{limit}/explode"),
        "no rule covers",
    );
}

#[test]
fn a_change_that_only_drift_finds_is_breaking() {
    // Our comparison does not follow references inside `not`.
    let mut base = small();
    at(&mut base, "/components/schemas")["Forbidden"] = json!({"type": "string", "maxLength": 3});
    at(&mut base, "/components/schemas/Item/properties")["word"] =
        json!({"not": {"$ref": "#/components/schemas/Forbidden"}});
    let place = "/components/schemas/Forbidden";
    check(
        &base,
        |c| at(c, place)["maxLength"] = json!(4),
        Breaking,
        place,
        "drift only",
    );
}

#[test]
fn a_schema_that_refers_to_itself_is_compared_once() {
    let mut base = small();
    at(&mut base, "/components/schemas/Item/properties")["parts"] =
        json!({"type": "array", "items": {"$ref": "#/components/schemas/Item"}});
    let place = "/components/schemas/Item/properties/count/type";
    check(
        &base,
        |c| *at(c, place) = json!("string"),
        Breaking,
        place,
        "from \"integer\"",
    );
}

#[test]
fn the_version_never_decreases_and_has_an_entry_in_the_changelog() {
    let version = |text: &str| Version::parse(text).unwrap();
    let changelog = "# Changelog\n\n## 1.1.0 (2026-06)\n\n## 1.0.0\n";
    assert_eq!(verdict(&[], &version("1.0.0"), &version("1.1.0"), changelog), Ok(()));
    assert_eq!(verdict(&[], &version("1.0.0"), &version("1.0.0"), changelog), Ok(()));
    let older = verdict(&[], &version("1.1.0"), &version("1.0.0"), changelog).unwrap_err();
    assert_eq!(older.len(), 1);
    assert!(older[0].contains("1.0.0 is older than the released 1.1.0"), "{older:?}");
    let unwritten = verdict(&[], &version("1.1.0"), &version("1.1.1"), changelog).unwrap_err();
    assert_eq!(
        unwritten,
        ["CHANGELOG.md: there is no entry `## 1.1.1`. Describe the changes for partners."]
    );
}

#[test]
fn the_newest_release_is_found_by_its_version() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, version: &str| {
        let text = format!("openapi: 3.0.3\ninfo: {{title: t, version: {version}}}\npaths: {{}}\n");
        std::fs::write(folder.path().join(name), text).unwrap();
    };
    assert!(
        read::newest(folder.path())
            .unwrap_err()
            .to_string()
            .contains("no released version")
    );
    write("partner-api-1.9.0.yaml", "1.9.0");
    write("partner-api-1.10.0.yaml", "1.10.0");
    assert_eq!(read::newest(folder.path()).unwrap().version.to_string(), "1.10.0");
    write("partner-api-2.0.0.yaml", "1.11.0");
    assert!(
        read::newest(folder.path())
            .unwrap_err()
            .to_string()
            .contains("partner-api-2.0.0.yaml")
    );
}
