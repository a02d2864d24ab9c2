//! The document as progenitor can read it: what it would assert or give one name, said in a way that it knows.

use std::collections::BTreeMap;

use heck::ToUpperCamelCase;
use serde_json::{Map, Value, json};
use syn::ext::IdentExt;

use super::client_names::StandIns;
use super::operation_prefix;
use crate::lint;
use crate::load::Document;
use crate::model::{Api, BodyContent, ListStyle, Operation, TypeDefinition};

/// What progenitor's client has functions for itself.
const CLIENTS_OWN: [&str; 9] = [
    "new",
    "new_with_client",
    "api_version",
    "baseurl",
    "client",
    "inner",
    "pre",
    "exec",
    "post",
];

/// The document for progenitor.
/// Names that it makes of others are replaced; the stand-ins are to be taken out of what it writes.
pub(super) fn openapi(document: &Document, api: &Api) -> (Value, StandIns) {
    let mut value = document.value.clone();
    for operation in &api.operations {
        body(&mut value, operation);
        named(&mut value, operation, api);
        responses(&mut value, operation);
        lists(&mut value, operation, api);
    }
    for definition in lint::hold_themselves(api) {
        extracted(&mut value, definition);
    }
    let mut named: BTreeMap<String, Value> = BTreeMap::new();
    if let Some(schemas) = value.pointer("/components/schemas").and_then(Value::as_object) {
        named.extend(schemas.keys().map(|name| (name.to_upper_camel_case(), Value::Null)));
    }
    untitled(&mut value, &mut Vec::new(), &mut named);
    let stand_ins = StandIns::put_into(&mut value);
    (value, stand_ins)
}

/// A body that progenitor knows no way to write is bytes that its caller wrote, with a content type that it says; every
/// kind of JSON is plain JSON.
fn body(document: &mut Value, operation: &Operation) {
    let at = format!("{}/requestBody", operation.pointer.trim_start_matches('#'));
    let Some(mut body) = document.pointer(&at).cloned() else {
        return;
    };
    let reference = body.get("$ref").and_then(Value::as_str);
    if let Some(target) = reference.and_then(|reference| document.pointer(reference.trim_start_matches('#'))) {
        body = target.clone();
    }
    let bytes = || json!({ "application/octet-stream": { "schema": { "type": "string", "format": "binary" } } });
    let content = body.get("content").and_then(Value::as_object);
    let Some((media_type, media)) = content.and_then(|content| content.iter().next()) else {
        return;
    };
    let content = match operation.body.as_ref().map(|body| &body.content) {
        Some(BodyContent::Multipart | BodyContent::Bytes) => bytes(),
        Some(BodyContent::Json(_)) if media_type != "application/json" => json!({ "application/json": media }),
        _ => return,
    };
    let is_multipart = matches!(&operation.body, Some(body) if matches!(body.content, BodyContent::Multipart));
    body["content"] = content;
    if let Some(place) = document.pointer_mut(&at) {
        *place = body;
    }
    if let (true, Some(place)) = (is_multipart, place(document, operation)) {
        let header = json!({
            "in": "header",
            "name": "content-type",
            "required": true,
            "description": "`multipart/form-data; boundary=…`, with what stands between the parts of the body",
            "schema": { "type": "string" },
        });
        let parameters = place.entry("parameters").or_insert_with(|| json!([]));
        parameters
            .as_array_mut()
            .into_iter()
            .for_each(|all| all.push(header.clone()));
    }
}

fn place<'v>(document: &'v mut Value, operation: &Operation) -> Option<&'v mut Map<String, Value>> {
    document
        .pointer_mut(operation.pointer.trim_start_matches('#'))?
        .as_object_mut()
}

/// Gives an operation a name that the client has no function of.
fn named(document: &mut Value, operation: &Operation, api: &Api) {
    let mut id = operation.id.clone();
    if CLIENTS_OWN.contains(&id.as_str()) {
        id = format!("{id}_operation");
        while api.operations.iter().any(|other| other.id == id) {
            id.push('_');
        }
    }
    if let Some(place) = place(document, operation) {
        place.insert("operationId".into(), id.into());
    }
}

