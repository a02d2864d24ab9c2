//! Prints an OpenAPI document with a number of operations, 300 by default, for measurements:
//!
//! ```text
//! cargo run -p dropshot-codegen --example large_document 300 > large.json
//! ```
//!
//! Each resource has five operations, and schemas with rules, enumerations, unions, maps, lists and defaults.

use serde_json::{Map, Value, json};

fn main() {
    let operations = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(300);
    println!("{:#}", document(operations));
}

/// A document of `operations` operations, rounded up to whole resources.
pub fn document(operations: usize) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    schemas.insert(
        "Error".into(),
        json!({ "type": "object", "required": ["message"], "properties": { "message": { "type": "string" } } }),
    );
    for number in 0..operations.div_ceil(5) {
        resource(number, &mut paths, &mut schemas);
    }
    json!({
        "openapi": "3.0.3",
        "info": { "title": "Large", "version": "1.0.0" },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

fn resource(number: usize, paths: &mut Map<String, Value>, schemas: &mut Map<String, Value>) {
    let thing = format!("Thing{number}");
    let schema = |name: &str| json!({ "$ref": format!("#/components/schemas/{thing}{name}") });
    let holds = |schema: Value| json!({ "application/json": { "schema": schema } });
    let failed = json!({
        "description": "What is wrong.",
        "content": holds(json!({ "$ref": "#/components/schemas/Error" })),
    });
    let responses = |status: &str, name: &str| json!({ status: { "description": "Done.", "content": holds(schema(name)) }, "4XX": failed, "5XX": failed });
    let done = json!({ "204": { "description": "Done." }, "4XX": failed, "5XX": failed });
    let body = json!({ "required": true, "content": holds(schema("")) });
    let operation = |verb: &str, rest: Value| {
        let mut all =
            json!({ "operationId": format!("{verb}_thing_{number}"), "tags": [format!("group{}", number % 12)] });
        if let (Some(all), Value::Object(rest)) = (all.as_object_mut(), rest) {
            all.extend(rest);
        }
        all
    };
    let query = json!([
        { "in": "query", "name": "limit", "schema": { "type": "integer", "minimum": 1, "maximum": 100, "default": 20 } },
        { "in": "query", "name": "after", "schema": { "type": "string", "pattern": "^[A-Za-z0-9_-]+$", "maxLength": 200 } },
        { "in": "query", "name": "kind", "schema": schema("Kind") },
        { "in": "query", "name": "since", "schema": { "type": "string", "format": "date-time" } },
    ]);
    let id =
        json!([{ "in": "path", "name": "id", "required": true, "schema": { "type": "string", "format": "uuid" } }]);
    paths.insert(
        format!("/things-{number}"),
        json!({
            "get": operation("list", json!({ "parameters": query, "responses": responses("200", "Page") })),
            "post": operation("create", json!({ "requestBody": body, "responses": responses("201", "") })),
        }),
    );
    paths.insert(
        format!("/things-{number}/{{id}}"),
        json!({
            "parameters": id,
            "get": operation("read", json!({ "responses": responses("200", "") })),
            "put": operation("replace", json!({ "requestBody": body, "responses": responses("200", "") })),
            "delete": operation("delete", json!({ "responses": done })),
        }),
    );
    let shape = |kind: &str, member: &str| {
        json!({
            "type": "object",
            "required": ["kind", member],
            "properties": {
                "kind": { "type": "string", "enum": [kind] },
                member: { "type": "number", "minimum": 0, "exclusiveMinimum": true },
            },
        })
    };
    let new = [
        (
            "",
            json!({
                "type": "object",
                "required": ["id", "name", "shape"],
                "properties": {
                    "id": { "type": "string", "format": "uuid" },
                    "name": { "type": "string", "minLength": 1, "maxLength": 80 },
                    "code": { "type": "string", "pattern": "^[A-Z]{2}-[0-9]{1,6}$" },
                    "kind": schema("Kind"),
                    "size": { "type": "integer", "format": "int32", "minimum": 0, "default": 1 },
                    "created": { "type": "string", "format": "date-time" },
                    "day": { "type": "string", "format": "date", "nullable": true },
                    "labels": { "type": "object", "additionalProperties": { "type": "string", "maxLength": 40 } },
                    "tags": { "type": "array", "items": { "type": "string", "minLength": 1 }, "maxItems": 20 },
                    "owner": {
                        "type": "object",
                        "required": ["email"],
                        "properties": { "email": { "type": "string", "maxLength": 200 }, "phone": { "type": "string" } },
                    },
                    "shape": schema("Shape"),
                },
            }),
        ),
        (
            "Kind",
            json!({ "type": "string", "enum": ["first", "second", "third"] }),
        ),
        (
            "Page",
            json!({
                "type": "object",
                "required": ["data"],
                "properties": { "data": { "type": "array", "items": schema("") }, "next": { "type": "string", "nullable": true } },
            }),
        ),
        ("Circle", shape("circle", "radius")),
        ("Square", shape("square", "side")),
        (
            "Shape",
            json!({
                "oneOf": [schema("Circle"), schema("Square")],
                "discriminator": {
                    "propertyName": "kind",
                    "mapping": {
                        "circle": format!("#/components/schemas/{thing}Circle"),
                        "square": format!("#/components/schemas/{thing}Square"),
                    },
                },
            }),
        ),
    ];
    schemas.extend(new.into_iter().map(|(name, value)| (format!("{thing}{name}"), value)));
}
