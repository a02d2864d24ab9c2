//! Tokens that several files use: documentation, imports, and error types.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::quote;

use crate::model::{Api, Operation};
use crate::naming::USED;

/// Doc attributes. Code blocks are marked as text, so that rustdoc does not run them.
pub(super) fn docs(text: &str) -> TokenStream {
    let mut lines = Vec::new();
    let mut fenced = false;
    for line in text.trim().lines() {
        if line.trim_start().starts_with("```") {
            lines.push(if fenced {
                " ```".to_string()
            } else {
                " ```text".to_string()
            });
            fenced = !fenced;
        } else if fenced {
            lines.push(format!(" {line}"));
        } else if line.trim().is_empty() {
            lines.push(String::new());
        } else {
            // Four spaces would start a code block.
            let indent = (line.len() - line.trim_start().len()).min(3);
            lines.push(format!(" {}{}", " ".repeat(indent), line.trim()));
        }
    }
    quote! { #(#[doc = #lines])* }
}

/// Imports of those types of other crates, and of those of `modules`, that occur in `code`.
pub(super) fn imports(modules: &[&'static str], code: &TokenStream) -> TokenStream {
    let mut found = BTreeSet::new();
    identifiers(code, &mut found);
    let is_used = |path: &&str| found.contains(path.rsplit("::").next().unwrap_or_default());
    let types = USED.iter().map(|(_, path)| *path);
    let foreign = types.filter(|path| !path.is_empty() && !path.starts_with("::std"));
    let mut paths: Vec<&str> = foreign.chain(modules.iter().copied()).filter(is_used).collect();
    paths.sort_unstable();
    let paths = paths
        .into_iter()
        .filter_map(|path| syn::parse_str::<syn::Path>(path.trim_start_matches(':')).ok());
    quote! { #(use #paths;)* }
}

pub(super) fn identifiers(code: &TokenStream, found: &mut BTreeSet<String>) {
    for tree in code.clone() {
        match tree {
            TokenTree::Ident(ident) => {
                found.insert(ident.to_string());
            }
            TokenTree::Group(group) => identifiers(&group.stream(), found),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// The implementation of `Deserialize` with this function body.
pub(super) fn deserialize(ident: &Ident, body: &TokenStream) -> TokenStream {
    quote! {
        impl<'de> Deserialize<'de> for #ident {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #body
            }
        }
    }
}

/// The module with the functions that read `owner`, which contains its implementation of `Deserialize`.
pub(super) fn reading(owner: &Ident, helpers: &[TokenStream], body: &TokenStream) -> TokenStream {
    let module = super::members::module(owner);
    let read = deserialize(owner, body);
    quote! {
        mod #module {
            use super::*;

            #(#helpers)*

            #read
        }
    }
}

/// The error type of an operation.
pub(super) fn error_type(api: &Api, operation: &Operation) -> TokenStream {
    match api.failure(operation) {
        Some(body) => quote! { Failure<#body, ApiError> },
        None => quote! { ApiError },
    }
}
