//! Reading JSON and YAML, including malformed and hostile texts.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use dropshot_codegen::load::{Document, from_text};

fn read(text: &str) -> Result<Document, String> {
    from_text(Path::new("a"), text).map_err(|problem| problem.to_string())
}

fn rejected(text: &str) -> String {
    read(text).unwrap_err()
}

#[test]
fn json_is_parsed_as_json() {
    let key = "k".repeat(2000);
    let text = format!(
        "{{\n\t\"openapi\": \"3.0.3\",\n\t\"info\": {{\"title\": \"\\ud83d\\ude00\", \"version\": \"1\"}},\n\t\"{key}\": {{}}\n}}"
    );
    let document = read(&text).unwrap();
    assert_eq!(document.value["info"]["title"], "\u{1f600}");
    assert!(document.value[&key].is_object());
}

#[test]
fn errors_in_json_have_line_and_column() {
    assert_eq!(
        rejected("{\"openapi\": \"3.0.3\",\n \"a\": [1, {\"b\": \"}\\\"{\", \"b\": 2}]}"),
        "a:2:25: #/a/1/b: `b` occurs twice; the first is on line 2"
    );
    assert!(rejected("{\"openapi\": \"3.0.3\",\n \"a\": [1 2}").starts_with("a:2:"));
    assert_eq!(
        rejected("{\"openapi\": \"3.2.0\"}"),
        "a:1:2: #/openapi: must be OpenAPI 3.0.x or 3.1.x, is 3.2.0"
    );
}

#[test]
fn flow_style_yaml_is_parsed_as_yaml() {
    assert!(read("{openapi: 3.0.3, info: {title: T}}").is_ok());
}

#[test]
fn merge_keys_are_resolved() {
    let document = read("openapi: 3.0.3\na: &a {b: 1, c: 2}\nd: {<<: *a, c: 3}\n").unwrap();
    assert_eq!(document.value["d"], serde_json::json!({ "c": 3, "b": 1 }));
}

#[test]
fn documents_that_are_nested_too_deep_are_rejected() {
    let json = format!("{{\"openapi\": {}", "[".repeat(100_000));
    let flow = format!("a: {}", "[".repeat(100_000));
    let block: String = (0..2000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    for (text, depth) in [(json, 1000), (flow, 128), (block, 128)] {
        let problem = rejected(&text);
        let is_said = problem.contains(&format!("must not be nested deeper than {depth} levels"));
        assert!(is_said || problem.contains("recursion limit"), "{problem}");
        assert!(problem.starts_with("a:1"), "{problem}");
    }
}

#[test]
fn json_may_be_nested_deeper_than_yaml() {
    let nested = |depth: usize| {
        let head = r#"{"openapi": "3.0.3", "info": {"title": "[\"{", "version": "1"}, "paths": {}, "x-deep": "#;
        format!("{head}{}{}}}", "[".repeat(depth), "]".repeat(depth))
    };
    let read = move || {
        let document = from_text(Path::new("a"), &nested(999)).unwrap();
        dropshot_codegen::model(&document).unwrap();
        let problem = from_text(Path::new("a"), &nested(1000)).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "a:1:1087: not a YAML or JSON document: must not be nested deeper than 1000 levels"
        );
    };
    std::thread::Builder::new()
        .stack_size(dropshot_codegen::STACK)
        .spawn(read)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn exponentially_growing_aliases_are_rejected() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_string();
    for level in 1..12 {
        let previous = format!("*a{}", level - 1);
        text += &format!("a{level}: &a{level} [{}]\n", vec![previous; 9].join(", "));
    }
    assert!(rejected(&text).contains("repetition limit"), "{}", rejected(&text));
}

/// The message names the other file, but the pointer is that of the whole document.
#[test]
fn an_error_names_the_file_in_which_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "api.yaml",
        "openapi: 3.0.3\ninfo: {title: T, version: '1'}\npaths:\n  /a: {$ref: 'a.yaml'}\n",
    );
    write(
        "a.yaml",
        "get:\n  operationId: a\n  responses:\n    '200':\n      description: ok\n      content:\n        \
         application/json: {schema: {$ref: 'b.yaml#/Pet'}}\n",
    );
    write(
        "b.yaml",
        "Pet:\n  type: object\n  properties:\n    photo: {type: string, not: {type: string}}\n",
    );
    let document = dropshot_codegen::load::from_file(&folder.path().join("api.yaml")).unwrap();
    let problem = dropshot_codegen::model(&document).unwrap_err().to_string();
    let file = folder.path().join("b.yaml");
    let expected = format!(
        "{}:4:27: #/components/schemas/Pet/properties/photo/not: ",
        file.display()
    );
    assert!(problem.starts_with(&expected), "{problem}");
    write("a.yaml", "get: {trace: 1}\ntrace: {operationId: a, responses: {}}\n");
    let document = dropshot_codegen::load::from_file(&folder.path().join("api.yaml")).unwrap();
    let problems: Vec<String> = dropshot_codegen::rejections::all(&document)
        .iter()
        .map(ToString::to_string)
        .collect();
    let file = folder.path().join("a.yaml").display().to_string();
    assert!(
        problems.iter().all(|problem| problem.starts_with(&file)),
        "{problems:#?}"
    );
    // Cyclic references between files are rejected.
    write("a.yaml", "$ref: 'a.yaml'\n");
    let problem = dropshot_codegen::load::from_file(&folder.path().join("api.yaml"))
        .unwrap_err()
        .to_string();
    assert!(problem.contains("reference cycle"), "{problem}");
}
