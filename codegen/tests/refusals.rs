//! All refusals of a document are found at once, and what can be generated without them is.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod support;

use std::path::Path;

use codegen::load::{self, Document, from_text};
use codegen::refusals::{all, groups, skipping};
use codegen::{emit, model};
use support::{documents, generated};

fn document(text: &str) -> Document {
    from_text(Path::new("a.yaml"), text).unwrap()
}

/// `pointer: reason` of everything refused.
fn refused(text: &str) -> Vec<String> {
    let problems = all(&document(text));
    problems
        .iter()
        .map(|problem| problem.to_string().split_once(": ").unwrap().1.to_string())
        .collect()
}

const MANY: &str = "
openapi: 3.0.3
info: {title: T, version: 1.0}
paths:
  /pets:
    get:
      operationId: listPets
      parameters:
        - {in: cookie, name: a, schema: {type: string}}
        - {in: query, name: b, style: deepObject, schema: {type: string}}
        - {$ref: '#/components/parameters/Shared'}
      responses: {'200': {$ref: '#/components/responses/Pets'}, 2XX: {description: others}}
    trace: {operationId: trace_pets, responses: {'204': {description: done}}}
  /pets/{id}:
    get:
      operationId: read_pet
      parameters: [{in: path, name: id, required: true, schema: {type: string}}]
      responses: {'200': {description: pet, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}}
    put:
      operationId: read_pet
      parameters: [{in: path, name: id, required: true, schema: {type: string}}]
      requestBody: {content: {application/xml: {schema: {type: string}}}}
      responses: {'204': {description: done}}
    delete:
      operationId: delete_pet
      parameters: [{in: path, name: id, required: true, schema: {type: string}}]
      responses: {'204': {description: done}}
  /toys:
    get:
      operationId: list_toys
      responses: {'200': {description: toys, content: {application/json: {schema: {$ref: '#/components/schemas/Toy'}}}}}
