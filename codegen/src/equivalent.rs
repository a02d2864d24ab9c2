//! Replaces constructs with equivalent ones, so that the readers handle only one form of each.

use codegen_runtime::Format;
use serde_json::{Map, Value, json};

use crate::keywords::{ANNOTATIONS, OF_TYPES, is_annotation, is_json, is_of_another_type, is_rule_of_a_type};
use crate::node::{METHODS, escaped, members};
use crate::openapi_3_1;
use crate::places::{self, Kind};

/// Replaces forms by equivalent ones.
pub fn simplified(document: &mut Value) {
    places::change(document, |value, kind| match (value, kind) {
        (Value::Object(members), Kind::Schema) => schema(members),
        (Value::Object(members), _) => content(members, kind),
        _ => {}
    });
}

/// Keeps only the first of `media_types` that a body or a response with several has, by its name or in a range such as
/// `*/*`. A range with a schema that is not text becomes the media type.
pub fn choose(document: &mut Value, media_types: &[String]) {
    let plain = |name: &str| name.split(';').next().unwrap_or_default().trim().to_lowercase();
    let holds = |range: &str, wanted: &str| {
        let kind = plain(range).strip_suffix("/*").map(|kind| kind.replace('*', ""));
        kind.is_some_and(|kind| kind.is_empty() || plain(wanted).starts_with(&format!("{kind}/")))
    };
    places::change(document, |value, _| {
        let Some(content) = value.get_mut("content").and_then(Value::as_object_mut) else {
            return;
        };
        let find = |fits: &dyn Fn(&str, &str) -> bool| {
            let place = |wanted: &String| content.keys().position(|name| fits(name, wanted));
            media_types.iter().find_map(|wanted| Some((place(wanted)?, wanted)))
        };
        let named = find(&|name, wanted| plain(name) == plain(wanted));
        let Some((index, wanted)) = named.or_else(|| find(&holds)) else {
            return;
        };
        let media = content.values().nth(index).cloned().unwrap_or_default();
        let is_text = media
            .get("schema")
            .is_none_or(|schema| schema.get("type").is_some_and(|ty| ty == "string"));
        if named.is_none() && !is_text {
            *content = Map::from_iter([(wanted.clone(), media)]);
        } else {
            let mut count = 0..;
            content.retain(|_, _| count.next() == Some(index));
        }
    });
}

/// Removes webhooks and callbacks, which are requests that the server sends, and returns their pointers.
pub fn without_own_requests(document: &mut Value) -> Vec<String> {
    let mut removed = Vec::new();
    let mut remove = |holder: Option<&mut Value>, at: &str, key: &str| {
        let all = holder.and_then(|holder| holder.as_object_mut()?.shift_remove(key));
        let names = members(all.as_ref()).map(|(name, _)| format!("{at}/{key}/{}", escaped(name)));
        removed.extend(names);
    };
    remove(Some(document), "#", "webhooks");
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    for (path, item) in paths.into_iter().flatten() {
        for method in METHODS {
            let at = format!("#/paths/{}/{method}", escaped(path));
            remove(item.get_mut(method), &at, "callbacks");
        }
    }
    // Those that are shared are no requests by themselves.
    if let Some(Value::Object(components)) = document.get_mut("components") {
        components.shift_remove("callbacks");
    }
    removed
}

