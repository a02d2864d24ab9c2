//! Files for an owner: written once, completed in their modules, never overwritten.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use codegen::emit::Dispatch;
use codegen::load;
use codegen::scaffold::{Plan, Template, operation_templates, templates};

const PETSTORE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/petstore.yaml");

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_codegen"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn everything(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(everything(&path)),
            false => drop(all.insert(path.clone(), std::fs::read_to_string(&path).unwrap())),
        }
    }
    all
}

/// A crate made by `init`, whose document has one more operation since.
fn crate_with_another_operation() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let made = run(folder.path(), &["--spec", PETSTORE, "init", "pets"]);
    assert_eq!(made.status.code(), Some(0), "{}", said(&made));
    let spec = folder.path().join("pets/openapi.yaml");
    let more = "  /pets/{id}/name:\n    get:\n      operationId: get_name\n      tags: [pets]\n      parameters: [{ in: path, \
                name: id, required: true, schema: { type: integer } }]\n      responses: { \"204\": { description: Done. \
                } }\n  /toys:\n    get:\n      operationId: list_toys\n      tags: [toys]\n      responses: { \"204\": { \
                description: Done. } }\ncomponents:\n";
    let text = std::fs::read_to_string(&spec).unwrap().replace("components:\n", more);
    std::fs::write(&spec, text).unwrap();
    folder
}

#[test]
fn a_new_operation_gets_its_file_and_its_place_in_the_modules_once() {
    let folder = crate_with_another_operation();
    let pets = folder.path().join("pets");
    let made = run(&pets, &["new", "get_name"]);
    assert_eq!(made.status.code(), Some(0), "{}", said(&made));
    assert_eq!(
        said(&made),
        "written: src/endpoints/pets/get_name.rs\nchanged: src/endpoints/pets/mod.rs\n"
    );
    let file = std::fs::read_to_string(pets.join("src/endpoints/pets/get_name.rs")).unwrap();
    assert!(file.contains("_path: GetNamePath"), "{file}");
    let module = std::fs::read_to_string(pets.join("src/endpoints/pets/mod.rs")).unwrap();
    let lines: Vec<&str> = module.lines().skip(2).collect();
    assert_eq!(
        lines,
        [
            "pub mod create_pet;",
            "pub mod delete_pet;",
            "pub mod get_name;",
            "pub mod list_pets;",
            "pub mod read_pet;",
            "pub mod replace_pet;"
        ]
    );
    let toys = run(&pets, &["new", "list_toys"]);
    assert_eq!(toys.status.code(), Some(0), "{}", said(&toys));
    let modules = std::fs::read_to_string(pets.join("src/endpoints/mod.rs")).unwrap();
    assert!(
        modules.ends_with("pub mod pets;\npub mod toys;\npub mod r#type;\n"),
        "{modules}"
    );

    let before = everything(&pets);
    for operation in ["get_name", "list_pets"] {
        let again = run(&pets, &["new", operation]);
        assert_eq!(again.status.code(), Some(1));
        assert!(
            said(&again).contains("is there already, and is not overwritten"),
            "{}",
            said(&again)
        );
    }
    let unknown = run(&pets, &["new", "nothing"]);
    assert!(
        said(&unknown).contains("has no operation `nothing`; it has list_pets, create_pet"),
        "{}",
        said(&unknown)
    );
    assert_eq!(everything(&pets), before);
}

#[test]
fn a_crate_is_not_written_over_anything_nor_under_a_name_that_is_none() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("pets")).unwrap();
    std::fs::write(folder.path().join("pets/notes.txt"), "mine\n").unwrap();
    for (name, reason) in [
        ("pets", "is not empty"),
        ("1pets", "no name of a crate"),
        ("self", "no name of a crate"),
    ] {
        let output = run(folder.path(), &["--spec", PETSTORE, "init", name]);
        assert_eq!(output.status.code(), Some(1));
        assert!(said(&output).contains(reason), "{}", said(&output));
    }
    assert_eq!(everything(folder.path()).len(), 1);
}

