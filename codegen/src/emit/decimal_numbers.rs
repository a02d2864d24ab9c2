//! Numbers with `format: decimal` in a client. progenitor supports only binary floating-point numbers, which would
//! round measurements.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use progenitor::{GenerationSettings, TypeImpl};
use quote::quote;
use serde_json::{Value, json};

use super::client_names::walk;
use crate::output::{File, GENERATED};

/// The source of the type, which becomes a file beside progenitor's code.
const SOURCE: &str = include_str!("../../templates/client/decimal_number.rs");

/// A stand-in for the type's path, until the depth of the module that refers to it is known.
const PLACEHOLDER: &str = "decimal_number_of_this_client";

/// The keywords that remain in such a schema. Neither progenitor nor the type checks bounds.
const RETAINED_KEYWORDS: &str = "type format nullable default title description example";

/// Makes progenitor use the type for such numbers in `document`. Returns whether there are any.
pub(super) fn put_into(settings: &mut GenerationSettings, document: &mut Value) -> bool {
    let mut is_found = false;
    walk(document, &mut |schema| {
        let is_meant = schema.get("type") == Some(&json!("number")) && schema.get("format") == Some(&json!("decimal"));
        if is_meant && !schema.contains_key("enum") {
            is_found = true;
            schema.retain(|key, _| RETAINED_KEYWORDS.split(' ').any(|known| known == key));
        }
    });
    let schema = serde_json::from_value(json!({ "type": "number", "format": "decimal" }));
    if let (true, Ok(schema)) = (is_found, schema) {
        let name = format!("::{PLACEHOLDER}::DecimalNumber");
        settings.with_conversion(schema, name, [TypeImpl::Display, TypeImpl::FromStr].into_iter());
    }
    is_found
}

/// Replaces the stand-in with the type's path and adds its module.
pub(super) fn named(tokens: TokenStream) -> TokenStream {
    let tokens = at_depth(tokens, 0);
    quote! {
        mod decimal_number;
        pub use decimal_number::DecimalNumber;

        #tokens
    }
}

/// The file that defines the type, if `code` uses it.
pub(super) fn file(code: &str) -> Option<File> {
    code.contains("mod decimal_number;").then(|| File {
        name: "decimal_number.rs".into(),
        text: format!("//! Exact decimal numbers.\n//!\n{GENERATED}\n\n{SOURCE}"),
    })
}

fn at_depth(tokens: TokenStream, depth: usize) -> TokenStream {
    let mut out: Vec<TokenTree> = Vec::new();
    for tree in tokens {
        match tree {
            TokenTree::Ident(name) if name == PLACEHOLDER => {
                // Removes the `::` that starts the path of a crate.
                out.truncate(out.len().saturating_sub(2));
                let up = std::iter::repeat_n(quote! { super }, depth);
                out.extend(match depth {
                    0 => quote! { self },
                    _ => quote! { #(#up)::* },
                });
            }
            TokenTree::Group(group) => {
                let is_module = group.delimiter() == Delimiter::Brace
                    && matches!(out.as_slice(), [.., TokenTree::Ident(word), TokenTree::Ident(_)] if word == "mod");
                let inner = at_depth(group.stream(), depth + usize::from(is_module));
                out.push(Group::new(group.delimiter(), inner).into());
            }
            other => out.push(other),
        }
    }
    out.into_iter().collect()
}
