//! The operations that are registered with Dropshot are the contract's: the same methods, paths, parameters, bodies and responses.
//!
//! The document that Dropshot emits has no error statuses, no security and no second success status, so the contract's own document
//! is the one that is served.

use std::collections::BTreeMap;

use dropshot::{ApiDescription, ServerContext};
use partner_api_tests::contract::{INSPECTORS, PARTNERS};
use serde_json::{Value, json};

/// The operations of the document that Dropshot emits.
fn registered<C: ServerContext>(description: &ApiDescription<C>) -> BTreeMap<String, Value> {
    let version = "1.0.0".parse().unwrap();
    operations(&description.openapi("", version).json().unwrap())
}

/// Returns the declaration of each operation in a document.
fn operations(document: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let shared = item.get("parameters").and_then(Value::as_array);
        for method in ["get", "post", "put", "delete", "patch", "head", "options"] {
            let Some(operation) = item.get(method) else { continue };
            let own = operation.get("parameters").and_then(Value::as_array);
            let parameters = shared.into_iter().chain(own).flatten();
            let mut parameters: Vec<Value> = parameters.map(|one| parameter(resolved(document, one))).collect();
            parameters.sort_by_key(Value::to_string);
            let declared = json!({
                "id": operation["operationId"],
                "tags": operation["tags"],
                "parameters": parameters,
                "body": operation.get("requestBody").map(schema),
                "response": response(document, operation),
            });
            found.insert(format!("{method} {path}"), declared);
        }
    }
    found
}

fn parameter(parameter: &Value) -> Value {
    let is_required = parameter.get("required").and_then(Value::as_bool).unwrap_or(false);
    json!([parameter["in"], parameter["name"], is_required])
}

/// The first success status, and its schema.
fn response(document: &Value, operation: &Value) -> Value {
    let mut responses = operation["responses"].as_object().unwrap().iter();
    let (status, response) = responses.find(|(status, _)| status.starts_with('2')).unwrap();
    json!([status, schema(resolved(document, response))])
}

/// The schema of a JSON body or response; null for one of bytes.
fn schema(content: &Value) -> Value {
    content
        .pointer("/content/application~1json/schema/$ref")
        .cloned()
        .unwrap_or_default()
}

fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    let reference = value
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|place| place.strip_prefix('#'));
    reference.map_or(value, |place| document.pointer(place).unwrap())
}

#[test]
fn dropshot_registers_the_operations_of_both_contracts() {
    let partners = partner_api::generated::dispatch::description().unwrap();
    assert_eq!(registered(&partners), operations(PARTNERS.document()));
    let inspectors = partner_api_inspector::generated::dispatch::description().unwrap();
    assert_eq!(registered(&inspectors), operations(INSPECTORS.document()));
}