#[test]
fn lines_go_into_their_block_and_unknown_names_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("main.rs"),
        "//! Tests.\n\nmod pets {\n    mod a;\n    mod z;\n}\nmod z {\n    mod b;\n}\n",
    )
    .unwrap();
    let document = load::from_file(Path::new(PETSTORE)).unwrap();
    let api = codegen::model(&document).unwrap();
    let template = |path: &str, text: &str| Template {
        path: path.into(),
        text: text.into(),
    };
    let block = [template("main.rs.lines", "mod {{tag}} {\n    mod {{operation}};\n}\n")];
    let mut plan = Plan::new(folder.path(), Dispatch::Calls);
    for operation in api
        .operations
        .iter()
        .filter(|it| ["list_pets", "put_photo"].contains(&it.id.as_str()))
    {
        plan.operation(&block, &api, operation).unwrap();
        plan.operation(&block, &api, operation).unwrap();
    }
    plan.write().unwrap();
    assert_eq!(
        std::fs::read_to_string(folder.path().join("main.rs")).unwrap(),
        "//! Tests.\n\nmod pets {\n    mod a;\n    mod list_pets;\n    mod z;\n}\nmod z {\n    mod b;\n}\nmod r#type {\n    \
         mod put_photo;\n}\n"
    );
    let problem = Plan::new(folder.path(), Dispatch::Calls)
        .operation(&[template("a.template", "{{nonsense}}")], &api, &api.operations[0])
        .unwrap_err();
    assert_eq!(problem.to_string(), "a.template: `{{nonsense}}` is not known");
}

/// The project's own templates: every operation of its document fits them, and stands where they would put it.
#[test]
fn the_projects_templates_fit_its_operations() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let document = load::from_file(&project.join("spec/partner-api.yaml")).unwrap();
    let api = codegen::model(&document).unwrap();
    let all = templates(&project.join("templates/operation")).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    for operation in &api.operations {
        Plan::new(elsewhere.path(), Dispatch::Calls)
            .operation(&all, &api, operation)
            .unwrap();
        let (lines, files): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|it| it.path.ends_with(".lines"));
        let mut plan = Plan::new(project, Dispatch::Calls);
        plan.operation(&lines, &api, operation).unwrap();
        assert!(
            plan.write().unwrap().is_empty(),
            "{} is not where the templates put it",
            operation.id
        );
        let problem = Plan::new(project, Dispatch::Calls)
            .operation(&files, &api, operation)
            .unwrap_err();
        assert!(problem.to_string().contains("is not overwritten"), "{problem}");
    }
}

/// The crate asks for what this workspace is tested with.
#[test]
fn the_crate_depends_on_the_workspaces_versions() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let template = std::fs::read_to_string(project.join("templates/crate/Cargo.toml.template")).unwrap();
    let template = template.replace("{{runtime}}", "\"1\"").replace("{{crate}}", "pets");
    let template: toml::Table = toml::from_str(&template).unwrap();
    let workspace: toml::Table =
        toml::from_str(&std::fs::read_to_string(project.join("../Cargo.toml")).unwrap()).unwrap();
    let version = |table: &toml::Table, name: &str| {
        let dependency = &table["dependencies"][name];
        dependency
            .as_str()
            .or_else(|| dependency["version"].as_str())
            .map(str::to_string)
    };
    let ours = workspace["workspace"].as_table().unwrap();
    for name in template["dependencies"]
        .as_table()
        .unwrap()
        .keys()
        .filter(|name| *name != "codegen-runtime")
    {
        assert_eq!(version(&template, name), version(ours, name), "{name}");
    }
}

/// For real: the crate compiles without a warning, its tests pass, and it serves; with the versions of this workspace.
#[test]
fn a_crate_serves_from_the_first_day() {
    let folder = crate_with_another_operation();
    let pets = folder.path().join("pets");
    for arguments in [
        &["new", "get_name"][..],
        &["new", "list_toys"],
        &["--server", "src/generated"],
    ] {
        let output = run(&pets, arguments);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    }
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::fs::copy(project.join("Cargo.lock"), pets.join("Cargo.lock")).unwrap();
    let cargo = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO"))
            .current_dir(&pets)
            .args(arguments)
            // Kept from run to run: most of it is Dropshot.
            .env(
                "CARGO_TARGET_DIR",
                Path::new(env!("CARGO_TARGET_TMPDIR")).join("../init"),
            )
            .output()
            .unwrap();
        let said = said(&output);
        assert!(output.status.success() && !said.contains("warning: "), "{said}");
        said
    };
    assert!(cargo(&["test", "--offline"]).contains("every_operation_is_reached_and_nothing_else ... ok"));
    cargo(&["fmt", "--check"]);
    assert!(!operation_templates().is_empty());
}
