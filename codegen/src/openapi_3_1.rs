//! Conversion from OpenAPI 3.1 to 3.0, as far as 3.0 can express the same.
//!
//! Anything that 3.0 cannot express is left unchanged, and rejected by the readers.

use serde_json::{Map, Value, json};

use crate::error::Problem;
use crate::keywords::{is_annotation, is_rule_of_a_type};
use crate::node::text_of;
use crate::places::{self, Kind};

/// Converts a document from OpenAPI 3.1 to 3.0.
pub fn converted(document: &mut Value) -> Result<(), Problem> {
    let known = [
        "https://spec.openapis.org/oas/3.1/dialect/base",
        "https://json-schema.org/draft/2020-12/schema",
    ];
    if let Some(dialect) = text_of(document, "jsonSchemaDialect").filter(|it| !known.contains(it)) {
        let reason = format!("the schema dialect `{dialect}` is not supported; use OpenAPI's own");
        return Err(Problem::rejected("#/jsonSchemaDialect", reason));
    }
    if let Some(members) = document.as_object_mut() {
        members.insert("openapi".into(), "3.0.3".into());
        members.entry("paths").or_insert_with(|| json!({}));
        members.shift_remove("jsonSchemaDialect");
    }
    if let Some(info) = document.get_mut("info").and_then(Value::as_object_mut) {
        info.shift_remove("summary");
        if let Some(license) = info.get_mut("license").and_then(Value::as_object_mut) {
            license.shift_remove("identifier");
        }
    }
    places::change(document, |value, kind| match value {
        Value::Bool(true) if kind == Kind::Schema => *value = json!({}),
        Value::Bool(false) if kind == Kind::Schema => *value = json!({ "not": {} }),
        Value::Object(members) if kind == Kind::Schema => schema(members),
        Value::Object(members) if kind == Kind::Operation => {
            members.entry("responses").or_insert_with(|| json!({}));
        }
        _ => {}
    });
    Ok(())
}

fn schema(members: &mut Map<String, Value>) {
    members.shift_remove("$comment");
    members.shift_remove("$schema");
    reference(members);
    constant(members);
    types(members);
    alternatives(members);
    bounds(members, "minimum", "exclusiveMinimum", f64::gt);
    bounds(members, "maximum", "exclusiveMaximum", f64::lt);
    if members.get("examples").is_some_and(Value::is_array)
        && let Some(Value::Array(examples)) = members.shift_remove("examples")
        && let Some(first) = examples.into_iter().next()
    {
        members.entry("example").or_insert(first);
    }
    content(members);
}

/// Moves a `$ref` that has siblings into an `allOf`. OpenAPI 3.1 applies the siblings; 3.0 ignores them.
pub(crate) fn reference(members: &mut Map<String, Value>) {
    if members.len() < 2 {
        return;
    }
    if let Some(reference) = members.shift_remove("$ref") {
        let mut parts = vec![json!({ "$ref": reference })];
        if let Some(Value::Array(others)) = members.shift_remove("allOf") {
            parts.extend(others);
        }
        members.insert("allOf".into(), parts.into());
    }
}

/// Converts `const` to an `enum` of one value.
pub(crate) fn constant(members: &mut Map<String, Value>) {
    if members.contains_key("enum") {
        return;
    }
    if let Some(value) = members.shift_remove("const") {
        if let Some(ty) = type_of(&value) {
            members.entry("type").or_insert_with(|| ty.into());
        }
        members.insert("enum".into(), json!([value]));
    }
}

pub(crate) fn type_of(value: &Value) -> Option<&'static str> {
    match value {
        Value::String(_) => Some("string"),
        Value::Bool(_) => Some("boolean"),
        Value::Number(number) if number.is_f64() => Some("number"),
        Value::Number(_) => Some("integer"),
        _ => None,
    }
}

/// Converts a list of types: `[string, "null"]` becomes a nullable string, and several types become alternatives.
fn types(members: &mut Map<String, Value>) {
    let mut all = match members.get("type") {
        Some(Value::Array(all)) => all.clone(),
        Some(Value::String(one)) if one == "null" => vec!["null".into()],
        _ => return,
    };
    let before = all.len();
    // In YAML, `null` without quotes is not a string.
    all.retain(|ty| ty != "null" && !ty.is_null());
    let may_be_null = all.len() < before;
    let is_of_object = |key: &str| ["properties", "required", "additionalProperties"].contains(&key);
    let has_other_keywords = members.keys().any(|key| {
        key != "type" && !is_annotation(key) && *key != "examples" && !is_of_object(key) && !is_rule_of_a_type(key)
    });
    match all.as_slice() {
        [] => {
            members.shift_remove("type");
            members.insert("enum".into(), json!([null]));
            return;
        }
        [one] => drop(members.insert("type".into(), one.clone())),
        // The readers reject it with a remedy.
        _ if has_other_keywords => return,
        several => {
            // Every integer is also a number, so a value would match both alternatives.
            let has_numbers = several.iter().any(|ty| ty == "number");
            let several = several.iter().filter(|ty| !has_numbers || **ty != "integer");
            let mut alternatives: Vec<Value> = several.map(|ty| json!({ "type": ty })).collect();
            // Rules of other types are moved with those of other alternatives.
            if let Some(object) = alternatives.iter_mut().find(|it| it["type"] == "object") {
                let keys: Vec<String> = members.keys().filter(|key| is_of_object(key)).cloned().collect();
                for key in keys {
                    object[&key] = members.shift_remove(&key).unwrap_or_default();
                }
            }
            members.shift_remove("type");
            members.insert("oneOf".into(), alternatives.into());
        }
    }
    if may_be_null {
        members.insert("nullable".into(), true.into());
        if let Some(Value::Array(values)) = members.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
    }
}

/// Converts a null alternative to `nullable` on the others.
fn alternatives(members: &mut Map<String, Value>) {
    for keyword in ["oneOf", "anyOf"] {
        let Some(Value::Array(all)) = members.get_mut(keyword) else {
            continue;
        };
        let before = all.len();
        all.retain(|alternative| *alternative != json!({ "enum": [null] }));
        if all.len() == before || all.is_empty() {
            continue;
        }
        if all.len() == 1 {
            let only = members.shift_remove(keyword).unwrap_or_default();
            members.insert("allOf".into(), only);
        }
        members.insert("nullable".into(), true.into());
    }
}

/// Converts exclusive bounds, which are numbers in 3.1 and flags in 3.0. If both bounds are present, the tighter one
/// applies.
fn bounds(members: &mut Map<String, Value>, bound: &str, exclusive: &str, is_closer: fn(&f64, &f64) -> bool) {
    let Some(value) = members.get(exclusive).filter(|value| value.is_number()).cloned() else {
        return;
    };
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    match members.get(bound) {
        Some(other) if is_closer(&number(other), &number(&value)) => drop(members.shift_remove(exclusive)),
        _ => {
            members.insert(bound.into(), value);
            members.insert(exclusive.into(), true.into());
        }
    }
}

/// Converts `contentEncoding: base64` to `format: byte`.
fn content(members: &mut Map<String, Value>) {
    let encoding = members.get("contentEncoding").and_then(Value::as_str);
    let format = match (encoding, members.contains_key("contentMediaType")) {
        (Some("base64"), _) => "byte",
        (None, true) => "binary",
        _ => return,
    };
    members.shift_remove("contentEncoding");
    members.shift_remove("contentMediaType");
    members.entry("type").or_insert_with(|| "string".into());
    members.insert("format".into(), format.into());
}
