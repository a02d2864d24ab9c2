//! Properties of every operation and of generated data: paging, privacy, and the separation of tenants.

// Tests report failures by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod hostile_requests;
mod inspectors_see;
mod paging;
mod privacy_table;
mod tenant_cross_product;

use std::collections::BTreeSet;

use partner_api_tests::contract::Contract;
use serde_json::Value;

/// Collects the text fields of a schema, with `*` for each index.
fn text_fields(contract: &'static Contract, schema: &'static Value, path: &str, found: &mut BTreeSet<String>) {
    let schema = contract.resolved(schema);
    match schema["type"].as_str() {
        Some("string") => {
            found.insert(path.to_owned());
        }
        Some("array") => text_fields(contract, &schema["items"], &format!("{path}/*"), found),
        _ => {
            for (name, member) in schema["properties"].as_object().into_iter().flatten() {
                text_fields(contract, member, &format!("{path}/{name}"), found);
            }
        }
    }
}

/// Collects the texts of a response, each with its field.
fn texts(value: &Value, path: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                texts(member, &format!("{path}/{name}"), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, &format!("{path}/*"), found)),
        Value::String(text) => found.push((path.to_owned(), text.clone())),
        _ => {}
    }
}