components:
  parameters:
    Shared: {in: cookie, name: c, schema: {type: string}}
  responses:
    Pets: {description: pets, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Pet'}}}}}
  schemas:
    Toy: {type: object, properties: {name: {type: string}}}
    Pet:
      type: object
      properties:
        kind: {type: string, format: binary}
        other: {not: {type: string}}
        size: {type: integer, contains: 3, maximum: x}
        tags: {type: array, items: {type: string, format: binary}}
    Unused: {not: {type: string}}
";

#[test]
fn everything_is_refused_at_once_and_nothing_twice() {
    let found = refused(MANY);
    let expected = [
        "#/info/version: not a valid OpenAPI 3.0 document: must be text: put it in quotes",
        "#/paths/~1pets/get/parameters/0/in: a parameter in `cookie` is not supported; use path, query or header",
        "#/paths/~1pets/get/parameters/1/style: `style: deepObject` is not supported here; use `form`, or for a list in a \
         query `spaceDelimited` or `pipeDelimited` with `explode: false`",
        "#/paths/~1pets/get/responses/2XX: `2XX`: name each status; of ranges, only `4XX` and `5XX` are supported",
        "#/paths/~1pets/trace: Dropshot serves no TRACE; leave the operation out",
        "#/paths/~1pets~1{id}/put: operationId `read_pet` is already used at #/paths/~1pets~1{id}/get; each operation \
         needs its own",
        "#/paths/~1pets~1{id}/put/requestBody/content/application~1xml: a body of `application/xml` is not supported; use \
         JSON, a form, parts or `application/octet-stream`",
        "#/components/parameters/Shared/in: a parameter in `cookie` is not supported; use path, query or header",
        "#/components/schemas/Pet/properties/kind: a string of format `binary` is not supported here; \
         leave the format out and state a `pattern`",
        "#/components/schemas/Pet/properties/other/not: `not` is supported only as `not: {}`, which no value is; name one type",
        "#/components/schemas/Pet/properties/size/maximum: not a valid OpenAPI 3.0 document: invalid type: string \"x\", \
         expected a JSON number",
        "#/components/schemas/Pet/properties/size/contains: `contains` is not supported here; values would not be \
         checked against it",
        "#/components/schemas/Pet/properties/tags/items: a string of format `binary` is not supported here; \
         leave the format out and state a `pattern`",
        "#/components/schemas/Unused/not: `not` is supported only as `not: {}`, which no value is; name one type",
    ];
    let mut missing: Vec<&str> = expected.to_vec();
    missing.retain(|expected| !found.iter().any(|found| found == expected));
    let mut more = found.clone();
    more.retain(|found| !expected.contains(&found.as_str()));
    assert!(
        missing.is_empty() && more.is_empty(),
        "missing: {missing:#?}\nmore: {more:#?}"
    );
}

#[test]
fn refusals_are_counted_by_cause() {
    let groups = groups(all(&document(MANY)));
    let counts: Vec<(usize, &str)> = groups
        .iter()
        .map(|group| (group.problems.len(), group.cause.as_str()))
        .filter(|(count, _)| *count > 1)
        .collect();
    assert_eq!(
        counts,
        [
            (2, "a parameter in … is not supported; use path, query or header"),
            (
                2,
                "a string of format `binary` is not supported here; leave the format out and state a `pattern`"
            ),
            (
                2,
                "`not` is supported only as `not: {}`, which no value is; name one type"
            ),
        ]
    );
}

#[test]
fn operations_that_cannot_be_generated_are_left_out_with_what_only_they_need() {
    let text = MANY.replace("version: 1.0", "version: '1.0'");
    let (rest, left) = skipping(&document(&text)).unwrap();
    let names: Vec<String> = left
        .iter()
        .map(|left| format!("{} {} {:?}", left.method, left.path, left.id.as_deref()))
        .collect();
    assert_eq!(
        names,
        [
            "GET /pets Some(\"listPets\")",
            "TRACE /pets Some(\"trace_pets\")",
            "GET /pets/{id} Some(\"read_pet\")",
            "PUT /pets/{id} Some(\"read_pet\")",
        ]
    );
    assert!(left[2].why.contains("#/components/schemas/Pet/"), "{}", left[2].why);
    let api = model(&rest).unwrap();
    let ids: Vec<&str> = api.operations.iter().map(|operation| operation.id.as_str()).collect();
    assert_eq!(ids, ["delete_pet", "list_toys"]);
    assert_eq!(rest.value["components"]["schemas"].as_object().unwrap().len(), 1);
    emit::server(&api, &emit::Root::default(), emit::Dispatch::Dropshot).unwrap();
}

#[test]
fn what_no_operation_is_to_blame_for_is_not_skipped() {
    let problem = skipping(&document(MANY)).unwrap_err().to_string();
    assert!(problem.contains("#/info/version"), "{problem}");
}

/// Whoever is refused is told what to do.
#[test]
fn every_refusal_says_what_to_do() {
    // An instruction, what was expected instead, or two statements of the document of which one must give way.
    let tells = [
        "; ",
        "must ",
        "need ",
        "needs ",
        "needed",
        ": write ",
        ": name each",
        ": put it",
        ": leave ",
        ": move ",
        "expected ",
        "missing field",
        "no value can have",
        "is not a value of this schema",
        "but is not among the values here",
        "look-ahead and look-behind, is not supported",
    ];
    for path in documents("negative", "txt") {
        let message = std::fs::read_to_string(&path).unwrap();
        assert!(
            tells.iter().any(|tell| message.contains(tell)),
            "{}: {message}",
            path.display()
        );
    }
}

/// Of every document that is refused at first sight, the first refusal is among all of them.
#[test]
fn the_first_refusal_is_among_all() {
    for path in documents("negative", "yaml") {
        let text = std::fs::read_to_string(&path).unwrap();
        let Ok(document) = from_text(Path::new("a.yaml"), &text) else {
            continue;
        };
        let first = model(&document).unwrap_err().to_string();
        let all: Vec<String> = all(&document).iter().map(ToString::to_string).collect();
        assert!(all.contains(&first), "{}: {first}\n{all:#?}", path.display());
    }
}

#[test]
fn a_document_that_generates_has_no_refusals() {
    for path in [documents("positive", "yaml"), generated("defects")].concat() {
        let document = load::from_file(&path).unwrap();
        let all: Vec<String> = all(&document).iter().map(ToString::to_string).collect();
        assert!(all.is_empty(), "{}: {all:#?}", path.display());
    }
}

/// The README's tables name a document for everything that is not supported, and all of them are there.
#[test]
fn what_the_readme_calls_unsupported_has_refused_documents() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let section = readme
        .split("## Not supported\n")
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap();
    let rows = section
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| In the document"));
    let mut count = 0;
    for row in rows {
        let last = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let names: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no document for: {row}");
        for name in names {
            let message = support::folder("negative").join(name).with_extension("txt");
            assert!(message.exists(), "{name} is not refused: {row}");
            count += 1;
        }
    }
    assert!(count >= 30, "{count}");
}
