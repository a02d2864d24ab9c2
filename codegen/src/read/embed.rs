//! The document's schemas, as embedded in generated types.

use proc_macro2::Ident;
use serde_json::Value;

use super::names::named;
use crate::error::Problem;
use crate::node::Node;

/// Converts a schema to the dialect of schemars 0.8 (JSON Schema draft 7), in which exclusive bounds are numbers.
pub fn embedded(schema: &Value) -> Value {
    let mut schema = schema.clone();
    embed(&mut schema);
    schema
}

fn embed(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members.iter_mut() {
                match (key.as_str(), value) {
                    ("example" | "default" | "enum", _) => {}
                    // These keys are member names, even if they look like keywords.
                    ("properties", Value::Object(properties)) => properties.values_mut().for_each(embed),
                    (_, value) => embed(value),
                }
            }
            for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
                match members.get(exclusive) {
                    Some(Value::Bool(true)) => {
                        if let Some(value) = members.remove(bound) {
                            members.insert(exclusive.into(), value);
                        }
                    }
                    Some(Value::Bool(false)) => drop(members.remove(exclusive)),
                    _ => {}
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(embed),
        _ => {}
    }
}

/// Inlines all references of a schema, for places where the referenced schemas are not embedded. `around` has the
/// pointers of the schemas that contain it.
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

/// Collects the named types that the schema at `node` refers to, each once.
pub fn references(node: &Node<'_>, found: &mut Vec<Ident>) -> Result<(), Problem> {
    let mut all = Vec::new();
    collect(node.value(), &mut all);
    for reference in all {
        let ident = named(reference, node)?;
        if !found.contains(&ident) {
            found.push(ident);
        }
    }
    Ok(())
}

fn collect<'v>(schema: &'v Value, found: &mut Vec<&'v str>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                match (key.as_str(), value) {
                    ("$ref", Value::String(reference)) => found.push(reference),
                    ("properties", Value::Object(all)) => all.values().for_each(|it| collect(it, found)),
                    // Their values are data, or names of schemas that are referenced elsewhere.
                    ("example" | "default" | "enum" | "discriminator", _) => {}
                    _ => collect(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}
