//! Tokens that several files use: documentation, imports, and error types.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;

use crate::model::{Api, Operation};

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

/// Imports of those `names` (full paths) whose last segment occurs in `code`.
pub(super) fn imports(names: &[&str], code: &TokenStream) -> TokenStream {
    let mut found = BTreeSet::new();
    identifiers(code, &mut found);
    let used = names
        .iter()
        .filter(|name| found.contains(name.rsplit("::").next().unwrap_or_default()));
    let paths = used.filter_map(|name| syn::parse_str::<syn::Path>(name).ok());
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

/// The error type of an operation.
pub(super) fn error_type(api: &Api, operation: &Operation) -> TokenStream {
    match api.failure(operation) {
        Some(body) => quote! { Failure<#body, ApiError> },
        None => quote! { ApiError },
    }
}
