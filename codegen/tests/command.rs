//! The command's output and exit codes, and the explanations of places.
//! The tests are in one file, because each file in this folder is a program that has to be linked.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output};

use dropshot_codegen::explain::explain;
use dropshot_codegen::load::from_text;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/petstore/openapi.yaml");
const REJECTED: &str = "openapi: 3.0.3
info: {title: T, version: '1.0'}
paths: {}
components: {schemas: {Other: {not: {type: string}}}}
";
const UNNAMED: &str = "openapi: 3.0.3
info: {title: T, version: '1.0'}
paths:
  /pets/{pet-id}:
    get:
      parameters: [{in: path, name: pet-id, required: true, schema: {type: string}}]
      responses: {'204': {description: None.}}
  /: {get: {responses: {'204': {description: None.}}}}
";

/// Writes the document that is rejected, and returns its path.
fn rejected_in(folder: &tempfile::TempDir) -> String {
    let path = folder.path().join("rejected.yaml");
    std::fs::write(&path, REJECTED).unwrap();
    path.to_str().unwrap().to_string()
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dropshot-codegen"))
        .args(arguments)
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn generate(command: &[&str], folder: &Path) -> Output {
    let folder = folder.join("server");
    let mut arguments = command.to_vec();
    let folder = folder.display().to_string();
    arguments.extend(["--spec", DOCUMENT, "--server", &folder, "--root", "crate::pets"]);
    run(&arguments)
}

#[test]
fn check_fails_after_a_generated_file_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let missing = generate(&["check"], folder.path());
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("missing: "), "{}", stderr(&missing));
    assert_eq!(generate(&[], folder.path()).status.code(), Some(0));
    assert_eq!(generate(&["check"], folder.path()).status.code(), Some(0));
    let dispatch = folder.path().join("server/dispatch.rs");
    let text = std::fs::read_to_string(&dispatch).unwrap();
    assert!(text.contains("use crate::pets::context::Context;"));
    std::fs::write(&dispatch, text.replacen("Context", "Other", 1)).unwrap();
    let stale = generate(&["check"], folder.path());
    assert_eq!(stale.status.code(), Some(2));
    assert!(stderr(&stale).contains("stale: "), "{}", stderr(&stale));
}

#[test]
fn a_folder_with_other_code_is_rejected_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("server");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("main.rs"), "fn main() {}\n").unwrap();
    let client = folder.path().join("client").display().to_string();
    for command in [&["--client", &client][..], &["check", "--client", &client]] {
        let output = generate(command, folder.path());
        assert_eq!(output.status.code(), Some(1));
        assert!(
            stderr(&output).contains("server contains `main.rs` but no"),
            "{}",
            stderr(&output)
        );
    }
    assert!(!folder.path().join("client").exists());
    assert_eq!(
        std::fs::read_to_string(source.join("main.rs")).unwrap(),
        "fn main() {}\n"
    );
    assert_eq!(std::fs::read_dir(&source).unwrap().count(), 1);
}

#[test]
fn an_error_contains_line_column_and_pointer() {
    let folder = tempfile::tempdir().unwrap();
    let rejected = rejected_in(&folder);
    let output = run(&["--spec", &rejected]);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!(
        "error: {rejected}:4:32: #/components/schemas/Other/not: `not` is supported only as `not: {{}}`; declare a \
         `type` instead\n"
    );
    assert_eq!(stderr(&output), expected);
}

#[test]
fn the_name_of_an_operation_without_an_id_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let document = folder.path().join("unnamed.yaml");
    std::fs::write(&document, UNNAMED).unwrap();
    let output = run(&["--spec", document.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        stderr(&output),
        "note: GET /pets/{pet-id} has no operationId; using `get_pets_by_pet_id`\nnote: GET / has no operationId; \
         using `get`\n"
    );
}

#[test]
fn without_output_folders_the_document_is_only_checked() {
    let output = run(&["--spec", DOCUMENT]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.is_empty());
}

