//! Changes to the document for progenitor, which would panic on some parts of it or generate conflicting names.

use std::collections::BTreeMap;

use heck::ToUpperCamelCase;
use serde_json::{Map, Value, json};
use syn::ext::IdentExt;

use super::client_names::{Placeholders, resolved};
use crate::hoist;
use crate::load::Document;
use crate::model::{Api, BodyContent, ListStyle, Operation, TypeDefinition, Types};
use crate::naming::operation_prefix;
use crate::node::{METHODS, escaped, members, schemas};

/// Methods of progenitor's client.
const CLIENT_METHODS: &str = "new new_with_client api_version baseurl client inner pre exec post";

/// Returns the document for progenitor, and the placeholders for names, which must be replaced in the generated code.
pub(super) fn openapi(document: &Document, api: &Api) -> (Value, Placeholders) {
    let mut value = document.value.clone();
    for operation in &api.operations {
        body(&mut value, operation);
        named(&mut value, operation, api);
        responses(&mut value, operation);
        lists(&mut value, operation, api);
    }
    cookies(&mut value);
    for definition in hold_themselves(api) {
        extracted(&mut value, definition);
    }
    let named = schemas(&value).map(|(name, _)| (name.to_upper_camel_case(), Value::Null));
    let mut named: BTreeMap<String, Value> = named.collect();
    untitled(&mut value, &mut Vec::new(), &mut named);
    let placeholders = Placeholders::insert_into(&mut value);
    (value, placeholders)
}

/// Replaces bodies that progenitor cannot encode with bytes that the caller encodes and whose content type it sets. All
/// JSON media types become `application/json`.
fn body(document: &mut Value, operation: &Operation) {
    let at = format!("{}/requestBody", operation.pointer.trim_start_matches('#'));
    let Some(mut body) = document.pointer(&at).map(|body| resolved(document, body).clone()) else {
        return;
    };
    let bytes = || json!({ "application/octet-stream": { "schema": { "type": "string", "format": "binary" } } });
    let Some((media_type, media)) = members(body.get("content")).next() else {
        return;
    };
    let content = match operation.content() {
        Some(BodyContent::Multipart | BodyContent::Bytes) => bytes(),
        Some(BodyContent::Json(_)) if media_type != "application/json" => json!({ "application/json": media }),
        _ => return,
    };
    let is_json = matches!(operation.content(), Some(BodyContent::Json(_)));
    let about = match media_type.as_str() {
        _ if is_json => None,
        "application/octet-stream" => None,
        "multipart/form-data" => {
            Some("`multipart/form-data; boundary=…`, with the boundary between the parts of the body".to_string())
        }
        other => Some(format!("`{other}`")),
    };
    body["content"] = content;
    if let Some(place) = document.pointer_mut(&at) {
        *place = body;
    }
    if let (Some(about), Some(place)) = (about, place(document, operation)) {
        let header = json!({
            "in": "header",
            "name": "content-type",
            "required": true,
            "description": about,
            "schema": { "type": "string" },
        });
        if let Value::Array(all) = place.entry("parameters").or_insert_with(|| json!([])) {
            all.push(header);
        }
    }
}

fn place<'v>(document: &'v mut Value, operation: &Operation) -> Option<&'v mut Map<String, Value>> {
    let place = document.pointer_mut(operation.pointer.trim_start_matches('#'));
    place?.as_object_mut()
}

/// Renames an operation whose name is a method of the client.
fn named(document: &mut Value, operation: &Operation, api: &Api) {
    let mut id = operation.id.clone();
    if CLIENT_METHODS.split(' ').any(|known| known == id) {
        id = format!("{id}_operation");
        while api.operations.iter().any(|other| other.id == id) {
            id.push('_');
        }
    }
    if let Some(place) = place(document, operation) {
        place.insert("operationId".into(), id.into());
    }
}

/// Moves a recursive inline schema to the components, because progenitor would expand it forever.
fn extracted(document: &mut Value, definition: &TypeDefinition) {
    let at = definition.pointer.trim_start_matches('#');
    let Some(schema) = document.pointer(at).filter(|schema| schema.is_object()).cloned() else {
        return;
    };
    let name = hoist::add(document, &definition.ident.unraw().to_string(), schema);
    if let Some(place) = document.pointer_mut(at) {
        *place = json!({ "$ref": format!("#/components/schemas/{name}") });
    }
}

/// Replaces parameters that are not scalars with strings that the caller formats, except lists that repeat the
/// parameter's name for each item, which is progenitor's only encoding.
fn lists(document: &mut Value, operation: &Operation, api: &Api) {
    for field in operation.parameters.iter().flatten() {
        if field.list == Some(ListStyle::Repeated) && api.is_list(&field.ty) || api.is_scalar_parameter(field) {
            continue;
        }
        let at = field.pointer.trim_start_matches('#');
        let around = at.rsplit_once("/content/").map_or(at, |(around, _)| around);
        let around = around.strip_suffix("/schema").unwrap_or(around);
        if let Some(parameter) = document.pointer_mut(around).and_then(Value::as_object_mut) {
            parameter.retain(|key, _| !["style", "explode", "content"].contains(&key.as_str()));
            parameter.insert("schema".into(), json!({ "type": "string" }));
        }
    }
}

