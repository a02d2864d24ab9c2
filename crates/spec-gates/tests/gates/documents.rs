//! Checks that the files, folders and commands in documents exist, and the rules that comments and tests cite.

use std::collections::BTreeSet;

use ignore::WalkBuilder;
use spec_gates::documents::{Document, PathRules, missing_commands, missing_paths, missing_tests, wrong_ids};

use crate::contracts::root;

/// A document, the folders from which its paths may start, and the words that only look like paths.
type Rule = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Documents whose paths do not start at the project's root, or that need an exception.
const RULES: [Rule; 12] = [
    // The sandbox creates its folder when it starts.
    ("README.md", &[""], &[".sandbox/sandbox.json"]),
    ("crates/partner/README.md", &[""], &[".sandbox/sandbox.json"]),
    // These documents name modules relative to the service.
    ("ARCHITECTURE.md", &["", "service/src", "service/src/generated"], &[]),
    ("CONTRIBUTING.md", &["", "service/src", "crates/store/src"], &[]),
    ("docs/faults.md", &["", "service/src"], &[]),
    ("deploy/README.md", &["deploy", ""], &[]),
    ("spec/README.md", &["spec", ""], &[]),
    ("codegen/ADDING-A-KEYWORD.md", &["codegen", "codegen/src", ""], &[]),
    ("samples/README.md", &["samples", ""], &[".sandbox/sandbox.json"]),
    ("migrations/README.md", &["migrations", ""], &[]),
    ("deploy/ha/README.md", &["deploy/ha", ""], &[]),
    (
        "codegen/README.md",
        // The generated code of the petstore and, with `--dispatch calls`, of the service contains the files that are described.
        &["codegen", "", "codegen/petstore/src/generated", "service/src/generated"],
        &[],
    ),
];

/// Rules that no test shows, with the reason.
const SHOWN_BY_NO_TEST: [(&str, &str); 0] = [];

/// Returns all Markdown documents that git does not ignore.
fn documents() -> Vec<Document> {
    let mut documents = Vec::new();
    for entry in WalkBuilder::new(root()).require_git(false).build() {
        let path = entry.unwrap().into_path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
            documents.push(Document::read(&root(), name).unwrap());
        }
    }
    documents
}

