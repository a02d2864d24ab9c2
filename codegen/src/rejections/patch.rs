//! Replacement of a rejected value by a valid one.

use serde_json::{Map, Value, json};

/// Replaces or removes the value at `pointer`. Returns `false` if that is not possible.
pub fn replace(document: &mut Value, pointer: &str) -> bool {
    let tokens: Vec<&str> = pointer.trim_start_matches('#').split('/').skip(1).collect();
    let Some((last, before)) = tokens.split_last() else {
        return false;
    };
    // Without its alternatives, the rest of the schema would be rejected, so the whole schema is replaced.
    if ["oneOf", "anyOf"].contains(last) {
        return false;
    }
    let around = before.iter().fold(String::new(), |around, token| around + "/" + token);
    let Some(parent) = document.pointer_mut(&around) else {
        return false;
    };
    let name = last.replace("~1", "/").replace("~0", "~");
    let harmless = harmless(&tokens, parent, &name);
    match parent {
        Value::Object(members) => match harmless {
            Some(harmless) => members.insert(name, harmless).is_some(),
            None => members.shift_remove(&name).is_some(),
        },
        // The other items must keep their indexes.
        Value::Array(items) => match (last.parse::<usize>(), harmless) {
            (Ok(index), Some(harmless)) if index < items.len() => {
                items[index] = harmless;
                true
            }
            _ => false,
        },
        _ => false,
    }
}

/// The replacement for a value; `None` if it can be removed.
fn harmless(tokens: &[&str], parent: &Value, name: &str) -> Option<Value> {
    let around = tokens.len().checked_sub(2).map_or("", |index| tokens[index]);
    let is_properties = tokens
        .len()
        .checked_sub(3)
        .is_some_and(|index| tokens[index] == "properties");
    match tokens {
        ["components", "schemas", _] => return Some(json!({})),
        ["components", "parameters", _] => return Some(parameter(parent.get(name))),
        ["components", "requestBodies", _] => return Some(json!({ "required": true, "content": bytes() })),
        ["components", "responses", _] => return Some(json!({ "description": "" })),
        ["info", "title" | "version"] => return Some("0".into()),
        ["paths", _, _, "responses"] => return Some(json!({ "204": { "description": "" } })),
        ["paths", _, _, "operationId"] => {
            let place = tokens.concat().to_lowercase();
            let place = place.replace(|it: char| !it.is_ascii_alphanumeric(), "");
            return Some(format!("rejected_{place}").into());
        }
        _ => {}
    }
    if is_properties {
        // A keyword of a member, whatever the member's name.
        return None;
    }
    match (around, name) {
        ("properties" | "allOf", _) | (_, "items" | "additionalProperties") => Some(json!({})),
        ("parameters", _) => Some(parameter(
            parent.get(name).or_else(|| parent.get(name.parse::<usize>().ok()?)),
        )),
        ("enum", _) => Some(format!("rejected {name}").into()),
        ("tags", _) => Some("rejected".into()),
        (_, "schema") if parent.get("in").is_some() => Some(json!({ "type": "string" })),
        (_, "schema") => Some(json!({})),
        (_, "content") => Some(bytes()),
        _ => None,
    }
}

/// A string parameter with the same location and name.
fn parameter(rejected: Option<&Value>) -> Value {
    let mut new = Map::new();
    let text = |key: &str| rejected.and_then(|rejected| rejected.get(key)).and_then(Value::as_str);
    let location = text("in").filter(|place| ["path", "query", "header"].contains(place));
    new.insert("in".into(), location.unwrap_or("query").into());
    new.insert("name".into(), text("name").unwrap_or("rejected").into());
    new.insert("required".into(), (location == Some("path")).into());
    new.insert("schema".into(), json!({ "type": "string" }));
    new.into()
}

fn bytes() -> Value {
    json!({ "application/octet-stream": {} })
}