fn schema(members: &mut Map<String, Value>) {
    if members.contains_key("$ref") {
        members.retain(|key, _| !is_ignored_beside_a_reference(key));
        // OpenAPI 3.0 ignores a default here, but it does not change which values are valid.
        if members.len() == 2 && members.contains_key("default") {
            openapi_3_1::reference(members);
        }
        return;
    }
    annotating_parts(members);
    // OpenAPI 3.0 does not have this keyword, but its meaning is clear.
    openapi_3_1::constant(members);
    // Beside other rules, one alternative that allows any value restricts nothing.
    if members.contains_key("allOf") {
        members.retain(|key, value| !["oneOf", "anyOf"].contains(&key.as_str()) || *value != json!([{}]));
    }
    rules_of_alternatives(members);
    if !members.contains_key("type")
        && let Some(ty) = intended_type(members)
    {
        members.insert("type".into(), ty.into());
    }
    if let Some(ty) = members.get("type").and_then(Value::as_str).map(str::to_string) {
        members.retain(|key, _| !is_of_another_type(key, &ty));
        values(members, &ty);
        if ty == "array" && !members.contains_key("enum") {
            members.entry("items").or_insert_with(|| json!({}));
        }
    }
}

/// Moves rules beside alternatives into those that have the type to which the rules apply.
fn rules_of_alternatives(members: &mut Map<String, Value>) {
    let keyword = ["oneOf", "anyOf"].into_iter().find(|key| members.contains_key(*key));
    let Some(keyword) = keyword.filter(|_| !members.contains_key("type")) else {
        return;
    };
    let Some(Value::Array(mut alternatives)) = members.get(keyword).cloned() else {
        return;
    };
    let is_rule = |key: &str| is_rule_of_a_type(key) && !OF_TYPES[0].1.contains(&key);
    let (rules, others): (Map<_, _>, Map<_, _>) = members.clone().into_iter().partition(|(key, _)| is_rule(key));
    for alternative in &mut alternatives {
        let ty = alternative.get("type").and_then(Value::as_str).map(str::to_string);
        let (Some(ty), Some(own)) = (ty, alternative.as_object_mut()) else {
            return;
        };
        for (key, value) in rules.iter().filter(|(key, _)| !is_of_another_type(key, &ty)) {
            if own.insert(key.clone(), value.clone()).is_some_and(|old| old != *value) {
                return;
            }
        }
    }
    *members = others;
    members.insert(keyword.into(), alternatives.into());
}

/// Removes values of an enumeration that have another type and are never valid, and rules that all other values follow.
fn values(members: &mut Map<String, Value>, ty: &str) {
    let Some(Value::Array(mut values)) = members.get("enum").cloned() else {
        return;
    };
    let is_of_type = |value: &Value| match ty {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => true,
    };
    let may_be_null = members.get("nullable") == Some(&Value::Bool(true));
    values.retain(|value| is_of_type(value) || value.is_null() && may_be_null);
    if values.is_empty() {
        return;
    }
    let length = |value: &Value| value.as_str().map(|text| text.chars().count() as u64);
    for (key, is_kept) in [("minLength", u64::ge as fn(&u64, &u64) -> bool), ("maxLength", u64::le)] {
        if let Some(limit) = members.get(key).and_then(Value::as_u64)
            && values.iter().filter_map(length).all(|length| is_kept(&length, &limit))
        {
            members.shift_remove(key);
        }
    }
    members.insert("enum".into(), values.into());
}

/// Removes empty content of a response, and gives JSON without a schema the schema of any value. A parameter without a
/// type is text.
fn content(holder: &mut Map<String, Value>, kind: Kind) {
    if kind == Kind::Parameter && holder.get("in").is_some_and(|place| place == "query") {
        or_list(holder);
    }
    if let (Kind::Parameter, Some(schema)) = (kind, holder.get_mut("schema")) {
        let untyped = match schema.get("items").is_some() {
            true => &mut schema["items"],
            false => schema,
        };
        if let Value::Object(members) = untyped
            && members.keys().all(|key| is_annotation(key))
        {
            members.insert("type".into(), "string".into());
        }
    }
    let Some(content) = holder.get_mut("content").and_then(Value::as_object_mut) else {
        return;
    };
    if content.is_empty() && kind == Kind::Response {
        holder.shift_remove("content");
        return;
    }
    for (_, media) in content.iter_mut().filter(|(media_type, _)| is_json(media_type)) {
        if let Some(media) = media.as_object_mut() {
            media.entry("schema").or_insert_with(|| json!({}));
        }
    }
}

