//! Tests of each finding with a small document.

use serde_json::json;

use super::*;

fn document() -> Value {
    json!({
        "paths": { "/a": { "get": { "operationId": "get_a", "responses": {
            "200": {},
            "404": { "$ref": "#/components/responses/NotFound" },
        } } } },
        "components": { "responses": { "NotFound": { "x-error-codes": ["not_found", "gone"] } } },
    })
}

fn covered(file: &str, status: u16, code: Option<&str>) -> CoveredRow {
    let row = Row {
        operation: file.split('/').next().unwrap().to_owned(),
        status,
        code: code.map(ToOwned::to_owned),
    };
    CoveredRow {
        file: file.to_owned(),
        row,
    }
}

fn complete() -> Coverage {
    let exceptions = r#"
        at_most = 1
        [[exception]]
        operation = "get_a"
        status = 404
        code = "gone"
        reason = "it never happens""#;
    Coverage {
        declared: declared(&document()),
        covered: vec![
            covered("get_a/good.snap", 200, None),
            covered("get_a/not_found.snap", 404, Some("not_found")),
            covered("gateway/not_found.snap", 404, Some("not_found")),
        ],
        exceptions: toml::from_str(exceptions).unwrap(),
    }
}

#[track_caller]
fn finds(coverage: &Coverage, finding: &str) {
    let findings = coverage.findings();
    assert!(findings.iter().any(|found| found.contains(finding)), "{findings:#?}");
}

#[test]
fn a_complete_coverage_has_no_findings() {
    assert_eq!(complete().findings(), Vec::<String>::new());
}

#[test]
fn a_row_without_snapshot_is_found() {
    let mut coverage = complete();
    coverage.covered.remove(1);
    finds(&coverage, "get_a 404 not_found is declared and has no snapshot");
    coverage.covered.remove(0);
    finds(&coverage, "get_a 200 is declared and has no snapshot");
}

#[test]
fn a_snapshot_of_several_operations_covers_each_of_them_and_no_other() {
    let info = r#"{ "operations": ["get_a", "get_b"], "status": 404, "code": "not_found" }"#;
    let info: Info = serde_json::from_str(info).unwrap();
    let rows: Vec<String> = info.rows().map(|row| row.to_string()).collect();
    assert_eq!(rows, ["get_a 404 not_found", "get_b 404 not_found"]);
    let mut coverage = complete();
    coverage.covered[1].file = "every_operation/not_found.snap".to_owned();
    assert_eq!(coverage.findings(), Vec::<String>::new());
    coverage.covered[1].row.operation = "get_b".to_owned();
    finds(&coverage, "get_a 404 not_found is declared and has no snapshot");
    finds(
        &coverage,
        "every_operation/not_found.snap is a response of get_b 404 not_found, which is not declared",
    );
}

#[test]
fn an_exception_that_no_longer_applies_is_found() {
    let mut coverage = complete();
    coverage.covered.push(covered("get_a/gone.snap", 404, Some("gone")));
    finds(&coverage, "get_a 404 gone has a snapshot, get_a/gone.snap");
    let mut coverage = complete();
    coverage.declared.pop();
    finds(&coverage, "exceptions.toml: get_a 404 gone is not declared");
}

#[test]
fn a_snapshot_of_what_is_not_declared_is_found() {
    for (file, status, code) in [
        ("get_a/a.snap", 410, Some("gone")),
        ("get_a/a.snap", 404, Some("lost")),
        ("get_a/a.snap", 404, None),
        ("get_b/a.snap", 200, None),
        ("gateway/a.snap", 418, Some("teapot")),
    ] {
        let mut coverage = complete();
        coverage.covered.push(covered(file, status, code));
        finds(&coverage, "which is not declared");
    }
    let mut coverage = complete();
    coverage.covered[0].file = "get_b/good.snap".to_owned();
    finds(
        &coverage,
        "get_b/good.snap is a response of get_a 200; move it to the folder of its operation",
    );
}

#[test]
fn the_list_of_exceptions_only_shrinks() {
    let mut coverage = complete();
    coverage.exceptions.at_most = 0;
    finds(&coverage, "1 exceptions, at_most = 0; the list may only shrink");
    coverage.exceptions.at_most = 2;
    finds(&coverage, "lower at_most from 2 to 1");
    let again = coverage.exceptions.exception[0].clone();
    coverage.exceptions.exception.push(again);
    finds(&coverage, "get_a 404 gone is listed twice");
    coverage.exceptions.exception[1].reason = " ".to_owned();
    finds(&coverage, "get_a 404 gone has no reason");
}

#[test]
fn an_error_without_codes_is_found() {
    let mut document = document();
    document["paths"]["/a"]["get"]["responses"]["500"] = json!({});
    let mut coverage = complete();
    coverage.declared = declared(&document);
    finds(&coverage, "get_a 500 is declared without x-error-codes");
}

#[test]
fn the_first_difference_is_named_by_its_line() {
    assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
    assert_eq!(
        first_difference("a\nb\n", "a\nc\n").unwrap(),
        "line 2\n  actual   b\n  expected c"
    );
    assert_eq!(
        first_difference("a\n", "a\nc\n").unwrap(),
        "line 2\n  actual   (the end)\n  expected c"
    );
    assert!(first_difference("a", "a\n").is_some());
}
