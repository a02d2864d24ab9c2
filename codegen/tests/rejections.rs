//! Collecting all errors of a document, and leaving out unsupported operations.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod support;

use std::path::Path;

use dropshot_codegen::load::{Document, from_text};
use dropshot_codegen::rejections::{all, groups, skipping};
use dropshot_codegen::{emit, model};
use support::{defects, negative, positive};

fn document(text: &str) -> Document {
    from_text(Path::new("a.yaml"), text).unwrap()
}

/// The errors as `pointer: reason`.
fn rejected(text: &str) -> Vec<String> {
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
        - {in: query, name: a, allowReserved: true, schema: {type: string}}
        - {in: query, name: b, style: deepObject, schema: {type: string}}
        - {$ref: '#/components/parameters/Shared'}
      responses: {'200': {$ref: '#/components/responses/Pets'}, 1XX: {description: others}}
    trace: {operationId: trace_pets, responses: {'204': {description: done}}}
  /pets/{id}:
    get:
      operationId: read_pet
      parameters: [{in: path, name: id, required: true, schema: {type: string}}]
      responses: {'200': {description: pet, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}}
    put:
      operationId: read_pet
      parameters: [{in: path, name: id, required: true, schema: {type: string}}]
      requestBody: {content: {application/xml: {schema: {type: object}}}}
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
    Shared: {in: header, name: c, allowReserved: true, schema: {type: string}}
  responses:
    Pets: {description: pets, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Pet'}}}}}
  schemas:
    Toy: {type: object, properties: {name: {type: string}}}
    Pet:
      type: object
      properties:
        kind: {type: number, x-decimal-places: 1}
        other: {not: {type: string}}
        size: {type: integer, contains: 3, maximum: x}
        tags: {type: array, items: {type: number, x-decimal-places: 1}}
    Unused: {not: {type: string}}
";

#[test]
fn all_errors_are_found_once() {
    let found = rejected(MANY);
    let expected = [
        "#/info/version: not a valid OpenAPI 3.0 document: must be a string; put it in quotes",
        "#/paths/~1pets/get/parameters/0/allowReserved: `allowReserved` is not supported on a parameter",
        "#/paths/~1pets/get/parameters/1/style: `style: deepObject` is not supported here; use `form`, or for a list in a \
         query `spaceDelimited` or `pipeDelimited`",
        "#/paths/~1pets/get/responses/1XX: the range `1XX` is not supported; declare each status, or use `2XX` to `5XX`",
        "#/paths/~1pets/trace: Dropshot does not support TRACE; remove the operation",
        "#/paths/~1pets~1{id}/put: operationId `read_pet` is already used at #/paths/~1pets~1{id}/get; operation IDs \
         must be unique",
        "#/paths/~1pets~1{id}/put/requestBody/content/application~1xml: the schema of a body with the media type \
         `application/xml` is not supported, because values would not be checked against it; use JSON, or `type: string` \
         without rules for a body that the handler reads",
        "#/components/parameters/Shared/allowReserved: `allowReserved` is not supported on a parameter",
        "#/components/schemas/Pet/properties/kind/x-decimal-places: `x-decimal-places` is not supported here, because values would \
         not be checked against it; remove it",
        "#/components/schemas/Pet/properties/other/not: `not` is supported only as `not: {}`; declare a `type` instead",
        "#/components/schemas/Pet/properties/size/maximum: not a valid OpenAPI 3.0 document: must be a number, is a string",
        "#/components/schemas/Pet/properties/size/contains: `contains` is not supported here, because values would not \
         be checked against it; remove it",
        "#/components/schemas/Pet/properties/tags/items/x-decimal-places: `x-decimal-places` is not supported here, because values \
         would not be checked against it; remove it",
        "#/components/schemas/Unused/not: `not` is supported only as `not: {}`; declare a `type` instead",
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
fn errors_are_counted_by_cause() {
    let groups = groups(all(&document(MANY)));
    let counts: Vec<(usize, &str)> = groups
        .iter()
        .map(|group| (group.problems.len(), group.cause.as_str()))
        .filter(|(count, _)| *count > 1)
        .collect();
    assert_eq!(
        counts,
        [
            (2, "`allowReserved` is not supported on a parameter"),
            (
                2,
                "`x-decimal-places` is not supported here, because values would not be checked against it; remove it"
            ),
            (2, "`not` is supported only as `not: {}`; declare a `type` instead"),
        ]
    );
}

#[test]
fn unsupported_operations_are_left_out_with_the_schemas_that_only_they_use() {
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
    assert!(
        left[2].reason.contains("#/components/schemas/Pet/"),
        "{}",
        left[2].reason
    );
    let api = model(&rest).unwrap();
    let ids: Vec<&str> = api.operations.iter().map(|operation| operation.id.as_str()).collect();
    assert_eq!(ids, ["delete_pet", "list_toys"]);
    assert_eq!(rest.value["components"]["schemas"].as_object().unwrap().len(), 1);
    emit::server(&api, &emit::Root::default(), emit::Dispatch::Dropshot).unwrap();
}

/// A rejected part leaves no dangling references, and only the parts that need it are left out.
#[test]
fn a_rejected_part_rejects_nothing_else() {
    let mut all = negative().into_iter();
    let (fixture, message) = all
        .find(|(fixture, _)| fixture.file.ends_with("map_in_an_all_of.yaml"))
        .unwrap();
    let found = rejected(&fixture.text);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(message.contains(&found[0]), "{message}");
    let (rest, left) = skipping(&document(&fixture.text)).unwrap();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(model(&rest).unwrap().operations.len(), 1);
}

/// A value that cannot be replaced is found again in every round.
#[test]
fn a_missing_part_of_the_document_is_reported_once() {
    let text = MANY.replace("info: {title: T, version: 1.0}\n", "");
    let found = rejected(&text);
    let missing: Vec<&String> = found.iter().filter(|it| it.contains("`info`")).collect();
    assert_eq!(missing, ["#: not a valid OpenAPI 3.0 document: `info` is missing"]);
}

#[test]
fn errors_outside_of_operations_cannot_be_skipped() {
    let problem = skipping(&document(MANY)).unwrap_err().to_string();
    assert!(problem.contains("#/info/version"), "{problem}");
}

/// Every message contains a remedy, or states what is expected.
#[test]
fn every_message_contains_a_remedy_or_an_expectation() {
    // Parts of messages with a remedy or an expectation.
    let remedies = [
        "; ",
        "must ",
        "is missing",
        "expected ",
        "no value can have",
        "not a valid ECMAScript pattern",
        "is not a value of this schema",
        "is not one of the allowed values",
    ];
    for (_, message) in negative() {
        assert!(remedies.iter().any(|remedy| message.contains(remedy)), "{message}");
    }
}

/// For each rejected document, the first error is also one of all errors.
#[test]
fn the_first_error_is_one_of_all_errors() {
    for (fixture, _) in negative() {
        let Ok(document) = from_text(&fixture.file, &fixture.text) else {
            continue;
        };
        let first = model(&document).unwrap_err().to_string();
        let all: Vec<String> = all(&document).iter().map(ToString::to_string).collect();
        assert!(all.contains(&first), "{}: {first}\n{all:#?}", fixture.file.display());
    }
}

#[test]
fn supported_documents_have_no_errors() {
    for fixture in positive().into_iter().chain(defects()) {
        let document = from_text(&fixture.file, &fixture.text).unwrap();
        let all: Vec<String> = all(&document).iter().map(ToString::to_string).collect();
        assert!(all.is_empty(), "{}: {all:#?}", fixture.file.display());
    }
}

/// Every row in the README's tables of unsupported features names a rejected document.
#[test]
fn features_that_the_readme_calls_unsupported_have_rejected_documents() {
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
    let rejected = negative();
    let mut count = 0;
    for row in rows {
        let last = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let names: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no document for: {row}");
        for name in names {
            let file = Path::new(name).with_extension("yaml");
            let is_rejected = rejected.iter().any(|(fixture, _)| fixture.file == file);
            assert!(is_rejected, "{name} is not rejected: {row}");
            count += 1;
        }
    }
    assert!(count >= 30, "{count}");
}
