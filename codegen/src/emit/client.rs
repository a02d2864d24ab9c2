//! The client, by progenitor.

use proc_macro2::TokenStream;
use progenitor::{GenerationSettings, Generator, HooksMode, InterfaceStyle};
use quote::quote;
use schemars::schema::SchemaObject;
use serde_json::{Value, json};

use crate::Problem;
use crate::load::Document;
use crate::model::Api;

pub(super) fn tokens(document: &Document, api: &Api, root: &TokenStream) -> Result<TokenStream, Problem> {
    if let Some(operation) = api.operations.iter().find(|operation| !operation.errors_alike) {
        let reason = "for a client, all errors of an operation need the same schema";
        let problem = Problem::refused(&format!("{}/responses", operation.pointer), reason);
        return Err(document.positions.locate(&document.path, problem));
    }
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
    let generate = || Generator::new(&settings).generate_tokens(&document.openapi);
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(generate)) {
        Ok(Ok(tokens)) => Ok(tokens),
        Ok(Err(error)) => Err(Problem::Client(error.to_string())),
        Err(_) => Err(Problem::Client("progenitor stopped, and has printed at what".into())),
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