#[test]
fn every_file_and_folder_that_a_document_names_exists() {
    let mut wrong = Vec::new();
    let mut unused: BTreeSet<&str> = RULES.iter().map(|(name, ..)| *name).collect();
    for document in documents() {
        let rule = RULES.iter().find(|(name, ..)| *name == document.name);
        let folder = document.name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let beside = [folder, ""];
        let (roots, exceptions) = rule.map_or((&beside[..], &[][..]), |(_, roots, exceptions)| (roots, exceptions));
        let findings = missing_paths(&root(), &document, PathRules { roots, exceptions });
        wrong.extend(findings.missing);
        if rule.is_some() {
            unused.remove(document.name.as_str());
            assert!(findings.present > 0, "{}: no path was recognized", document.name);
        }
        for exception in exceptions.iter().filter(|it| !findings.excepted.contains(**it)) {
            wrong.push(format!(
                "{}: the exception `{exception}` is no longer needed; remove it here",
                document.name
            ));
        }
    }
    assert_eq!(
        unused,
        BTreeSet::new(),
        "there are rules for documents that do not exist"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_that_a_document_names_exists() {
    let wrong = missing_commands(&root(), &documents()).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_test_in_the_tables_of_faults_security_and_reliability_exists() {
    for name in ["docs/faults.md", "docs/security.md", "docs/reliability.md"] {
        let document = Document::read(&root(), name).unwrap();
        let wrong = missing_tests(&root(), &document).unwrap();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
fn every_cited_rule_exists_and_a_test_cites_each() {
    let wrong = wrong_ids(&root(), &SHOWN_BY_NO_TEST).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// Tests of the checks themselves, on a small project.

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
    write("script/check", "stages() {\n}\nlint() { true; }\n");
    write("script/plain", "");
    write(".cargo/config.toml", "[alias]\ncodegen = \"run\"\n");
    write("package.json", r#"{"scripts": {"lint": "true"}}"#);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let script = folder.path().join("script/check");
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
    let text = "`src/rooms/kitchen.rs`, `rooms/`, `rooms/bath` (a module), `kitchen` and `/items` are not paths,\n\
                `src/rooms/<name>.rs`, `docs/V0001__….sql`, `docs/*`, `rooms/{bath,kitchen}.rs`, `made/later.json`, `application/…+json`,\n\
                [license](LICENSE), [a part](docs/V0001__schema.sql#part), [external](https://example.org/x).\n\n\
                ```\nsrc/      the source; docs/ has the rest, <x> no I/O\n  rooms/  of it\n    bath.rs\ndocs/     the rest\n```\n";
    assert_eq!(missing(text), Vec::<String>::new());
}

#[test]
fn missing_paths_are_reported() {
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
fn missing_commands_are_reported() {
    let text = "`script/check lint`, `cargo codegen check`, `cargo test`, `npm run lint`\n\n    script/check lint   # one\n\n\
                Not these: `script/plain`, `script/gone`, `script/check lint paint`, `cargo paint`, `npm run paint`.\n";
    let wrong = missing_commands(project().path(), &[Document::parse("D.md", text)]).unwrap();
    assert_eq!(
        wrong,
        [
            "D.md: `cargo paint` is neither a command of cargo nor an alias in .cargo/config.toml",
            "D.md: `npm run paint` is not a script of package.json",
            "D.md: `paint` is not a stage of script/check",
            "D.md: `script/gone` is not an executable file",
            "D.md: `script/plain` is not an executable file",
        ]
    );
}

#[test]
fn missing_tests_are_reported() {
    let project = project();
    let tests = "#[tokio::test(flavor = \"multi_thread\")]\n// why\nasync fn the_soup_is_never_cold_at_noon() {}\n\
                 fn the_soup_is_hot_or_gone() {}\n";
    std::fs::write(project.path().join("src/rooms/kitchen.rs"), tests).unwrap();
    let text =
        "`the_soup_is_never_cold_at_noon`, `the_soup_is_hot_or_gone`, `nobody_sleeps_in_the_bath`, `a_short_name`";
    assert_eq!(
        missing_tests(project.path(), &Document::parse("D.md", text)).unwrap(),
        [
            "D.md: there is no test `the_soup_is_hot_or_gone`",
            "D.md: there is no test `nobody_sleeps_in_the_bath`",
        ]
    );
}

/// Returns the messages about IDs of a project with these files.
fn wrong_ids_of(files: &[(&str, &str)], exceptions: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    wrong_ids(folder.path(), exceptions).unwrap()
}

const CATS: (&str, &str) = (
    "docs/contract/cats.md",
    "- **CAT-1** Cats purr.\n- **CAT-2** Cats sleep: see CAT-1.\n- ~~**CAT-3**~~ Cats bark.\n- **DOG-1** Dogs bark.\n",
);

/// All ways in which a test can cite a rule, and words that look like IDs.
const CITING: [(&str, &str); 2] = [
    (
        "tests/cats.rs",
        "//! Sleep (CAT-2), in UTF-8.\n\n    /// CAT-1, DOG-1\n    #[tokio::test(flavor = \"multi_thread\")]\n    // Loud.\n    \
         async fn cats_purr() {}\n",
    ),
    ("src/cats.rs", "//! As CAT-1 has it; not CONCAT-9.\n"),
];

#[test]
fn existing_rules_that_tests_cite_are_accepted() {
    assert_eq!(
        wrong_ids_of(&[&[CATS][..], &CITING].concat(), &[]),
        Vec::<String>::new()
    );
}

#[test]
fn every_citation_of_an_undefined_or_removed_id_is_reported() {
    let citing = [
        CATS,
        CITING[0],
        ("src/dogs.rs", "// Nothing.\n// DOG-2\n"),
        ("script/feed", "# CAT-3\n"),
        (".gitignore", "/made/\n"),
        ("made/by_someone.rs", "// DOG-3\n"),
        // A group that does not exist. `UTF-8` and names in code are not IDs.
        ("src/cows.rs", "//! COW-1, in UTF-8.\nlet cow = \"COW-2\";\n"),
        ("docs/cows.md", "As COW-3 and ISO-8859 have it.\n"),
    ];
    assert_eq!(
        wrong_ids_of(&citing, &[]),
        [
            "docs/cows.md:1: docs/contract has no rule COW-3. Correct the id, or add the rule at the end of its group.",
            "script/feed:1: the rule CAT-3 was removed. Cite its replacement.",
            "src/cows.rs:1: docs/contract has no rule COW-1. Correct the id, or add the rule at the end of its group.",
            "src/dogs.rs:2: docs/contract has no rule DOG-2. Correct the id, or add the rule at the end of its group.",
        ]
    );
}

#[test]
fn an_id_that_is_defined_twice_is_reported_even_if_one_rule_was_removed() {
    let again = (
        "docs/contract/dogs.md",
        "- **DOG-1** Dogs dig.\n- **CAT-3** Cats climb.\n",
    );
    assert_eq!(
        wrong_ids_of(&[&[CATS, again][..], &CITING].concat(), &[]),
        [
            "docs/contract/dogs.md: CAT-3 is defined twice. An id must never be reused for another rule.",
            "docs/contract/dogs.md: DOG-1 is defined twice. An id must never be reused for another rule.",
        ]
    );
}

#[test]
fn a_rule_that_no_test_cites_is_reported_unless_it_is_an_exception() {
    let citing = [
        CATS,
        // Citations in a helper, in a comment inside a test, or in a file without tests do not count.
        (
            "tests/cats.rs",
            "/// CAT-1\nfn cat() {}\n\n/// CAT-2\n#[test]\nfn cats_sleep() {\n    // DOG-1\n}\n",
        ),
        ("tests/helper.rs", "//! CAT-1\n"),
        (
            "src/lib.rs",
            "//! CAT-1\n\n/// CAT-1\n#[derive(Debug)]\nstruct Cat;\n\n#[test]\nfn there_is_one() {}\n",
        ),
    ];
    let uncited = |id: &str| {
        format!(
            "docs/contract/cats.md: no test cites {id}. Cite it in the doc comment of a test that shows the rule, or write one."
        )
    };
    assert_eq!(wrong_ids_of(&citing, &[]), [uncited("CAT-1"), uncited("DOG-1")]);
    let exceptions = [
        ("CAT-1", "nobody hears it"),
        ("CAT-2", "it is dark"),
        ("CAT-9", "it is gone"),
    ];
    assert_eq!(
        wrong_ids_of(&citing, &exceptions),
        [
            uncited("DOG-1"),
            "the exception CAT-2 is no longer needed; remove it".to_owned(),
            "the exception CAT-9 is no longer needed; remove it".to_owned(),
        ]
    );
}
