//! What the program links, by its features.

use std::collections::BTreeSet;
use std::process::Command;

/// The crates of pictures, of the client and of what else only the sandbox wants.
const SANDBOX: [&str; 4] = [
    "partner-api-sandbox",
    "sandbox-pictures",
    "partner-api-client",
    "progenitor-client",
];
/// Of the private database.
const EMBEDDED_POSTGRES: [&str; 1] = ["embedded-postgres"];
/// Of the published contract as a site.
const SITE: [&str; 1] = ["partner-api-site"];
/// Of what inspectors see.
const INSPECTORS: [&str; 1] = ["partner-api-inspector"];
/// Of PDFs. Typst decodes photos and draws SVG itself.
const RENDER: [&str; 6] = ["typst", "typst-layout", "typst-pdf", "krilla", "usvg", "image"];

/// The crates, our own and others', that the program is linked from with these features.
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
fn a_server_alone_links_no_pictures_no_client_no_private_database_and_no_typst() {
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
fn each_feature_links_its_own_crates_alone() {
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
    let makers = ["site-builder", "maud", "pulldown-cmark"];
    assert_eq!(of(&with_site, SANDBOX.iter().chain(&RENDER).chain(&makers)), [""; 0]);
}

/// So that no name above is one that never is linked.
#[test]
fn the_program_as_it_is_built_without_a_word_links_all_of_them() {
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