/// Moves a schema that holds itself to where it has a name: progenitor would copy it into itself without end.
fn extracted(document: &mut Value, definition: &TypeDefinition) {
    let at = definition.pointer.trim_start_matches('#');
    let Some(schema) = document.pointer(at).filter(|schema| schema.is_object()).cloned() else {
        return;
    };
    let name = component(document, definition.ident.unraw().to_string(), schema);
    if let Some(place) = document.pointer_mut(at) {
        *place = json!({ "$ref": format!("#/components/schemas/{name}") });
    }
}

/// progenitor writes a list's name for each item: one that is written otherwise is the text that its caller writes.
fn lists(document: &mut Value, operation: &Operation, api: &Api) {
    let parameters = [
        &operation.path_parameters,
        &operation.query_parameters,
        &operation.header_parameters,
    ];
    for field in parameters.into_iter().flatten() {
        if field.list == Some(ListStyle::Repeated) || !api.is_list(&field.ty) {
            continue;
        }
        let at = field.pointer.trim_start_matches('#');
        let around = at.strip_suffix("/schema").unwrap_or(at);
        if let Some(parameter) = document.pointer_mut(around).and_then(Value::as_object_mut) {
            parameter.shift_remove("style");
            parameter.shift_remove("explode");
            parameter.insert("schema".into(), json!({ "type": "string" }));
        }
    }
}

/// What progenitor makes of a response.
#[derive(Clone, PartialEq)]
enum Kind {
    Nothing,
    Bytes,
    Json(Value),
}

/// progenitor has one type for all successes of an operation, and one for all its errors; to `default` it gives both.
fn responses(document: &mut Value, operation: &Operation) {
    let at = format!("{}/responses", operation.pointer.trim_start_matches('#'));
    let Some(mut all) = document.pointer(&at).and_then(Value::as_object).cloned() else {
        return;
    };
    for response in all.values_mut() {
        let reference = response.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|reference| document.pointer(reference.trim_start_matches('#')));
        if let Some(target) = target {
            *response = target.clone();
        }
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
        let schemas: Vec<&Value> = kinds
            .iter()
            .filter_map(|kind| match kind {
                Kind::Json(schema) => Some(schema),
                _ => None,
            })
            .collect();
        let content = match schemas.len() == kinds.len() {
            true => {
                let name = component(document, name, json!({ "oneOf": schemas }));
                json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{name}") } } })
            }
            // Whoever calls reads the bytes, or finds that there are none.
            false => json!({ "*/*": {} }),
        };
        for (_, response) in all.iter_mut().filter(|(status, _)| is_meant(status)) {
            response["content"] = content.clone();
        }
    }
    for range in ["4", "5"] {
        if all.contains_key(&format!("{range}XX")) {
            // progenitor asks for the range first; what it holds has one type anyway.
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
    let content = response.get("content").and_then(Value::as_object);
    let is_json = |name: &String| *name == "application/json" || name.starts_with("application/json;");
    match content.and_then(|content| content.iter().next()) {
        None => Kind::Nothing,
        Some((name, media)) if is_json(name) => Kind::Json(media.get("schema").cloned().unwrap_or_default()),
        Some(_) => Kind::Bytes,
    }
}

/// Adds a component schema; returns its name.
fn component(document: &mut Value, mut name: String, schema: Value) -> String {
    let is_taken = |document: &Value, name: &str| {
        let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
        schemas.is_some_and(|schemas| schemas.keys().any(|known| known.to_upper_camel_case() == name))
    };
    while is_taken(document, &name) {
        name.push_str("Of");
    }
    if !document["components"].is_object() {
        document["components"] = json!({});
    }
    if !document["components"]["schemas"].is_object() {
        document["components"]["schemas"] = json!({});
    }
    document["components"]["schemas"][&name] = schema;
    name
}

/// Takes titles away that would give a schema the name of another one: progenitor calls schemas what their titles say.
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
            for item in items {
                path.push(String::new());
                untitled(item, path, named);
                path.pop();
            }
        }
        _ => {}
    }
}
