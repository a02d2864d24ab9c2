//! Components for schemas that have none: parts to which a reference points, and the alternatives of a base object.

use std::collections::BTreeMap;

use heck::ToUpperCamelCase;
use serde_json::{Map, Value, json};

use crate::naming::numbered;
use crate::node::{escaped, members, schemas, text_of};
use crate::places::{self, Kind};
use crate::read::target_of_mapping;

const SCHEMAS: &str = "#/components/schemas/";

/// Pairs of pointers: where a value is now, and where it was.
pub type Moved = Vec<(String, String)>;

/// Replaces path items that are references by what they refer to.
pub fn path_items(document: &mut Value, moved: &mut Moved) {
    let mut found = Vec::new();
    for (path, item) in members(document.get("paths")) {
        let reference = text_of(item, "$ref").unwrap_or_default();
        let target = reference.strip_prefix('#').and_then(|place| document.pointer(place));
        if let Some(target) = target.filter(|target| target.get("$ref").is_none()) {
            moved.push((format!("#/paths/{}", escaped(path)), reference.to_string()));
            found.push((path.clone(), target.clone()));
        }
    }
    for (path, item) in found {
        document["paths"][path] = item;
    }
}

/// Moves schemas inside others to which references point to components.
pub fn parts(document: &mut Value, moved: &mut Moved) {
    let mut places: Vec<String> = Vec::new();
    for (pointer, _) in places::all(document) {
        let reference = document.pointer(&pointer).and_then(|value| text_of(value, "$ref"));
        places.extend(reference.filter(|it| is_part(it)).map(str::to_string));
    }
    // The innermost first, so that the pointers of those around it stay valid.
    places.sort_by_key(|place| (std::cmp::Reverse(place.len()), place.clone()));
    places.dedup();
    let mut names = BTreeMap::new();
    for place in places {
        let Some(target) = document.pointer_mut(&place[1..]).filter(|target| target.is_object()) else {
            continue;
        };
        let schema = target.take();
        let proposed = words(&place).concat();
        *target = json!({});
        let name = add(document, &proposed, schema);
        let reference = format!("{SCHEMAS}{name}");
        if let Some(target) = document.pointer_mut(&place[1..]) {
            *target = json!({ "$ref": reference });
        }
        moved.push((reference.clone(), place.clone()));
        names.insert(place, reference);
    }
    if !names.is_empty() {
        places::change(document, |value, _| refer(value, &names));
    }
}

fn refer(value: &mut Value, new: &BTreeMap<String, String>) {
    if let Some(Value::String(reference)) = value.get_mut("$ref")
        && let Some(new) = new.get(reference)
    {
        *reference = new.clone();
    }
}

/// Whether a pointer is that of a schema inside another value.
fn is_part(pointer: &str) -> bool {
    let tokens: Vec<&str> = pointer.split('/').collect();
    match tokens.as_slice() {
        ["#", "components" | "paths", _, _, .., around, last] => {
            ["properties", "allOf", "oneOf", "anyOf"].contains(around)
                || ["items", "additionalProperties", "not", "schema"].contains(last)
        }
        _ => false,
    }
}

/// The last two names in the pointer of a part.
fn words(pointer: &str) -> Vec<String> {
    let is_keyword = |token: &str| {
        "properties allOf oneOf anyOf schema schemas content responses"
            .split(' ')
            .any(|it| it == token)
    };
    let names = pointer.split('/').skip(2).filter(|token| !is_keyword(token));
    let names: Vec<String> = names.map(|name| name.to_upper_camel_case()).collect();
    names[names.len().saturating_sub(2)..].to_vec()
}

/// Adds a component schema, and returns its name.
pub fn add(document: &mut Value, proposed: &str, schema: Value) -> String {
    let is_taken =
        |name: &String| schemas(document).any(|(known, _)| known.to_upper_camel_case() == name.to_upper_camel_case());
    let mut names = numbered(proposed.to_string());
    let name = names.find(|name| !is_taken(name)).unwrap_or_default();
    insert(document, &name, schema);
    name
}

/// Inserts a component schema, also into a document without components.
pub fn insert(document: &mut Value, name: &str, schema: Value) {
    let mut holder = document.as_object_mut();
    for key in ["components", "schemas"] {
        let inner = holder.map(|members| members.entry(key).or_insert_with(|| json!({})));
        holder = inner.and_then(Value::as_object_mut);
    }
    if let Some(schemas) = holder {
        schemas.insert(name.to_string(), schema);
    }
}

