//! Joins the parts of an `allOf` that cannot be read one by one: scalars and arrays, and objects that declare the same
//! member with different rules.

use serde_json::{Map, Value, json};

use crate::keywords::{is_annotation, is_rule_of_a_type};
use crate::node::members;
use crate::places::{self, Kind};
use crate::read::is_weaker;

/// The maximum nesting of parts, which also ends cycles.
const MAX_DEPTH: usize = 6;

/// Replaces each such `allOf` by one schema that has the rules of all its parts.
pub fn parts(document: &mut Value) {
    for (pointer, kind) in places::all(document) {
        let schema = document.pointer(&pointer).filter(|_| kind == Kind::Schema);
        let Some(parts) = schema.and_then(|schema| schema.get("allOf")?.as_array()) else {
            continue;
        };
        let is_stated = |(key, _): &(&String, &Value)| *key != "allOf" && *key != "type" && !is_annotation(key);
        let has_rules = members(schema).any(|member| is_stated(&member));
        let count = parts.iter().filter(|part| **part != json!({})).count();
        let mut join = Join {
            document,
            conflicts: false,
        };
        let Some(joined) = schema.and_then(|schema| join.flat(schema, 0)) else {
            continue;
        };
        let is_needed = match joined.get("type").and_then(Value::as_str) {
            Some("object") => join.conflicts,
            ty => ty.is_some() && (count > 1 || has_rules),
        };
        if let Some(schema) = document.pointer_mut(&pointer).filter(|_| is_needed) {
            *schema = joined.into();
        }
    }
}

struct Join<'d> {
    document: &'d Value,
    /// Whether two objects declare the same member, and neither declaration has all rules of the other.
    conflicts: bool,
}

impl Join<'_> {
    /// The rules of a schema and of all its parts; `None` if they cannot be joined.
    fn flat(&mut self, schema: &Value, depth: usize) -> Option<Map<String, Value>> {
        let mut target = schema;
        for _ in 0..MAX_DEPTH {
            match target.get("$ref").and_then(Value::as_str) {
                Some(reference) => target = self.document.pointer(reference.strip_prefix('#')?)?,
                None => break,
            }
        }
        let mut own = target.as_object().filter(|_| depth < MAX_DEPTH)?.clone();
        let parts = own.shift_remove("allOf");
        own.shift_remove("discriminator");
        let mut all = Map::new();
        let is_true = |map: &Map<String, Value>, key: &str| map.get(key) == Some(&Value::Bool(true));
        for part in parts.as_ref().and_then(Value::as_array).into_iter().flatten() {
            let mut part = self.flat(part, depth + 1)?;
            let are_typed = all.contains_key("type") && part.contains_key("type");
            if are_typed && !(is_true(&all, "nullable") && is_true(&part, "nullable")) {
                all.shift_remove("nullable");
                part.shift_remove("nullable");
            }
            self.add(&mut all, part, depth)?;
        }
        all.retain(|key, _| !is_annotation(key) || !own.contains_key(key));
        self.add(&mut all, own, depth)?;
        Some(all)
    }

    fn add(&mut self, all: &mut Map<String, Value>, mut part: Map<String, Value>, depth: usize) -> Option<()> {
        for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
            let number = |map: &Map<String, Value>| map.get(bound).and_then(Value::as_f64);
            let (Some(known), Some(new)) = (number(all), number(&part)) else {
                continue;
            };
            // The flag belongs to the bound that is kept.
            let flag = part.shift_remove(exclusive).unwrap_or(Value::Bool(false));
            let is_closer = if bound == "minimum" { new > known } else { new < known };
            if is_closer || new == known && flag == Value::Bool(true) {
                all.insert(exclusive.into(), flag);
            }
        }
        for (key, new) in part {
            let Some(known) = all.get(&key) else {
                let is_known = ["type", "format", "enum", "required"].contains(&key.as_str());
                if key == "additionalProperties" || !(is_known || is_annotation(&key) || is_rule_of_a_type(&key)) {
                    return None;
                }
                all.insert(key, new);
                continue;
            };
            if *known == new || is_annotation(&key) {
                continue;
            }
            let joined = self.joined(&key, known, new, depth)?;
            all.insert(key, joined);
        }
        Some(())
    }

    /// A rule that holds if both of two rules do.
    fn joined(&mut self, key: &str, known: &Value, new: Value, depth: usize) -> Option<Value> {
        Some(match key {
            "type" if *known == "number" && new == "integer" => new,
            "type" if *known == "integer" && new == "number" => known.clone(),
            "uniqueItems" => true.into(),
            _ if key.starts_with("min") || key.starts_with("max") => {
                let is_new_higher = known.as_f64() < new.as_f64();
                if is_new_higher == key.starts_with("min") {
                    new
                } else {
                    known.clone()
                }
            }
            "enum" => {
                let mut both = known.as_array()?.clone();
                both.retain(|value| new.as_array().is_some_and(|new| new.contains(value)));
                Some(both).filter(|both| !both.is_empty())?.into()
            }
            "required" => [known.as_array()?.as_slice(), new.as_array()?].concat().into(),
            "items" => self.flat(&json!({ "allOf": [known, new] }), depth + 1)?.into(),
            "properties" => {
                let mut all = known.as_object()?.clone();
                for (name, new) in new.as_object()? {
                    let joined = match all.get(name) {
                        Some(known) if is_weaker(known, new) => new.clone(),
                        Some(known) if is_weaker(new, known) => continue,
                        Some(known) => {
                            self.conflicts = true;
                            self.flat(&json!({ "allOf": [known, new] }), depth + 1)?.into()
                        }
                        None => new.clone(),
                    };
                    all.insert(name.clone(), joined);
                }
                all.into()
            }
            _ => return None,
        })
    }
}
