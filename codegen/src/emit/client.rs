//! The client, by progenitor.

use heck::ToUpperCamelCase;
use openapiv3::OpenAPI;
use proc_macro2::{Group, TokenStream, TokenTree};
use progenitor::{GenerationSettings, Generator, HooksMode, InterfaceStyle};
use quote::quote;
use schemars::schema::SchemaObject;
use serde_json::{Value, json};

use super::client_document::openapi;
use super::client_names::without_composed_defaults;
use super::decimal_numbers;
use crate::Problem;
use crate::load::Document;
use crate::model::{Api, BodyContent, Operation};

pub(super) fn tokens(document: &Document, api: &Api, root: &TokenStream) -> Result<TokenStream, Problem> {
    let (mut value, stand_ins) = openapi(document, api);
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
    let has_numbers = decimal_numbers::put_into(&mut settings, &mut value);
    let tokens = match generated(&settings, &value) {
        Err(progenitor::Error::TypeError(_)) => {
            without_composed_defaults(&mut value);
            generated(&settings, &value)
        }
        first => first,
    };
    let tokens = tokens.map_err(|error| Problem::Client(error.to_string()))?;
    let mut tokens = corrected(stand_ins.taken_out_of(tokens), has_default(document));
    if has_numbers {
        tokens = decimal_numbers::named(tokens);
    }
    Ok(
        match api.operations.iter().any(|operation| has_list_in_form(operation, api)) {
            true => with_lists_in_forms(tokens),
            false => tokens,
        },
    )
}

fn has_list_in_form(operation: &Operation, api: &Api) -> bool {
    match operation.body.as_ref().map(|body| &body.content) {
        Some(BodyContent::Form(form)) => form.fields.iter().any(|field| api.is_list(&field.ty)),
        _ => false,
    }
}

/// progenitor writes forms by a library that refuses lists when it comes to one.
fn with_lists_in_forms(tokens: TokenStream) -> TokenStream {
    let tokens = written_by_own_function(tokens);
    quote! {
        #tokens

        /// A form, in which each item of a list has the list's name.
        fn written_form<T: serde::Serialize>(body: &T) -> Result<String, String> {
            let value = serde_json::to_value(body).map_err(|error| error.to_string())?;
            let mut url = reqwest::Url::parse("form:/").map_err(|error| error.to_string())?;
            for (name, value) in value.as_object().into_iter().flatten() {
                let items = match value {
                    serde_json::Value::Array(items) => items.as_slice(),
                    serde_json::Value::Null => &[],
                    one => std::slice::from_ref(one),
                };
                for item in items {
                    let text = item.as_str().map_or_else(|| item.to_string(), str::to_string);
                    url.query_pairs_mut().append_pair(name, &text);
                }
            }
            Ok(url.query().unwrap_or_default().to_string())
        }
    }
}

fn written_by_own_function(tokens: TokenStream) -> TokenStream {
    let mut out: Vec<TokenTree> = Vec::new();
    let mut all = tokens.into_iter();
    while let Some(tree) = all.next() {
        match tree {
            TokenTree::Ident(name) if name == "form_urlencoded" => {
                // `(&body)?`
                all.nth(1);
                out.extend(quote! {
                    header(
                        ::reqwest::header::CONTENT_TYPE,
                        ::reqwest::header::HeaderValue::from_static("application/x-www-form-urlencoded"),
                    )
                    .body(super::written_form(&body).map_err(Error::InvalidRequest)?)
                });
            }
            TokenTree::Group(group) => {
                out.push(Group::new(group.delimiter(), written_by_own_function(group.stream())).into());
            }
            other => out.push(other),
        }
    }
    out.into_iter().collect()
}

fn generated(settings: &GenerationSettings, document: &Value) -> Result<TokenStream, progenitor::Error> {
    let openapi: OpenAPI = serde_json::from_value(document.clone())
        .map_err(|error| progenitor::Error::UnexpectedFormat(error.to_string()))?;
    // Some of what progenitor cannot do, it asserts.
    let generate = || Generator::new(settings).generate_tokens(&openapi);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(generate)).unwrap_or_else(|_| {
        let said = "it stopped, and has printed at what";
        Err(progenitor::Error::UnexpectedFormat(said.into()))
    })
}

/// Whether a schema is called like the trait that progenitor's code names without a path.
fn has_default(document: &Document) -> bool {
    let schemas = document.value.pointer("/components/schemas").and_then(Value::as_object);
    schemas.is_some_and(|schemas| schemas.keys().any(|name| name.to_upper_camel_case() == "Default"))
}

/// Two things that progenitor writes and that do not compile: reqwest has a function for each method but OPTIONS, and
/// beside a schema `Default` the trait needs its path.
fn corrected(tokens: TokenStream, has_default: bool) -> TokenStream {
    let mut out: Vec<TokenTree> = Vec::new();
    let mut all = tokens.into_iter().peekable();
    while let Some(tree) = all.next() {
        match tree {
            TokenTree::Ident(name) if name == "options" && is_call_of_the_client(&out) => match all.next() {
                Some(TokenTree::Group(arguments)) => {
                    let url = arguments.stream();
                    out.extend(quote! { request(::reqwest::Method::OPTIONS, #url) });
                }
                other => out.extend([TokenTree::Ident(name)].into_iter().chain(other)),
            },
            TokenTree::Ident(name) if name == "default" && has_default && is_bare_default(&out) => {
                out.truncate(out.len() - 3);
                out.extend(quote! { ::std::default::Default::default });
            }
            TokenTree::Group(group) => {
                out.push(Group::new(group.delimiter(), corrected(group.stream(), has_default)).into());
            }
            other => out.push(other),
        }
    }
    out.into_iter().collect()
}

/// Whether `Default::` was last, without a path before it.
fn is_bare_default(before: &[TokenTree]) -> bool {
    let last: Vec<String> = before.iter().rev().take(5).map(ToString::to_string).collect();
    match last.as_slice() {
        [one, two, name, rest @ ..] => one == ":" && two == ":" && name == "Default" && *rest != [":", ":"],
        _ => false,
    }
}

/// Whether `client.client.` or `self.client.` was last.
fn is_call_of_the_client(before: &[TokenTree]) -> bool {
    let [.., client, point] = before else { return false };
    client.to_string() == "client" && point.to_string() == "."
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