/// Replaces each object with a `discriminator` by its alternatives: the schemas that have it in their `allOf`, and the
/// object itself. The discriminator of a value selects one of them.
pub fn bases(document: &mut Value, moved: &mut Moved) {
    let all = schemas(document).map(|(name, schema)| (name.clone(), schema.clone()));
    let all: Vec<(String, Value)> = all.collect();
    let is_base = |schema: &Value| {
        let is_union = schema.get("oneOf").is_some() || schema.get("anyOf").is_some();
        schema.get("discriminator").is_some() && !is_union
    };
    let mut renamed = BTreeMap::new();
    for (name, schema) in all.iter().filter(|(_, schema)| is_base(schema)) {
        let mut own = schema.clone();
        if let Some(members) = own.as_object_mut() {
            members.shift_remove("discriminator");
        }
        if inheriting(name, &all).is_empty() {
            document["components"]["schemas"][name] = own;
            continue;
        }
        let new = add(document, &format!("{name}Base"), own);
        moved.push((reference(&new), reference(name)));
        renamed.insert(reference(name), reference(&new));
    }
    if renamed.is_empty() {
        return;
    }
    for (name, schema) in all.iter().filter(|(name, _)| renamed.contains_key(&reference(name))) {
        document["components"]["schemas"][name] = alternatives(name, schema, &all, &renamed);
    }
    // Schemas that add members to a base object refer to the object rather than to its alternatives.
    for (pointer, kind) in places::all(document) {
        let Some(schema) = document.pointer_mut(&pointer).filter(|_| kind == Kind::Schema) else {
            continue;
        };
        let is_component = pointer.matches('/').count() == 3 && pointer.starts_with("/components");
        let has_members = schema.get("properties").is_some();
        if let Some(Value::Array(parts)) = schema.get_mut("allOf")
            && (is_component || has_members || parts.len() > 1)
        {
            parts.iter_mut().for_each(|part| refer(part, &renamed));
        }
    }
}

fn reference(name: &str) -> String {
    format!("{SCHEMAS}{}", escaped(name))
}

/// The schemas that have `base` in their `allOf`, directly or through others.
fn inheriting<'a>(base: &str, all: &'a [(String, Value)]) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    let mut next = vec![reference(base)];
    while let Some(around) = next.pop() {
        for (name, schema) in all {
            let mut parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
            let inherits = parts.any(|part| text_of(part, "$ref") == Some(&around));
            if inherits && name != base && !found.contains(&name.as_str()) {
                found.push(name);
                next.push(reference(name));
            }
        }
    }
    found
}

/// The union that replaces a base object.
fn alternatives(name: &str, schema: &Value, all: &[(String, Value)], renamed: &BTreeMap<String, String>) -> Value {
    let discriminator = &schema["discriminator"];
    let tag = discriminator["propertyName"].as_str().unwrap_or_default();
    let mut mapping = Map::new();
    for (value, target) in members(discriminator.get("mapping")) {
        let target = target_of_mapping(target.as_str().unwrap_or_default());
        mapping.insert(value.clone(), renamed.get(&target).cloned().unwrap_or(target).into());
    }
    let values = schema.pointer(&format!("/properties/{}", escaped(tag)));
    let named = values.and_then(|values| values.get("$ref").or(values.pointer("/allOf/0/$ref")));
    let named = named.and_then(|named| all.iter().find(|(known, _)| *named == reference(known)));
    let values = named.map(|(_, schema)| schema).or(values);
    let values = values.and_then(|values| values.get("enum"));
    let mut one_of = Vec::new();
    let heirs = inheriting(name, all).into_iter().map(|heir| (heir, true));
    for (known, is_inheriting) in heirs.chain([(name, false)]) {
        let target = reference(known);
        let target = renamed.get(&target).cloned().unwrap_or(target);
        let is_mapped = mapping.values().any(|mapped| *mapped == target);
        // The object itself is an alternative unless its own values say otherwise.
        if is_inheriting || is_mapped || values.is_none() {
            if !is_mapped {
                mapping.insert(known.to_string(), target.clone().into());
            }
            one_of.push(json!({ "$ref": target }));
        }
    }
    let mut union = json!({ "oneOf": one_of, "discriminator": { "propertyName": tag, "mapping": mapping } });
    for key in ["title", "description"] {
        if let Some(text) = schema.get(key) {
            union[key] = text.clone();
        }
    }
    union
}
