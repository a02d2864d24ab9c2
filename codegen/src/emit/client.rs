//! The client, by progenitor.

use std::collections::BTreeMap;

use heck::ToUpperCamelCase;
use openapiv3::OpenAPI;
use proc_macro2::TokenStream;
use progenitor::{GenerationSettings, Generator, HooksMode, InterfaceStyle};
use quote::quote;
use schemars::schema::SchemaObject;
use serde_json::{Value, json};

use crate::Problem;
use crate::lint;
use crate::load::Document;
use crate::model::Api;

pub(super) fn tokens(document: &Document, api: &Api, root: &TokenStream) -> Result<TokenStream, Problem> {
    if let Some(problem) = lint::client(api).into_iter().next() {
        return Err(document.positions.locate(&document.path, problem));
    }
    let openapi = openapi(document, api)?;
    let mut settings = GenerationSettings::new();
    settings
        .with_interface(InterfaceStyle::Builder)
        // What signs, retries and counts lives beside the generated code: `hooks::Hooks` and its
        // `impl ClientHooks<Hooks> for Client`.
        .with_inner_type(quote! { #root::hooks::Hooks })
        .with_hooks(HooksMode::Expected);
    for schema in decimals(&document.value) {
        settings.with_conversion(schema, "::rust_decimal::Decimal", std::iter::empty());
    }
    // Some of what progenitor cannot do, it asserts.
    let generate = || Generator::new(&settings).generate_tokens(&openapi);
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(generate)) {
        Ok(Ok(tokens)) => Ok(tokens),
        Ok(Err(error)) => Err(Problem::Client(error.to_string())),
        Err(_) => Err(Problem::Client("progenitor stopped, and has printed at what".into())),
    }
}

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

/// The document as progenitor reads it, with names that do not meet those of its own.
fn openapi(document: &Document, api: &Api) -> Result<OpenAPI, Problem> {
    let mut value = document.value.clone();
    for operation in &api.operations {
        if CLIENTS_OWN.contains(&operation.id.as_str()) {
            let mut id = format!("{}_operation", operation.id);
            while api.operations.iter().any(|other| other.id == id) {
                id.push('_');
            }
            let pointer = operation.pointer.trim_start_matches('#');
            if let Some(place) = value.pointer_mut(&format!("{pointer}/operationId")) {
                *place = id.into();
            }
        }
    }
    let mut named: BTreeMap<String, Value> = BTreeMap::new();
    if let Some(schemas) = value.pointer("/components/schemas").and_then(Value::as_object) {
        named.extend(schemas.keys().map(|name| (name.to_upper_camel_case(), Value::Null)));
    }
    untitled(&mut value, &mut Vec::new(), &mut named);
    serde_json::from_value(value).map_err(|error| Problem::Client(error.to_string()))
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

/// Every spelling of a decimal amount in the document, so that each becomes a `Decimal`.
fn decimals(document: &Value) -> Vec<SchemaObject> {
    let mut found: Vec<SchemaObject> = Vec::new();
    collect(document, &mut found);
    found
}

fn collect(value: &Value, found: &mut Vec<SchemaObject>) {
    match value {
        Value::Object(members) => {
            let is_decimal =
                members.get("type") == Some(&json!("string")) && members.get("format") == Some(&json!("decimal"));
            if is_decimal {
                // progenitor compares everything but the annotations, extensions included.
                let told =
                    |key: &&String| ["type", "format", "pattern"].contains(&key.as_str()) || key.starts_with("x-");
                let schema: Value = members
                    .iter()
                    .filter(|(key, _)| told(key))
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                if let Ok(schema) = serde_json::from_value::<SchemaObject>(schema)
                    && !found.contains(&schema)
                {
                    found.push(schema);
                }
            }
            members.values().for_each(|member| collect(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}
