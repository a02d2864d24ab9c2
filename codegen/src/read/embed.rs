//! The document's own schemas, as generated types carry them.

use proc_macro2::Ident;
use serde_json::{Map, Value};

use super::schema::named;
use crate::Problem;
use crate::node::Node;

/// The schema in the dialect of schemars 0.8 (JSON Schema draft 7): bounds that exclude themselves are numbers there.
pub fn embedded(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let mut out = Map::new();
            for (key, value) in members {
                match key.as_str() {
                    "example" | "default" | "enum" => out.insert(key.clone(), value.clone()),
                    // Its keys are the document's own words, even if they look like keywords.
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

/// The schema with those that it refers to in their places: it stands where no others come with it.
///
/// # Errors
/// When a reference leads nowhere, or in a circle.
pub fn alone(node: &Node<'_>, depth: usize) -> Result<Value, Problem> {
    if depth > DEEPEST {
        return Err(node.refuse("what refers to itself has no end here; state the type in place"));
    }
    if node.get("$ref").is_some() {
        return alone(&node.resolved()?, depth + 1);
    }
    let mut whole = embedded(node.value());
    if let (Some(list), Some(parts)) = (node.get("allOf"), whole.get_mut("allOf").and_then(Value::as_array_mut)) {
        for (part, place) in parts.iter_mut().zip(list.items()?) {
            *part = alone(&place, depth + 1)?;
        }
    }
    Ok(whole)
}

/// How far references may lead: far beyond any document, but the end of a circle.
const DEEPEST: usize = 32;

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

/// The named types that the schema at `node` refers to, each once.
///
/// # Errors
/// When a reference names no schema.
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
                    // Their values are data, or names of schemas that stand beside as references.
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
