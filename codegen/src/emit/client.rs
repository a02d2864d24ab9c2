//! The client, by progenitor.

use proc_macro2::TokenStream;
use progenitor::{GenerationSettings, Generator, HooksMode, InterfaceStyle};
use quote::quote;
use schemars::schema::SchemaObject;
use serde_json::{Value, json};

use crate::Problem;
use crate::load::Document;

pub(super) fn tokens(document: &Document, root: &TokenStream) -> Result<TokenStream, Problem> {
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
    Generator::new(&settings)
        .generate_tokens(&document.openapi)
        .map_err(|error| Problem::Client(error.to_string()))
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
                let mut schema = json!({ "type": "string", "format": "decimal" });
                if let Some(pattern) = members.get("pattern") {
                    schema["pattern"] = pattern.clone();
                }
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
