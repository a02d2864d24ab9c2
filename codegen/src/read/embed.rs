//! The document's schemas, as embedded in generated types.

use proc_macro2::Ident;
use serde_json::{Map, Value};

use super::names::named;
use crate::error::Problem;
use crate::node::Node;

/// Converts a schema to the dialect of schemars 0.8 (JSON Schema draft 7), in which exclusive bounds are numbers.
pub fn embedded(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let mut out = Map::new();
            for (key, value) in members {
                match key.as_str() {
                    "example" | "default" | "enum" => out.insert(key.clone(), value.clone()),
                    // These keys are member names, even if they look like keywords.
                    "properties" => out.insert(key.clone(), each(value)),
                    _ => out.insert(key.clone(), embedded(value)),
                };
            }
            for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
                match out.get(exclusive) {
                    Some(Value::Bool(true)) => {
                        if let Some(value) = out.remove(bound) {
                            out.insert(exclusive.into(), value);
                        }
                    }
                    Some(Value::Bool(false)) => {
                        out.remove(exclusive);
                    }
                    _ => {}
                }
            }
            Value::Object(out)
        }
        Value::Array(items) => Value::Array(items.iter().map(embedded).collect()),
        other => other.clone(),
    }
}

/// Inlines all references of a schema, for places where the referenced schemas are not embedded. `around` has the
/// pointers of the schemas that contain it.
///
/// # Errors
/// If a reference is cyclic or points to nothing.
pub fn alone(node: &Node<'_>, around: &[&str]) -> Result<Value, Problem> {
    let node = &node.resolved()?;
    if around.contains(&node.pointer()) {
        return Err(node.reject("a header's schema must not refer to itself; declare its type inline"));
    }
    let around = &[around, &[node.pointer()]].concat();
    let mut whole = embedded(node.value());
    if let (Some(list), Some(parts)) = (node.get("allOf"), whole.get_mut("allOf").and_then(Value::as_array_mut)) {
        for (part, place) in parts.iter_mut().zip(list.items()?) {
            *part = alone(&place, around)?;
        }
    }
    Ok(whole)
}

fn each(properties: &Value) -> Value {
    match properties {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), embedded(value)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// Collects the named types that the schema at `node` refers to, each once.
///
/// # Errors
/// If a reference does not name a schema.
pub fn references(node: &Node<'_>, found: &mut Vec<Ident>) -> Result<(), Problem> {
    match node.value() {
        Value::Object(_) => {
            for (key, place) in node.members()? {
                match key {
                    "$ref" if place.value().is_string() => {
                        let ident = named(place.text()?, &place)?;
                        if !found.contains(&ident) {
                            found.push(ident);
                        }
                    }
                    "properties" => {
                        for (_, property) in place.members()? {
                            references(&property, found)?;
                        }
                    }
                    // Their values are data, or names of schemas that are referenced elsewhere.
                    "example" | "default" | "enum" | "discriminator" => {}
                    _ => references(&place, found)?,
                }
            }
        }
        Value::Array(_) => {
            for item in node.items()? {
                references(&item, found)?;
            }
        }
        _ => {}
    }
    Ok(())
}
