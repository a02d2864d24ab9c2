//! Scaffolding: `init` and `new`.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dropshot_codegen::emit::Dispatch;
use dropshot_codegen::load;
use dropshot_codegen::scaffold::{Plan, templates};

/// The crate that `init` wrote for the petstore. It is a member of the workspace, where it must compile without
/// warnings, and its own test checks that it serves.
const PETSTORE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/petstore");
const SPEC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/petstore/openapi.yaml");

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dropshot-codegen"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
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

/// A crate that `init` created, with a document to which operations were added afterwards.
fn crate_with_another_operation() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let made = run(folder.path(), &["--spec", SPEC, "init", "pets"]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
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
fn new_writes_the_file_of_an_operation_and_adds_it_to_its_modules_once() {
    let folder = crate_with_another_operation();
    let pets = folder.path().join("pets");
    let made = run(&pets, &["new", "get_name"]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    assert_eq!(
        stderr(&made),
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
    assert_eq!(toys.status.code(), Some(0), "{}", stderr(&toys));
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
            stderr(&again).contains("already exists and is not overwritten"),
            "{}",
            stderr(&again)
        );
    }
    let unknown = run(&pets, &["new", "nothing"]);
    assert!(
        stderr(&unknown).contains("has no operation `nothing`; it has list_pets, create_pet"),
        "{}",
        stderr(&unknown)
    );
    assert_eq!(everything(&pets), before);
}

/// A document whose errors have this body.
fn document_with_errors(schema: &str) -> String {
    format!(
        "openapi: 3.0.3\ninfo: {{title: T, version: '1'}}\npaths:\n  /pets/{{id}}:\n    get:\n      operationId: get_pet\n      \
         parameters: [{{in: path, name: id, required: true, schema: {{type: integer}}}}]\n      responses:\n        '204': \
         {{description: done}}\n        4XX: {{description: no, content: {{application/json: {{schema: {{$ref: \
         '#/components/schemas/Error'}}}}}}}}\n        5XX: {{description: no, content: {{application/json: {{schema: {{$ref: \
         '#/components/schemas/Error'}}}}}}}}\ncomponents:\n  schemas:\n    Error: {schema}\n    Detail: {{type: object, required: \
         [code, message], properties: {{code: {{type: string, enum: [not_found, bad_request, internal_error]}}, message: {{type: \
         string, minLength: 3, maxLength: 40}}, trace_id: {{type: string}}}}}}\n"
    )
}

/// Each body, and the lines of `error.rs` that fill it.
#[test]
fn the_error_type_of_a_new_crate_has_the_body_that_the_document_declares() {
    for (schema, lines) in [
        (
            "{type: object, required: [message, request_id], properties: {error_code: {type: string}, message: {type: string}, \
             request_id: {type: string}}}",
            &[
                "error_code: code.clone(),",
                "message: message.clone(),",
                "self.body.request_id = id.to_string();",
                "Some(id) => error.of_request(&id),",
            ][..],
        ),
        (
            "{type: object, required: [error], properties: {error: {$ref: '#/components/schemas/Detail'}}}",
            &[
                "error: types::Detail {",
                "code: match status.as_u16() { 400 => types::DetailCode::BadRequest, 404 => types::DetailCode::NotFound, _ => \
                 types::DetailCode::InternalError },",
                "message: format!(\"{message:3.40}\"),",
                "self.body.error.trace_id = Some(id.to_string());",
            ],
        ),
        (
            "{type: object, properties: {error: {$ref: '#/components/schemas/Detail'}}}",
            &[
                "error: Some(types::Detail {",
                "if let Some(error) = &mut self.body.error {",
            ],
        ),
        (
            "{type: object, required: [id, at, day, kind, code], properties: {id: {type: string, format: uuid}, at: {type: string, \
             format: date-time}, day: {type: string, format: date}, kind: {type: string, minLength: 7}, code: {type: string, \
             pattern: '^[A-Z_]+$'}}}",
            &[
                "id: uuid::Uuid::nil(),",
                "at: chrono::Utc::now(),",
                "day: chrono::Utc::now().date_naive(),",
                "kind: \"unknown\".to_string(),",
                ".to_uppercase().replace(' ', \"_\"),",
                "_message: String, _code: Option<String>",
            ],
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.yaml"), document_with_errors(schema)).unwrap();
        let made = run(folder.path(), &["--spec", "a.yaml", "init", "pets"]);
        assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
        let error = std::fs::read_to_string(folder.path().join("pets/src/error.rs")).unwrap();
        for line in lines {
            assert!(error.contains(line), "{line} is missing:\n{error}");
        }
        let test = std::fs::read_to_string(folder.path().join("pets/tests/serving.rs")).unwrap();
        assert!(test.contains("type Error = pets::generated::types::Error;"), "{test}");
    }
}

#[test]
fn init_rejects_nonempty_folders_and_invalid_crate_names() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("pets")).unwrap();
    std::fs::write(folder.path().join("pets/notes.txt"), "mine\n").unwrap();
    for (name, reason) in [
        ("pets", "is not empty"),
        ("1pets", "not a valid crate name"),
        ("self", "not a valid crate name"),
    ] {
        let output = run(folder.path(), &["--spec", SPEC, "init", name]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    }
    assert_eq!(everything(folder.path()).len(), 1);
}

#[test]
fn lines_are_added_to_their_block_and_unknown_names_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("main.rs"),
        "//! Tests.\n\nmod pets {\n    mod a;\n    mod z;\n}\nmod z {\n    mod b;\n}\n",
    )
    .unwrap();
    let document = load::from_file(Path::new(SPEC)).unwrap();
    let api = dropshot_codegen::model(&document).unwrap();
    let block = templates("-- main.rs.lines --\nmod {{tag}} {\n    mod {{operation}};\n}\n");
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
        .operation(&templates("-- a --\n{{nonsense}}\n"), &api, &api.operations[0])
        .unwrap_err();
    assert_eq!(problem.to_string(), "a: the name `{{nonsense}}` is unknown");
}

