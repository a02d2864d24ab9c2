//! The files, folders and commands that the documents name exist.

use spec_gates::documents::{Document, PathRules, missing_commands, missing_paths, stages_of_usage};

use crate::contracts::root;

/// A document, where its paths may start, and the words that look like paths and are none.
type Rule = (&'static str, &'static [&'static str], &'static [&'static str]);

const RULES: [Rule; 7] = [
    // The sandbox makes its folder when it starts.
    ("README.md", &[""], &[".sandbox/sandbox.json"]),
    // The parts of the service are called by their names inside it.
    ("ARCHITECTURE.md", &["", "service/src", "service/src/generated"], &[]),
    ("CONTRIBUTING.md", &["", "service/src"], &[]),
    ("SECURITY.md", &[""], &[]),
    ("spec/README.md", &["spec", ""], &[]),
    ("samples/README.md", &["samples", ""], &[]),
    (
        "codegen/README.md",
        // What is generated for the service shows which files there are.
        &["codegen", "", "service/src/generated"],
        &["application/json", "application/octet-stream"],
    ),
];

/// May be absent.
const OPTIONAL: &str = "codegen/README.md";

/// The documents that exist, each with its rule.
fn documents() -> Vec<(Rule, Document)> {
    let exists = |rule: &&Rule| rule.0 != OPTIONAL || root().join(rule.0).exists();
    RULES
        .iter()
        .filter(exists)
        .map(|rule| (*rule, Document::read(&root(), rule.0).unwrap()))
        .collect()
}

#[test]
fn every_file_and_folder_that_a_document_names_exists() {
    let mut wrong = Vec::new();
    for ((name, roots, exceptions), document) in documents() {
        let findings = missing_paths(&root(), &document, PathRules { roots, exceptions });
        wrong.extend(findings.missing);
        assert!(findings.present > 0, "{name}: not one path was recognised");
        for exception in exceptions
            .iter()
            .filter(|exception| !findings.excepted.contains(**exception))
        {
            wrong.push(format!(
                "{name}: the exception `{exception}` is not needed any more; remove it here"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_that_a_document_names_exists() {
    let documents: Vec<Document> = documents().into_iter().map(|(_, document)| document).collect();
    let wrong = missing_commands(&root(), &documents).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_stage_that_the_usage_of_script_test_lists_is_one() {
    let wrong = stages_of_usage(&std::fs::read_to_string(root().join("script/test")).unwrap());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// The gates themselves, on a project made for it.

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("src/rooms/kitchen.rs", "");
    write("src/rooms/bath.rs", "");
    write("docs/V0001__schema.sql", "");
    write("LICENSE", "");
    write("script/test", "stages() {\n}\nlint() { true; }\n");
    write("script/plain", "");
    write(".cargo/config.toml", "[alias]\ncodegen = \"run\"\n");
    write("package.json", r#"{"scripts": {"lint": "true"}}"#);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let script = folder.path().join("script/test");
        std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

fn missing(text: &str) -> Vec<String> {
    let rules = PathRules {
        roots: &["", "src"],
        exceptions: &["made/later.json"],
    };
    let missing = missing_paths(project().path(), &Document::parse("D.md", text), rules).missing;
    missing
        .iter()
        .map(|message| message.split('`').nth(1).unwrap().to_owned())
        .collect()
}

#[test]
fn paths_that_exist_are_found() {
    let text = "`src/rooms/kitchen.rs`, `rooms/`, `rooms/bath` (a module), `kitchen` is no path, `/items` neither,\n\
                `src/rooms/<name>.rs`, `docs/V0001__….sql`, `docs/*`, `rooms/{bath,kitchen}.rs`, `made/later.json`,\n\
                [licence](LICENSE), [a part](docs/V0001__schema.sql#part), [elsewhere](https://example.org/x).\n\n\
                ```\nsrc/      the source; docs/ has the rest, <x> no I/O\n  rooms/  of it\n    bath.rs\ndocs/     the rest\n```\n";
    assert_eq!(missing(text), Vec::<String>::new());
}

#[test]
fn paths_that_do_not_exist_are_named() {
    let text = "`src/rooms/cellar.rs`, `cook docs/menu.md`, `attic/`, `rooms/kitchen.rs/`, `src/<tag>/nothing/*.rs`, `rooms/{bath,attic}.rs`, `x.sql`,\n\
                `rooms/bath.md`, [gone](GONE), `src/rooms/<name>/`\n\n```\nsrc/   not: old/<name>.rs.\n  rooms/\n    attic.rs\n  lib.rs\n```\n";
    let named = [
        "GONE",
        "attic/",
        "docs/menu.md",
        "old/<name>.rs",
        "rooms/bath.md",
        "rooms/kitchen.rs/",
        "rooms/{bath,attic}.rs",
        "src/<tag>/nothing/*.rs",
        "src/lib.rs",
        "src/rooms/<name>/",
        "src/rooms/attic.rs",
        "src/rooms/cellar.rs",
        "x.sql",
    ];
    assert_eq!(missing(text), named);
}

#[test]
fn commands_that_do_not_exist_are_named() {
    let text = "`script/test lint`, `cargo codegen check`, `cargo test`, `npm run lint`\n\n    script/test lint   # one\n\n\
                Not these: `script/plain`, `script/gone`, `script/test lint paint`, `cargo paint`, `npm run paint`.\n";
    let wrong = missing_commands(project().path(), &[Document::parse("D.md", text)]).unwrap();
    assert_eq!(
        wrong,
        [
            "D.md: `cargo paint` is neither cargo's nor an alias in .cargo/config.toml",
            "D.md: `npm run paint` is no script of package.json",
            "D.md: `paint` is no stage of script/test",
            "D.md: `script/gone` is no executable file",
            "D.md: `script/plain` is no executable file",
        ]
    );
}

#[test]
fn stages_without_a_function_and_lists_that_differ_are_named() {
    let script = "# only these stages: lint paint\nstages=(lint)\nlint() { true; }\n";
    assert_eq!(
        stages_of_usage(script),
        [
            "script/test: the stage `paint` is no function in it",
            "script/test: the usage lists [\"lint\", \"paint\"], and [\"lint\"] run by default",
        ]
    );
    assert_eq!(stages_of_usage("lint() { true; }\n").len(), 1);
}
