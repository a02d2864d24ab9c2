//! The places of a document that may contain schemas.

use serde_json::Value;

use crate::node::{METHODS, escaped};

/// The kind of a value that may contain a schema.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A schema.
    Schema,
    /// A parameter.
    Parameter,
    /// A header of a response.
    Header,
    /// The body of a request.
    Body,
    /// A response.
    Response,
    /// An operation.
    Operation,
}

/// The pointers of all places, without `#`, the inner ones first. Extensions and examples are data and have none.
pub fn all(document: &Value) -> Vec<(String, Kind)> {
    let mut found = Vec::new();
    for (path, item) in members(document, "", "paths") {
        for (at, parameter) in members(item, &path, "parameters") {
            holder(parameter, at, Kind::Parameter, &mut found);
        }
        for method in METHODS {
            if let Some(value) = item.get(method) {
                operation(value, format!("{path}/{method}"), &mut found);
            }
        }
    }
    let components = document.get("components").unwrap_or(&Value::Null);
    for (kind, holds) in [
        ("schemas", Kind::Schema),
        ("parameters", Kind::Parameter),
        ("headers", Kind::Header),
        ("requestBodies", Kind::Body),
        ("responses", Kind::Response),
    ] {
        for (at, value) in members(components, "/components", kind) {
            match holds {
                Kind::Schema => schema(value, at, &mut found),
                _ => holder(value, at, holds, &mut found),
            }
        }
    }
    found
}

/// Changes the value at each place, after those inside it.
pub fn change(document: &mut Value, mut act: impl FnMut(&mut Value, Kind)) {
    for (pointer, kind) in all(document) {
        if let Some(value) = document.pointer_mut(&pointer) {
            act(value, kind);
        }
    }
}

/// The members or items in the member `key` of a value, each with its pointer.
fn members<'v>(value: &'v Value, at: &str, key: &str) -> Vec<(String, &'v Value)> {
    let at = format!("{at}/{key}");
    match value.get(key) {
        Some(Value::Object(members)) => {
            // The members of `properties` are names, even if they look like extensions.
            let is_data = |name: &str| key != "properties" && name.starts_with("x-");
            let members = members.iter().filter(|(name, _)| !is_data(name));
            members
                .map(|(name, value)| (format!("{at}/{}", escaped(name)), value))
                .collect()
        }
        Some(Value::Array(items)) => {
            let items = items.iter().enumerate();
            items.map(|(index, value)| (format!("{at}/{index}"), value)).collect()
        }
        _ => Vec::new(),
    }
}

fn operation(value: &Value, at: String, found: &mut Vec<(String, Kind)>) {
    for (at, parameter) in members(value, &at, "parameters") {
        holder(parameter, at, Kind::Parameter, found);
    }
    if let Some(body) = value.get("requestBody") {
        holder(body, format!("{at}/requestBody"), Kind::Body, found);
    }
    for (at, response) in members(value, &at, "responses") {
        holder(response, at, Kind::Response, found);
    }
    found.push((at, Kind::Operation));
}

fn holder(value: &Value, at: String, kind: Kind, found: &mut Vec<(String, Kind)>) {
    let content = members(value, &at, "content");
    for (at, around) in content.into_iter().chain([(at.clone(), value)]) {
        if let Some(value) = around.get("schema") {
            schema(value, format!("{at}/schema"), found);
        }
    }
    for (at, header) in members(value, &at, "headers") {
        holder(header, at, Kind::Header, found);
    }
    found.push((at, kind));
}

fn schema(value: &Value, at: String, found: &mut Vec<(String, Kind)>) {
    for key in ["properties", "allOf", "anyOf", "oneOf"] {
        for (at, inner) in members(value, &at, key) {
            schema(inner, at, found);
        }
    }
    for key in ["items", "not", "additionalProperties"] {
        let is_schema = |inner: &&Value| inner.is_object() || key != "additionalProperties";
        if let Some(inner) = value.get(key).filter(is_schema) {
            schema(inner, format!("{at}/{key}"), found);
        }
    }
    found.push((at, Kind::Schema));
}