/// Replaces the parameters in cookies, which progenitor rejects, with the header that contains all of them.
fn cookies(document: &mut Value) {
    let mut lists = Vec::new();
    for (path, item) in members(document.get("paths")) {
        let of_methods = METHODS.map(|method| (format!("/{method}"), &item[method]));
        for (member, holder) in of_methods.into_iter().chain([(String::new(), item)]) {
            let all = holder["parameters"].as_array().into_iter().flatten();
            let all = all.map(|one| (one, resolved(document, one)));
            let (cookies, others): (Vec<_>, Vec<_>) = all.partition(|(_, one)| one["in"] == "cookie");
            if cookies.is_empty() {
                continue;
            }
            let names = cookies.iter().map(|(_, one)| one["name"].as_str().unwrap_or_default());
            let names: Vec<String> = names.map(|name| format!("`{name}=…`")).collect();
            let header = json!({
                "in": "header",
                "name": "cookie",
                "required": cookies.iter().any(|(_, one)| one["required"] == true),
                "description": format!("{}, separated by `; `", names.join(", ")),
                "schema": { "type": "string" },
            });
            let new: Value = others.into_iter().map(|(one, _)| one.clone()).chain([header]).collect();
            lists.push((format!("/paths/{}{member}/parameters", escaped(path)), new));
        }
    }
    for (at, new) in lists {
        document.pointer_mut(&at).into_iter().for_each(|all| *all = new.clone());
    }
}

/// progenitor's representation of a response.
#[derive(Clone, PartialEq)]
enum Kind {
    Nothing,
    Bytes,
    Json(Value),
}

/// Unifies responses, because progenitor has one type for all successes of an operation and one for all errors.
/// `default` counts as both.
fn responses(document: &mut Value, operation: &Operation) {
    let at = format!("{}/responses", operation.pointer.trim_start_matches('#'));
    let Some(mut all) = document.pointer(&at).and_then(Value::as_object).cloned() else {
        return;
    };
    for response in all.values_mut() {
        *response = resolved(document, response).clone();
    }
    let is_success = |status: &str| status == "101" || status.starts_with('2');
    let is_error = |status: &str| status.starts_with(['4', '5']);
    if all.keys().any(|status| is_success(status) || status.starts_with('3'))
        && let Some(default) = all.shift_remove("default")
    {
        for range in ["4XX", "5XX"] {
            all.entry(range).or_insert_with(|| default.clone());
        }
    }
    let mut changed = false;
    let prefix = operation_prefix(&operation.name);
    let success = (&is_success as &dyn Fn(&str) -> bool, format!("{prefix}Success"));
    for (is_meant, name) in [success, (&is_error, format!("{prefix}Failure"))] {
        let mut kinds: Vec<Kind> = Vec::new();
        for (_, response) in all.iter().filter(|(status, _)| is_meant(status)) {
            let kind = kind(response);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        if kinds.len() < 2 {
            continue;
        }
        changed = true;
        let schemas = kinds.iter().filter_map(|kind| match kind {
            Kind::Json(schema) => Some(schema),
            _ => None,
        });
        let schemas: Vec<&Value> = schemas.collect();
        let content = match schemas.len() == kinds.len() {
            true => {
                let name = hoist::add(document, &name, json!({ "oneOf": schemas }));
                json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{name}") } } })
            }
            // The caller reads the bytes, which may be empty.
            false => json!({ "*/*": {} }),
        };
        for (_, response) in all.iter_mut().filter(|(status, _)| is_meant(status)) {
            response["content"] = content.clone();
        }
    }
    for range in ["2", "3", "4", "5"] {
        if all.contains_key(&format!("{range}XX")) {
            // progenitor checks the range first, but its content has the same type.
            let before = all.len();
            all.retain(|status, _| !status.starts_with(range) || status.ends_with("XX"));
            changed |= all.len() < before;
        }
    }
    let is_whole = document.pointer(&at).and_then(|it| it.get("default")).is_some() && !all.contains_key("default");
    if (changed || is_whole)
        && let Some(place) = document.pointer_mut(&at)
    {
        *place = all.into();
    }
}

fn kind(response: &Value) -> Kind {
    let is_json = |name: &String| *name == "application/json" || name.starts_with("application/json;");
    match members(response.get("content")).next() {
        None => Kind::Nothing,
        Some((name, media)) if is_json(name) => Kind::Json(media.get("schema").cloned().unwrap_or_default()),
        Some(_) => Kind::Bytes,
    }
}

/// Removes titles that would give a schema the name of another one, because progenitor uses titles as names.
fn untitled(value: &mut Value, path: &mut Vec<String>, named: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(members) => {
            let is_named =
                matches!(path.as_slice(), [first, second, _] if first == "components" && second == "schemas");
            let is_member = path.last().is_some_and(|last| last == "properties");
            if !path.is_empty()
                && !is_named
                && !is_member
                && let Some(title) = members.get("title").and_then(Value::as_str)
            {
                let name = title.to_upper_camel_case();
                let schema = Value::Object(members.clone());
                if *named.entry(name).or_insert_with(|| schema.clone()) != schema {
                    members.shift_remove("title");
                }
            }
            for (key, value) in members {
                let is_data = ["example", "default", "enum"].contains(&key.as_str());
                if is_data || path.is_empty() && !["components", "paths"].contains(&key.as_str()) {
                    continue;
                }
                path.push(key.clone());
                untitled(value, path, named);
                path.pop();
            }
        }
        Value::Array(items) => {
            path.push(String::new());
            items.iter_mut().for_each(|item| untitled(item, path, named));
            path.pop();
        }
        _ => {}
    }
}

/// The inline schemas that contain themselves without a named schema in between.
fn hold_themselves(api: &Api) -> Vec<&TypeDefinition> {
    let inline = || api.types.iter().filter(|definition| definition.inline);
    let types = Types::of(inline());
    let reached = |it: &TypeDefinition| types.reached(it.mentioned(), TypeDefinition::mentioned);
    let mut all: Vec<_> = inline().filter(|it| reached(it).contains(&it.ident)).collect();
    all.sort_by_key(|it| it.ident.to_string());
    all
}
