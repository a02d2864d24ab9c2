//! Checks that a document is valid OpenAPI 3.0.
//!
//! Parsing the whole document locates an error only roughly, because the parser tries several forms at each place and
//! reports the first failure. The parts are therefore parsed one by one, from the innermost outwards.

use openapiv3::{Components, OpenAPI, Operation, Parameter, ReferenceOr, RequestBody, Response, Schema};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::error::Problem;
use crate::node::{Node, escaped};

/// Everything in the document that is not valid OpenAPI 3.0.
pub fn check(document: &Value) -> Vec<Problem> {
    if serde_json::from_value::<OpenAPI>(document.clone()).is_ok() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let root = Node::root(document);
    let mut whole = document.clone();
    if let Some(components) = root.get("components") {
        for (kind, list) in components.members().unwrap_or_default() {
            let is_read = match kind {
                "schemas" => each(&list, schema, &mut found),
                "parameters" => each(&list, parameter, &mut found),
                "responses" => each(&list, response, &mut found),
                "requestBodies" => each(&list, body, &mut found),
                _ => false,
            };
            if is_read {
                set(&mut whole, &["components", kind], json!({}));
            }
        }
        part::<Components>(&components, whole.get("components"), &mut found);
        set(&mut whole, &["components"], json!({}));
    }
    if let Some(paths) = root.get("paths") {
        for (_, item) in paths.members().unwrap_or_default() {
            for (key, place) in item.members().unwrap_or_default() {
                match key {
                    "parameters" => place
                        .items()
                        .unwrap_or_default()
                        .iter()
                        .for_each(|it| parameter(it, &mut found)),
                    "summary" | "description" | "servers" | "$ref" => {}
                    _ if key.starts_with("x-") => {}
                    _ => operation(&place, &mut found),
                }
            }
        }
        if paths.value().is_object() {
            set(&mut whole, &["paths"], json!({}));
        }
    }
    part::<OpenAPI>(&root, Some(&whole), &mut found);
    if found.is_empty() {
        // Errors that only parsing the whole document reveals.
        typed::<OpenAPI>(&root, document, &mut found);
    }
    found
}

/// Checks each member of an object; returns `false` if it is not an object.
fn each(list: &Node<'_>, read: fn(&Node<'_>, &mut Vec<Problem>), found: &mut Vec<Problem>) -> bool {
    let Ok(members) = list.members() else { return false };
    members.iter().for_each(|(_, place)| read(place, found));
    true
}

fn operation(node: &Node<'_>, found: &mut Vec<Problem>) {
    let mut shell = node.value().clone();
    if let Some(list) = node.get("parameters") {
        list.items()
            .unwrap_or_default()
            .iter()
            .for_each(|it| parameter(it, found));
        set(&mut shell, &["parameters"], json!([]));
    }
    if let Some(place) = node.get("requestBody") {
        body(&place, found);
        set(&mut shell, &["requestBody"], json!({ "content": {} }));
    }
    if let Some(list) = node.get("responses") {
        for (status, place) in list.members().unwrap_or_default() {
            if !status.starts_with("x-") {
                response(&place, found);
                set(&mut shell, &["responses", status], json!({ "description": "" }));
            }
        }
    }
    part::<Operation>(node, Some(&shell), found);
}

fn parameter(node: &Node<'_>, found: &mut Vec<Problem>) {
    let mut shell = node.value().clone();
    if let Some(place) = node.get("schema") {
        schema(&place, found);
        set(&mut shell, &["schema"], json!({}));
    }
    content(node, &mut shell, found);
    part::<ReferenceOr<Parameter>>(node, Some(&shell), found);
}

fn body(node: &Node<'_>, found: &mut Vec<Problem>) {
    let mut shell = node.value().clone();
    content(node, &mut shell, found);
    part::<ReferenceOr<RequestBody>>(node, Some(&shell), found);
}

fn response(node: &Node<'_>, found: &mut Vec<Problem>) {
    let mut shell = node.value().clone();
    content(node, &mut shell, found);
    if let Some(headers) = node.get("headers") {
        for (name, place) in headers.members().unwrap_or_default() {
            if let Some(place) = place.get("schema") {
                schema(&place, found);
                set(&mut shell, &["headers", name, "schema"], json!({}));
            }
        }
    }
    part::<ReferenceOr<Response>>(node, Some(&shell), found);
}