/// The project's own templates work for every operation of its contract, and their files exist.
#[test]
fn the_projects_templates_work_for_its_operations() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let document = load::from_file(&project.join("spec/partner-api.yaml")).unwrap();
    let api = dropshot_codegen::model(&document).unwrap();
    let all = templates(&std::fs::read_to_string(project.join("service/templates.txtar")).unwrap());
    let elsewhere = tempfile::tempdir().unwrap();
    for operation in &api.operations {
        Plan::new(elsewhere.path(), Dispatch::Calls)
            .operation(&all, &api, operation)
            .unwrap();
        let (lines, files): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|(path, _)| path.ends_with(".lines"));
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

/// `init` gets a document without two of the operations. They are then added to the document, and `new` writes their
/// files.
#[test]
fn the_committed_petstore_is_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(SPEC).unwrap();
    let (before, rest) = text.split_once("    delete:\n").unwrap();
    let (_, after) = rest.split_once("  /health:\n").unwrap();
    let spec = folder.path().join("openapi.yaml");
    std::fs::write(&spec, format!("{before}  /health:\n{after}")).unwrap();
    let made = run(folder.path(), &["--spec", "openapi.yaml", "init", "petstore"]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let made = folder.path().join("petstore");
    std::fs::write(made.join("openapi.yaml"), text).unwrap();
    for command in [
        &["new", "delete_pet"][..],
        &["new", "put_photo"],
        &["--server", "src/generated"],
    ] {
        let output = run(&made, command);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }

    let committed = Path::new(PETSTORE);
    // Differ in the workspace: it provides the dependencies, and its rustfmt options do not apply.
    let own = ["Cargo.toml", "rustfmt.toml"];
    let relative = |folder: &Path| -> BTreeMap<PathBuf, String> {
        let files = everything(folder).into_iter();
        let files = files.map(|(path, text)| (path.strip_prefix(folder).unwrap().to_path_buf(), text));
        files
            .filter(|(path, _)| !own.iter().any(|own| path == Path::new(own)))
            .collect()
    };
    let written = relative(&made);
    if std::env::var_os("CODEGEN_UPDATE").is_some() {
        for path in relative(committed).into_keys() {
            std::fs::remove_file(committed.join(path)).unwrap();
        }
        for (path, text) in &written {
            let path = committed.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }
    let committed_files = relative(committed);
    let names = |files: &BTreeMap<PathBuf, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        names(&committed_files),
        names(&written),
        "run again with CODEGEN_UPDATE=1"
    );
    for (path, text) in &written {
        assert_eq!(
            &committed_files[path],
            text,
            "{}: run again with CODEGEN_UPDATE=1",
            path.display()
        );
    }
}

fn manifest(path: &str) -> toml::Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_new_crate_depends_on_the_versions_of_this_workspace() {
    let mut all = templates(include_str!("../templates/crate.txtar")).into_iter();
    let (_, template) = all.find(|(path, _)| path == "Cargo.toml").unwrap();
    let template = template.replace("{{runtime}}", "\"1\"").replace("{{crate}}", "pets");
    let template: toml::Table = toml::from_str(&template).unwrap();
    let workspace = manifest("../Cargo.toml");
    let workspace = workspace["workspace"].as_table().unwrap();
    let dependencies = |table: &toml::Table| table["dependencies"].as_table().unwrap().clone();
    let version = |dependency: &toml::Value| {
        let version = dependency.get("version").unwrap_or(dependency);
        version.as_str().unwrap().to_string()
    };
    let asked = dependencies(&template);
    for (name, dependency) in asked.iter().filter(|(name, _)| *name != "codegen-runtime") {
        assert_eq!(version(dependency), version(&dependencies(workspace)[name]), "{name}");
    }
    // The committed crate compiles with the same dependencies.
    let petstore = dependencies(&manifest("petstore/Cargo.toml"));
    assert_eq!(petstore.keys().collect::<Vec<_>>(), asked.keys().collect::<Vec<_>>());
}
