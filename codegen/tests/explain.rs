//! The `explain` command.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use dropshot_codegen::explain::explain;
use dropshot_codegen::load::from_text;

const DOCUMENT: &str = "
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
    let document = from_text(Path::new("a.yaml"), DOCUMENT).unwrap();
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
