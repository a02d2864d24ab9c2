//! Schemas: named types, members and parameters.

use proc_macro2::Ident;
use serde_json::{Map, Value};

use super::names;
use crate::Problem;
use crate::model::{Field, Shape, Type, TypeDefinition};
use crate::node::Node;

/// What may stand beside any keyword and changes nothing in Rust.
const ANNOTATIONS: [&str; 10] = [
    "title",
    "description",
    "example",
    "externalDocs",
    "deprecated",
    "readOnly",
    "writeOnly",
    "nullable",
    "default",
    "xml",
];

/// Reads a component schema.
///
/// # Errors
/// What cannot be generated, with its place.
pub fn definition(name: &str, node: &Node<'_>) -> Result<TypeDefinition, Problem> {
    let ident = names::type_name(name, node)?;
    let shape = if node.get("enum").is_some() {
        Shape::Enum(variants(node)?)
    } else if is_struct(node) {
        Shape::Struct(fields(node)?)
    } else {
        Shape::Alias(ty(node)?)
    };
    let mut refers_to = Vec::new();
    references(node, &mut refers_to)?;
    Ok(TypeDefinition {
        name: name.to_string(),
        ident,
        docs: docs(node)?,
        shape,
        schema: embedded(node.value()),
        refers_to,
        in_requests: false,
        in_responses: false,
    })
}

/// Reads one member of an object, or a parameter, whose schema stands at `node`.
///
/// # Errors
/// What cannot be generated, with its place.
pub fn field(name: &str, docs_text: String, required: bool, node: &Node<'_>) -> Result<Field, Problem> {
    let default = node.get("default").map(|default| default.value().clone());
    let field = Field {
        name: name.to_string(),
        ident: names::field_name(name, node)?,
        docs: docs_text,
        ty: ty(node)?,
        required,
        nullable: node.flag("nullable")?,
        default,
        deprecated: node.flag("deprecated")?,
        schema: embedded(node.value()),
        pointer: node.pointer().to_string(),
    };
    Ok(field)
}

/// The type of the schema at `node`.
///
/// # Errors
/// What cannot be generated, with its place.
pub fn ty(node: &Node<'_>) -> Result<Type, Problem> {
    if let Some(reference) = node.text_of("$ref")? {
        node.resolved()?;
        return Ok(Type::Named(named(reference, node)?));
    }
    if let Some(all_of) = node.get("allOf") {
        // The wrapper that gives a reference a description of its own.
        allow(node, &["allOf"])?;
        return match all_of.items()?.as_slice() {
            [only] if only.get("$ref").is_some() => ty(only),
            _ => Err(all_of.refuse("allOf is supported around a single $ref; write the members out")),
        };
    }
    for keyword in ["oneOf", "anyOf", "not"] {
        if let Some(place) = node.get(keyword) {
            return Err(place.refuse(format!("`{keyword}` is not supported; name one type")));
        }
    }
    if node.get("enum").is_some() {
        return Err(node.refuse("an enumeration needs a name: move it to components/schemas and refer to it"));
    }
    match node.text_of("type")? {
        None => {
            allow(node, &[])?;
            Ok(Type::Any)
        }
        Some("string") => string(node),
        Some("boolean") => {
            allow(node, &["type"])?;
            Ok(Type::Boolean)
        }
        Some("integer") => integer(node),
        Some("number") => number(node),
        Some("array") => array(node),
        Some("object") => map(node),
        Some(other) => Err(node.refuse(format!("type `{other}` is unknown"))),
    }
}

fn string(node: &Node<'_>) -> Result<Type, Problem> {
    match node.text_of("format")? {
        Some("decimal") => {
            allow(node, &["type", "format", "pattern", "x-decimal-places"])?;
            let places = node
                .count("x-decimal-places")?
                .ok_or_else(|| node.refuse("`format: decimal` needs `x-decimal-places`, the number of decimals"))?;
            let places = u32::try_from(places).map_err(|_| node.refuse("too many decimal places"))?;
            Ok(Type::Decimal { places })
        }
        Some("date-time") => {
            allow(node, &["type", "format"])?;
            Ok(Type::DateTime)
        }
        Some("uuid") => {
            allow(node, &["type", "format"])?;
            Ok(Type::Uuid)
        }
        Some("byte" | "binary" | "date" | "time") => {
            let format = node.text_of("format")?.unwrap_or_default();
            Err(node.refuse(format!("a string of format `{format}` is not supported here")))
        }
        _ => {
            allow(node, &["type", "format", "minLength", "maxLength", "pattern"])?;
            Ok(Type::String {
                min_length: node.count("minLength")?,
                max_length: node.count("maxLength")?,
                pattern: pattern(node, "pattern")?,
            })
        }
    }
}