#[test]
fn a_missing_document_and_an_invalid_root_are_errors() {
    let output = run(&["--spec", "nowhere.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).starts_with("error: nowhere.yaml: "),
        "{}",
        stderr(&output)
    );
    let output = run(&["--spec", DOCUMENT, "--root", "not a path"]);
    assert!(
        stderr(&output).contains("must be a path of modules"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn help_contains_examples_and_exit_codes() {
    let output = run(&["--help"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for part in ["Exit codes:", "Examples:", "dropshot-codegen check --spec", "--root"] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

/// A document with three operations, of which two are supported, and three errors.
fn partly_supported(folder: &Path) -> String {
    let path = folder.join("api.yaml");
    let text = "openapi: 3.0.3\ninfo: {title: T, version: '1'}\npaths:\n  /a:\n    get: {operationId: get_a, responses: {'204': \
                {description: done}}}\n    put: {operationId: put_a, responses: {'204': {description: done}}}\n  /b:\n    get:\n      \
                operationId: get_b\n      parameters: [{in: query, allowReserved: true, name: a, schema: {type: string}}, {in: query, \
                allowReserved: true, name: b, schema: {type: string}}]\n      responses: {1XX: {description: done}}\n";
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn the_first_error_is_printed_with_a_summary_and_all_errors_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let spec = partly_supported(folder.path());
    let first = run(&["--spec", &spec]);
    assert_eq!(first.status.code(), Some(1));
    let expected = format!(
        "error: {spec}:10:32: #/paths/~1b/get/parameters/0/allowReserved: `allowReserved` is not supported on a parameter\n\
         and 2 rejections more, with 2 causes:\n     1 × `allowReserved` is not supported on a parameter\n     1 × the range `1XX` is not supported; declare each status, or use `2XX` to \
         `5XX`\n`--all` lists every place; `--skip-unsupported` leaves these operations out and generates the others\n"
    );
    assert_eq!(stderr(&first), expected);
    let all = run(&["--spec", &spec, "--all"]);
    assert_eq!(all.status.code(), Some(1));
    assert!(
        stderr(&all).starts_with(&format!(
            "error: 3 rejections in {spec}, with 2 causes\n\n2 × `allowReserved`"
        )),
        "{}",
        stderr(&all)
    );
    for place in [":10:32: ", ":10:99: ", ":11:19: "] {
        assert!(stderr(&all).contains(place), "{place}: {}", stderr(&all));
    }
}

#[test]
fn unsupported_operations_are_left_out_on_request_and_listed() {
    let folder = tempfile::tempdir().unwrap();
    let spec = partly_supported(folder.path());
    let server = folder.path().join("server");
    let arguments = [
        "--spec",
        &spec,
        "--skip-unsupported",
        "--server",
        &server.display().to_string(),
    ];
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).starts_with("left out: GET /b (get_b): "),
        "{}",
        stderr(&output)
    );
    assert!(
        stderr(&output).ends_with("1 of 3 operations are left out\n"),
        "{}",
        stderr(&output)
    );
    let api = std::fs::read_to_string(server.join("api.rs")).unwrap();
    assert_eq!(api.matches("#[endpoint").count(), 2);
    let check = run(&[&["check"], &arguments[..]].concat());
    assert_eq!(check.status.code(), Some(0), "{}", stderr(&check));
    assert_eq!(run(&arguments[..2]).status.code(), Some(1));
}

#[test]
fn the_command_explains_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let rejected = rejected_in(&folder);
    let output = run(&["--spec", &rejected, "explain", "#/components/schemas/Other"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("rejected: "));
    assert_eq!(
        run(&["--spec", &rejected, "explain", "#/nowhere"]).status.code(),
        Some(1)
    );
}

#[test]
fn rejections_are_printed_as_json_with_their_ranges() {
    let folder = tempfile::tempdir().unwrap();
    let rejected = rejected_in(&folder);
    let output = run(&["--spec", &rejected, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<serde_json::Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected = serde_json::json!({
        "file": rejected,
        "range": { "start": { "line": 4, "column": 32 }, "end": { "line": 4, "column": 35 } },
        "pointer": "#/components/schemas/Other/not",
        "reason": "`not` is supported only as `not: {}`; declare a `type` instead",
    });
    assert_eq!(lines, std::slice::from_ref(&expected));
    // Operations that are left out are reported in the same form.
    let output = run(&["--spec", &rejected, "--json", "--skip-unsupported"]);
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(line, expected);
    // So are files that cannot be read.
    let output = run(&["--spec", "nowhere.yaml", "--json"]);
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(line["file"], "nowhere.yaml");
    assert!(line["reason"].as_str().unwrap().starts_with("No such file"), "{line}");
}

/// `watch` prints a line after each round, so the test waits for lines and not for a time.
struct Watched {
    child: std::process::Child,
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStderr>>,
}

impl Watched {
    fn new(spec: &Path, server: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_dropshot-codegen"))
            .arg("watch")
            .arg("--spec")
            .arg(spec)
            .arg("--server")
            .arg(server)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Watched { child, lines }
    }

    /// The messages of the next round.
    fn round(&mut self) -> Vec<String> {
        let lines = self.lines.by_ref().map(Result::unwrap);
        lines.take_while(|line| !line.starts_with("watching ")).collect()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Replaces a file atomically.
fn replace(file: &Path, text: &str) {
    let new = file.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, file).unwrap();
}

#[test]
fn watch_generates_again_after_a_document_changed() {
    let folder = tempfile::tempdir().unwrap();
    let (spec, server) = (folder.path().join("a.yaml"), folder.path().join("server"));
    let text = std::fs::read_to_string(DOCUMENT).unwrap();
    std::fs::write(&spec, &text).unwrap();
    let mut watched = Watched::new(&spec, &server);
    assert_eq!(watched.round(), [""; 0]);
    let operations = || std::fs::read_to_string(server.join("operations.rs")).unwrap();
    let before = operations();
    replace(&spec, "openapi: 3.0.3\n");
    assert!(watched.round()[0].starts_with("error: "));
    let more = "  /more: {get: {operationId: more_of_it, responses: {'204': {description: done}}}}\n";
    replace(&spec, &text.replace("paths:\n", &format!("paths:\n{more}")));
    assert_eq!(watched.round(), [""; 0]);
    assert!(!before.contains("more_of_it") && operations().contains("more_of_it"));
}

#[test]
fn watch_generates_again_after_a_broken_part_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let (spec, part) = (folder.path().join("a.yaml"), folder.path().join("part.yaml"));
    let text = "openapi: 3.0.3\ninfo: {title: T, version: '1'}\npaths:\n  /a: {$ref: 'part.yaml#/a'}\n";
    std::fs::write(&spec, text).unwrap();
    let operation =
        |id: &str| format!("a: {{get: {{operationId: {id}, responses: {{'204': {{description: done}}}}}}}}\n");
    std::fs::write(&part, operation("first")).unwrap();
    let mut watched = Watched::new(&spec, &folder.path().join("server"));
    assert_eq!(watched.round(), [""; 0]);
    replace(&part, "a: [\n");
    assert!(watched.round()[0].starts_with("error: "));
    replace(&part, &operation("second"));
    assert_eq!(watched.round(), [""; 0]);
    let operations = std::fs::read_to_string(folder.path().join("server/operations.rs")).unwrap();
    assert!(operations.contains("second"), "{operations}");
}

const EXPLAINED: &str = "
openapi: 3.0.3
info: {title: T, version: '1'}
paths:
  /pets/{id}:
    put:
      operationId: put_pet
      tags: [pets]
      parameters: [{in: path, name: id, required: true, schema: {type: integer, minimum: 1}}]
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
      responses: {'204': {description: done}}
    get:
      operationId: get_odd
      parameters: [{in: path, name: id, required: true, schema: {type: integer, minimum: 1}}]
      responses: {'200': {description: odd, content: {application/json: {schema: {$ref: '#/components/schemas/Odd'}}}}}
components:
  schemas:
    Pet:
      type: object
      required: [name]
      properties:
        name: {type: string, minLength: 1, maxLength: 40}
        kind: {type: string, enum: [cat, dog], default: cat}
    Odd: {type: object, properties: {any: {not: {type: string}}, fine: {type: string}}}
    Unused: {type: string}
";

fn of(pointer: &str) -> String {
    let document = from_text(Path::new("a.yaml"), EXPLAINED).unwrap();
    explain(&document, pointer).unwrap_or_else(|problem| format!("error: {problem}"))
}

#[test]
fn a_member_is_explained_with_its_type_and_rules() {
    let expected = "a.yaml:22:9: #/components/schemas/Pet/properties/name\nfield `name` of `Pet`: `String`\nrequired, \
                    not null\nchecked: minLength 1\nchecked: maxLength 40";
    assert_eq!(of("#/components/schemas/Pet/properties/name"), expected);
    let expected = "a.yaml:23:9: #/components/schemas/Pet/properties/kind\nfield `kind` of `Pet`: \
                    `PetKind`\noptional, \"cat\" by default\nenum `types::PetKind`: Cat (\"cat\"), Dog \
                    (\"dog\")\nused in requests";
    assert_eq!(of("/components/schemas/Pet/properties/kind"), expected);
}

#[test]
fn a_keyword_is_explained_by_its_schema() {
    let text = of("#/components/schemas/Pet/properties/name/maxLength");
    assert!(
        text.contains("part of #/components/schemas/Pet/properties/name:"),
        "{text}"
    );
    assert!(text.contains("checked: maxLength 40"), "{text}");
}

#[test]
fn an_operation_is_explained_with_its_handler_parameters_and_responses() {
    let expected = "a.yaml:6:5: #/paths/~1pets~1{id}/put\nPUT /pets/{id}: `endpoints::pets::put_pet::handle`, which \
                    receives\n    path: types::PutPetPath\n    body: types::Pet\nand returns \
                    `responses::PutPetResponse`:\n    204: nothing";
    assert_eq!(of("#/paths/~1pets~1{id}/put"), expected);
    let parameter = of("#/paths/~1pets~1{id}/put/parameters/0");
    assert!(parameter.contains("field `id` of `PutPetPath`: `i64`"), "{parameter}");
}

#[test]
fn a_rejected_place_is_explained_with_the_reason() {
    let reason = "rejected: a.yaml:24:44: #/components/schemas/Odd/properties/any/not: `not` is supported only as `not: \
                  {}`; declare a `type` instead";
    for pointer in [
        "#/components/schemas/Odd/properties/any/not",
        "#/components/schemas/Odd/properties/any",
        "#/components/schemas/Odd",
    ] {
        assert!(of(pointer).ends_with(reason), "{}", of(pointer));
    }
    assert!(!of("#/components/schemas/Odd/properties/fine").contains("rejected"));
}

#[test]
fn unused_schemas_and_missing_places_are_explained() {
    assert!(of("#/components/schemas/Unused").contains("no operation uses it"));
    assert_eq!(
        of("#/components/schemas/Pot"),
        "error: a.yaml:17:3: #/components/schemas: #/components/schemas/Pot is not in the document; the members here \
         are: Pet, Odd, Unused"
    );
    assert!(of("Pet").contains("must be a JSON pointer"), "{}", of("Pet"));
}