fn content(node: &Node<'_>, shell: &mut Value, found: &mut Vec<Problem>) {
    let Some(content) = node.get("content") else { return };
    for (media_type, media) in content.members().unwrap_or_default() {
        if let Some(place) = media.get("schema") {
            schema(&place, found);
            set(shell, &["content", media_type, "schema"], json!({}));
        }
    }
}

fn schema(node: &Node<'_>, found: &mut Vec<Problem>) {
    let before = found.len();
    let mut shell = node.value().clone();
    for (key, place) in node.members().unwrap_or_default() {
        match key {
            "properties" => {
                for (name, place) in place.members().unwrap_or_default() {
                    schema(&place, found);
                    set(&mut shell, &["properties", name], json!({}));
                }
            }
            "items" | "not" | "additionalProperties" if place.value().is_object() => {
                schema(&place, found);
                set(&mut shell, &[key], json!({}));
            }
            "allOf" | "oneOf" | "anyOf" => {
                let parts = place.items().unwrap_or_default();
                parts.iter().for_each(|part| schema(part, found));
                if !parts.is_empty() {
                    set(&mut shell, &[key], parts.iter().map(|_| json!({})).collect());
                }
            }
            _ => {}
        }
    }
    if found.len() == before {
        part::<ReferenceOr<Schema>>(node, Some(&shell), found);
    }
}

/// Parses `shell`, the value at `node` with its inner parts replaced by valid ones.
fn part<T: DeserializeOwned>(node: &Node<'_>, shell: Option<&Value>, found: &mut Vec<Problem>) {
    if let Some(shell) = shell
        && serde_json::from_value::<T>(shell.clone()).is_err()
    {
        typed::<T>(node, shell, found);
    }
}

/// Reports why `shell` cannot be parsed: at the member whose removal would make it valid, or else where the parser
/// stopped.
fn typed<T: DeserializeOwned>(node: &Node<'_>, shell: &Value, found: &mut Vec<Problem>) {
    let Err(error) = serde_path_to_error::deserialize::<_, T>(shell.clone()) else {
        return;
    };
    if let Some(members) = shell.as_object() {
        for key in members.keys() {
            let rest: Map<String, Value> = members
                .iter()
                .filter(|(other, _)| *other != key)
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            if serde_json::from_value::<T>(Value::Object(rest)).is_ok()
                && let Some(place) = node.get(key)
            {
                found.push(place.refuse(reason(key, place.value(), &error.inner().to_string())));
                return;
            }
        }
    }
    use serde_path_to_error::Segment;
    let mut pointer = node.pointer().to_string();
    for segment in error.path() {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } => pointer.push_str(&format!("/{}", escaped(key))),
            // An enum variant does not correspond to a place in the document.
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    let value = node.value();
    let last = pointer.rsplit('/').next().unwrap_or_default();
    let inner = error.inner().to_string();
    let reason = match error.path().iter().next() {
        Some(_) => reason(
            last,
            value.pointer(&pointer[node.pointer().len()..]).unwrap_or(value),
            &inner,
        ),
        None => reason("", value, &inner),
    };
    found.push(Problem::refused(&pointer, reason));
}

/// Describes the error, in terms of OpenAPI where the parser's message is unhelpful.
fn reason(key: &str, value: &Value, said: &str) -> String {
    let text = match (key, value) {
        ("type", Value::Array(_)) => {
            "several types must be written as a `oneOf`, each with its own rules; use `nullable: true` for null, or in \
             OpenAPI 3.1 the type \"null\""
        }
        ("exclusiveMinimum" | "exclusiveMaximum", Value::Number(_)) => {
            "a number is only valid in OpenAPI 3.1; in 3.0, write `true` beside the bound"
        }
        ("version" | "title" | "description" | "summary" | "operationId", Value::Number(_) | Value::Bool(_)) => {
            "must be a string; put it in quotes"
        }
        _ => said,
    };
    format!("not a valid OpenAPI 3.0 document: {text}")
}

fn set(value: &mut Value, path: &[&str], new: Value) {
    let mut target = value;
    for key in path {
        match target.get_mut(*key) {
            Some(next) => target = next,
            None => return,
        }
    }
    *target = new;
}