fn pattern(node: &Node<'_>, key: &str) -> Result<Option<String>, Problem> {
    let Some(place) = node.get(key) else { return Ok(None) };
    let text = place.text()?;
    regex::Regex::new(text)
        .map_err(|error| place.refuse(format!("the pattern does not compile in Rust's regex: {error}")))?;
    Ok(Some(text.to_string()))
}

fn integer(node: &Node<'_>) -> Result<Type, Problem> {
    allow(
        node,
        &[
            "type",
            "format",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
        ],
    )?;
    let bits = match node.text_of("format")? {
        Some("int32") => 32,
        Some("int64") | None => 64,
        Some(other) => return Err(node.refuse(format!("integer format `{other}` is unknown; use int32 or int64"))),
    };
    let bound = |key: &str, exclusive: &str| -> Result<Option<(i64, bool)>, Problem> {
        let Some(place) = node.get(key) else { return Ok(None) };
        let value = place
            .value()
            .as_i64()
            .ok_or_else(|| place.refuse("must be a whole number"))?;
        Ok(Some((value, node.flag(exclusive)?)))
    };
    Ok(Type::Integer {
        bits,
        minimum: bound("minimum", "exclusiveMinimum")?,
        maximum: bound("maximum", "exclusiveMaximum")?,
    })
}

fn number(node: &Node<'_>) -> Result<Type, Problem> {
    if node.text_of("format")? == Some("decimal") {
        allow(node, &["type", "format", "x-max-significant-digits"])?;
        let digits = node.count("x-max-significant-digits")?.unwrap_or(28);
        if !(1..=28).contains(&digits) {
            return Err(node.refuse("`x-max-significant-digits` must be from 1 to 28"));
        }
        return Ok(Type::ExactNumber {
            max_significant_digits: u32::try_from(digits).unwrap_or(28),
        });
    }
    allow(
        node,
        &[
            "type",
            "format",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
        ],
    )?;
    let bound = |key: &str, exclusive: &str| -> Result<Option<(f64, bool)>, Problem> {
        let Some(place) = node.get(key) else { return Ok(None) };
        let value = place.value().as_f64().ok_or_else(|| place.refuse("must be a number"))?;
        Ok(Some((value, node.flag(exclusive)?)))
    };
    Ok(Type::Number {
        minimum: bound("minimum", "exclusiveMinimum")?,
        maximum: bound("maximum", "exclusiveMaximum")?,
    })
}

fn array(node: &Node<'_>) -> Result<Type, Problem> {
    allow(node, &["type", "items", "minItems", "maxItems"])?;
    Ok(Type::Array {
        items: Box::new(inner(&node.need("items")?)?),
        min_items: node.count("minItems")?,
        max_items: node.count("maxItems")?,
    })
}

fn map(node: &Node<'_>) -> Result<Type, Problem> {
    if let Some(place) = node.get("properties") {
        return Err(place.refuse("an object with members needs a name: move it to components/schemas and refer to it"));
    }
    allow(
        node,
        &[
            "type",
            "additionalProperties",
            "minProperties",
            "maxProperties",
            "x-key-pattern",
        ],
    )?;
    let values = match node.get("additionalProperties") {
        None => Type::Any,
        Some(place) if place.value() == &Value::Bool(true) => Type::Any,
        Some(place) if place.value() == &Value::Bool(false) => {
            return Err(place.refuse("an object without any member is not supported"));
        }
        Some(place) => inner(&place)?,
    };
    Ok(Type::Map {
        values: Box::new(values),
        min_properties: node.count("minProperties")?,
        max_properties: node.count("maxProperties")?,
        key_pattern: pattern(node, "x-key-pattern")?,
    })
}