/// Replaces the alternatives of a schema and a list of it by the list, if a query repeats the name for each item: one item is
/// then a list, too.
fn or_list(parameter: &mut Map<String, Value>) {
    let is_usual = |(key, usual): (&str, Value)| parameter.get(key).is_none_or(|value| *value == usual);
    let schema = parameter.get("schema").and_then(Value::as_object);
    let schema = schema.filter(|schema| schema.len() == 1);
    let alternatives = schema.and_then(|schema| schema.get("oneOf").or(schema.get("anyOf"))?.as_array());
    let Some([one, other]) = alternatives.map(Vec::as_slice) else {
        return;
    };
    let is_list = |(list, item): &(&Value, &Value)| list["type"] == "array" && list.get("items") == Some(item);
    let list = [(one, other), (other, one)].into_iter().find(is_list);
    let list = list.map(|(list, _)| list.clone());
    let mut usual = [("style", "form".into()), ("explode", true.into())].into_iter();
    if let Some(list) = list.filter(|_| usual.all(is_usual)) {
        parameter.insert("schema".into(), list);
    }
}

/// Whether a member beside a `$ref`, which OpenAPI 3.0 ignores, does not change which values are valid.
fn is_ignored_beside_a_reference(key: &str) -> bool {
    let matters = ["nullable", "default", "readOnly", "writeOnly"];
    key.starts_with("x-")
        || ["summary", "examples", "type"].contains(&key)
        || ANNOTATIONS.contains(&key) && !matters.contains(&key)
}

/// Moves the annotations of those parts of an `allOf` that have nothing else to the schema itself. The other parts keep
/// their indexes.
fn annotating_parts(members: &mut Map<String, Value>) {
    let Some(Value::Array(mut parts)) = members.get_mut("allOf").map(Value::take) else {
        return;
    };
    let before = parts.len();
    for part in parts.iter_mut().filter_map(Value::as_object_mut) {
        if part.keys().all(|key| is_annotation(key)) {
            for (key, value) in std::mem::take(part) {
                members.entry(key).or_insert(value);
            }
        }
    }
    while parts.last().is_some_and(|part| *part == json!({})) {
        parts.pop();
    }
    match parts.is_empty() && before > 0 {
        true => drop(members.shift_remove("allOf")),
        false => drop(members.insert("allOf".into(), parts.into())),
    }
}

/// The type to which the rules of a schema apply, if it is only one. Strictly, a schema without a type also accepts all
/// values of other types, but authors do not intend that.
fn intended_type(members: &Map<String, Value>) -> Option<&'static str> {
    let alternatives = ["oneOf", "anyOf", "not"].iter().any(|key| members.contains_key(*key));
    let of_rules = |keys: &[&str]| keys.iter().any(|key| members.contains_key(*key));
    let mut types = OF_TYPES.iter().filter(|(_, keys)| of_rules(keys)).map(|(ty, _)| *ty);
    if let (Some(one), None) = (types.next(), types.next()) {
        return (one == "object" || !alternatives && !members.contains_key("allOf")).then_some(one);
    }
    let has_others = alternatives || members.contains_key("allOf") || members.contains_key("enum");
    if let (Some(format), false) = (members.get("format").and_then(Value::as_str), has_others) {
        return type_of_format(format);
    }
    let values = members.get("enum").and_then(Value::as_array)?;
    let mut types = values.iter().filter(|value| !value.is_null()).map(openapi_3_1::type_of);
    let first = types.next()??;
    types.all(|ty| ty == Some(first)).then_some(first)
}

fn type_of_format(format: &str) -> Option<&'static str> {
    match format {
        "int32" | "int64" => Some("integer"),
        "float" | "double" => Some("number"),
        "date-time" | "date" | "uuid" | "byte" => Some("string"),
        other => Format::named(other).map(|_| "string"),
    }
}
