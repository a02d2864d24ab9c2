//! Tests that run the program `partner-api` as a process, and of the crates that it links, depending on its features.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod operators;
#[cfg(feature = "embedded-postgres")]
mod serving;

use std::collections::BTreeSet;
use std::process::Command;

/// Crates that only the sandbox uses.
const SANDBOX: [&str; 4] = [
    "partner-api-sandbox",
    "sandbox-pictures",
    "partner-api-client",
    "progenitor-client",
];
/// Crates of the private database.
const EMBEDDED_POSTGRES: [&str; 1] = ["embedded-postgres"];
/// Crates of the documentation site.
const SITE: [&str; 1] = ["partner-api-site"];
/// Crates of the inspectors' page.
const INSPECTORS: [&str; 1] = ["partner-api-inspector"];
/// Crates that render PDFs. Typst decodes photos and draws SVG itself.
const RENDER: [&str; 6] = ["typst", "typst-layout", "typst-pdf", "krilla", "usvg", "image"];

/// Returns the names of all crates that the program links with these features.
fn linked(features: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--package", env!("CARGO_PKG_NAME")])
        .args(["--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .args(["--no-default-features", "--features", &features.join(",")])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    tree.lines()
        .filter_map(|line| Some(line.split_whitespace().next()?.to_owned()))
        .collect()
}

fn of<'a>(tree: &BTreeSet<String>, crates: impl IntoIterator<Item = &'a &'a str>) -> Vec<&'a str> {
    crates
        .into_iter()
        .copied()
        .filter(|name| tree.contains(*name))
        .collect()
}

#[test]
fn a_server_without_features_links_none_of_the_optional_crates() {
    let server = linked(&[]);
    assert!(
        server.contains("partner-api") && server.contains("tokio-postgres"),
        "{server:?}"
    );
    assert_eq!(
        of(
            &server,
            SANDBOX
                .iter()
                .chain(&EMBEDDED_POSTGRES)
                .chain(&RENDER)
                .chain(&SITE)
                .chain(&INSPECTORS)
        ),
        [""; 0]
    );
}

#[test]
fn each_feature_links_only_its_own_crates() {
    let renderer = linked(&["render"]);
    assert_eq!(of(&renderer, &RENDER), RENDER);
    assert_eq!(of(&renderer, SANDBOX.iter().chain(&EMBEDDED_POSTGRES)), [""; 0]);
    let with_database = linked(&["embedded-postgres"]);
    assert_eq!(of(&with_database, &EMBEDDED_POSTGRES), EMBEDDED_POSTGRES);
    assert_eq!(of(&with_database, SANDBOX.iter().chain(&RENDER)), [""; 0]);
    let with_inspectors = linked(&["inspectors"]);
    assert_eq!(of(&with_inspectors, &INSPECTORS), INSPECTORS);
    assert_eq!(
        of(
            &with_inspectors,
            SANDBOX.iter().chain(&EMBEDDED_POSTGRES).chain(&RENDER[..5])
        ),
        [""; 0]
    );
    let with_site = linked(&["site"]);
    assert_eq!(of(&with_site, &SITE), SITE);
    let build_only = ["site-builder", "maud", "pulldown-cmark"];
    assert_eq!(
        of(&with_site, SANDBOX.iter().chain(&RENDER).chain(&build_only)),
        [""; 0]
    );
}

/// Shows that the names above exist.
#[test]
fn the_default_features_link_all_of_these_crates() {
    let all = linked(&["default"]);
    let names: Vec<_> = SANDBOX
        .iter()
        .chain(&EMBEDDED_POSTGRES)
        .chain(&RENDER)
        .chain(&SITE)
        .chain(&INSPECTORS)
        .copied()
        .collect();
    assert_eq!(of(&all, &names), names);
}