/// The type of an array's items or a map's values: rules of its own would have nowhere to be checked.
fn inner(node: &Node<'_>) -> Result<Type, Problem> {
    if node.flag("nullable")? {
        return Err(node.refuse("items and map values cannot be nullable"));
    }
    let ty = ty(node)?;
    match &ty {
        Type::String {
            min_length: None,
            max_length: None,
            pattern: None,
        }
        | Type::Integer {
            minimum: None,
            maximum: None,
            ..
        }
        | Type::Number {
            minimum: None,
            maximum: None,
        }
        | Type::Named(_)
        | Type::Boolean
        | Type::DateTime
        | Type::Uuid
        | Type::Any
        | Type::ExactNumber { .. } => Ok(ty),
        Type::Array {
            min_items: None,
            max_items: None,
            ..
        } => Ok(ty),
        _ => Err(node.refuse(
            "items and map values with rules of their own need a name: move this schema to \
                              components/schemas, as a member of an object",
        )),
    }
}

fn is_struct(node: &Node<'_>) -> bool {
    node.get("properties").is_some()
}

fn fields(node: &Node<'_>) -> Result<Vec<Field>, Problem> {
    allow(node, &["type", "properties", "required", "additionalProperties"])?;
    if node.text_of("type")? != Some("object") {
        return Err(node.refuse("a schema with `properties` needs `type: object`"));
    }
    if let Some(place) = node.get("additionalProperties")
        && !place.value().is_boolean()
    {
        return Err(place.refuse("members beside named ones are not supported; name a map as a member"));
    }
    let properties = node.need("properties")?.members()?;
    let mut required = Vec::new();
    if let Some(list) = node.get("required") {
        for item in list.items()? {
            let name = item.text()?;
            if !properties.iter().any(|(known, _)| *known == name) {
                return Err(item.refuse(format!("`{name}` is required but not among the properties")));
            }
            required.push(name);
        }
    }
    let mut all = Vec::new();
    for (name, place) in &properties {
        all.push(field(name, docs(place)?, required.contains(name), place)?);
    }
    names::distinct(all.iter().map(|field| (field.name.as_str(), &field.ident)), node)?;
    Ok(all)
}

fn variants(node: &Node<'_>) -> Result<Vec<(String, Ident)>, Problem> {
    allow(node, &["type", "enum"])?;
    if node.text_of("type")? != Some("string") {
        return Err(node.refuse("an enumeration needs `type: string`"));
    }
    let mut all = Vec::new();
    for item in node.need("enum")?.items()? {
        let value = item.text()?;
        all.push((value.to_string(), names::variant_name(value, &item)?));
    }
    if all.is_empty() {
        return Err(node.refuse("an enumeration needs at least one value"));
    }
    names::distinct(all.iter().map(|(value, ident)| (value.as_str(), ident)), node)?;
    Ok(all)
}

/// The description, trimmed; empty when there is none.
///
/// # Errors
/// When it is no string.
pub fn docs(node: &Node<'_>) -> Result<String, Problem> {
    Ok(node.text_of("description")?.unwrap_or_default().trim().to_string())
}

fn named(reference: &str, node: &Node<'_>) -> Result<Ident, Problem> {
    match reference.strip_prefix("#/components/schemas/") {
        Some(name) => names::type_name(name, node),
        None => Err(node.refuse(format!("`{reference}` must name a schema under #/components/schemas/"))),
    }
}

/// Refuses keywords that would silently be ignored.
fn allow(node: &Node<'_>, keywords: &[&str]) -> Result<(), Problem> {
    for (key, place) in node.members()? {
        let known = keywords.contains(&key) || ANNOTATIONS.contains(&key);
        // Rules of ours are refused where they would not be checked; other extensions are none of our business.
        let ours = ["x-decimal-places", "x-max-significant-digits", "x-key-pattern"].contains(&key);
        if !known && (ours || !key.starts_with("x-")) {
            return Err(place.refuse(format!(
                "`{key}` is not supported here; values would not be checked against it"
            )));
        }
    }
    Ok(())
}

fn references(node: &Node<'_>, found: &mut Vec<Ident>) -> Result<(), Problem> {
    match node.value() {
        Value::Object(_) => {
            for (key, place) in node.members()? {
                if key == "$ref" {
                    let ident = named(place.text()?, &place)?;
                    if !found.contains(&ident) {
                        found.push(ident);
                    }
                } else if key != "example" && key != "default" {
                    references(&place, found)?;
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

/// The schema in the dialect of schemars 0.8 (JSON Schema draft 7): bounds that exclude themselves are numbers there.
pub fn embedded(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let mut out = Map::new();
            for (key, value) in members {
                match key.as_str() {
                    "example" | "default" | "enum" => out.insert(key.clone(), value.clone()),
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
