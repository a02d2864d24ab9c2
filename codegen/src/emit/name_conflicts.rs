//! Resolution of conflicts between the document's type names and the names that generated code uses itself.
//!
//! A conflicting type has a raw identifier in the model (`r#Option`). `types.rs`, which defines it, uses full paths for
//! whatever else has that name, and the other files import it under another name.

use std::collections::BTreeSet;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt;

use super::tokens::{identifiers, is_path, items, rewritten};
use crate::model::{Api, BodyContent, Operation};
use crate::naming::{OPERATION_TYPES, derived, used};

/// The name of an operation's own type, where `suffix` is one of `OPERATION_TYPES`. It differs from the usual one if
/// the document has a schema of that name.
pub fn operation_type(api: &Api, operation: &Operation, suffix: &str) -> Ident {
    type_beside(&raw(api), operation, suffix)
}

fn type_beside(raw: &BTreeSet<String>, operation: &Operation, suffix: &str) -> Ident {
    let usual = derived(&operation.name, suffix);
    match raw.contains(&usual.to_string()) {
        true => derived(&format!("{}_operation", operation.name), suffix),
        false => usual,
    }
}

/// Whether a raw identifier names a type or variant of the document. Keywords that can be raw are lower case.
fn is_documents(plain: &str) -> bool {
    plain.starts_with(|first: char| first.is_uppercase())
}

/// The document's types whose names conflict.
fn raw(api: &Api) -> BTreeSet<String> {
    let is_raw = |ident: &&Ident| ident.to_string().starts_with("r#");
    let idents = api.types.iter().map(|definition| &definition.ident);
    idents.filter(is_raw).map(|ident| ident.unraw().to_string()).collect()
}

/// Resolves conflicts in `types.rs`, where the document's types keep their names.
pub(super) fn of_types(tokens: TokenStream, api: &Api) -> TokenStream {
    let raw = raw(api);
    let own = renamed(api, &raw);
    let tokens = without_imports(tokens, &raw);
    walk(tokens, &mut |ident, qualified| {
        let text = ident.to_string();
        if let Some(plain) = text.strip_prefix("r#") {
            return is_documents(plain).then(|| plain_ident(plain));
        }
        if qualified || !raw.contains(&text) {
            return None;
        }
        if let Some((_, new)) = own.iter().find(|(old, _)| *old == text) {
            return Some(quote! { #new });
        }
        match used().find(|(_, known)| *known == text)? {
            ("", _) => Some(plain_ident(&format!("{text}_"))),
            (module, _) => format!("{module}::{text}").parse().ok(),
        }
    })
}

/// Resolves conflicts in the files that use `types.rs`.
pub(super) fn of_users(tokens: TokenStream, api: &Api) -> TokenStream {
    let raw = raw(api);
    let own = renamed(api, &raw);
    let mut used = BTreeSet::new();
    identifiers(&tokens, &mut used);
    let uses_types = tokens.to_string().contains("use super :: types :: *");
    let tokens = walk(tokens, &mut |ident, qualified| {
        let text = ident.to_string();
        match text.strip_prefix("r#") {
            Some(plain) if uses_types && !qualified && raw.contains(plain) => Some(plain_ident(&format!("{plain}_"))),
            Some(plain) => is_documents(plain).then(|| plain_ident(plain)),
            None => {
                let (_, new) = own.iter().find(|(old, _)| *old == text)?;
                Some(quote! { #new })
            }
        }
    });
    if raw.is_empty() || !uses_types {
        return tokens;
    }
    let parameters = api.operations.iter().flat_map(|operation| {
        let form = matches!(&operation.body, Some(body) if matches!(body.content, BodyContent::Form(_)));
        let suffixes = operation
            .groups()
            .map(|(.., suffix)| suffix)
            .chain(form.then_some("Form"));
        suffixes.map(|suffix| (derived(&operation.name, suffix), type_beside(&raw, operation, suffix)))
    });
    let types = api.types.iter().map(|it| (it.ident.clone(), it.ident.clone()));
    let imported = types
        .chain(parameters)
        .filter(|(ident, _)| used.contains(&ident.to_string()));
    let imported = imported.map(|(_, ident)| match ident.to_string().strip_prefix("r#") {
        Some(plain) => {
            let (plain, other) = (plain_ident(plain), plain_ident(&format!("{plain}_")));
            quote! { #plain as #other }
        }
        None => quote! { #ident },
    });
    let explicit = quote! { use super::types::{#(#imported),*}; };
    replaced_glob(tokens, &explicit)
}

/// The operations' own types that do not have their usual name.
fn renamed(api: &Api, raw: &BTreeSet<String>) -> Vec<(String, Ident)> {
    if raw.is_empty() {
        return Vec::new();
    }
    let all = api.operations.iter().flat_map(|operation| {
        OPERATION_TYPES.map(|suffix| {
            (
                derived(&operation.name, suffix).to_string(),
                type_beside(raw, operation, suffix),
            )
        })
    });
    all.filter(|(usual, ident)| ident != usual).collect()
}

fn plain_ident(name: &str) -> TokenStream {
    let ident = Ident::new(name, Span::call_site());
    quote! { #ident }
}

/// Replaces raw type names with plain ones.
pub(super) fn unraw(tokens: TokenStream) -> TokenStream {
    walk(tokens, &mut |ident, _| Some(plain_ident(&ident.unraw().to_string())))
}

/// Replaces identifiers. The second argument of `replace` is whether the identifier follows `::`.
fn walk(tokens: TokenStream, replace: &mut impl FnMut(&Ident, bool) -> Option<TokenStream>) -> TokenStream {
    rewritten(tokens, &mut |tree, before, _| {
        let new = match &tree {
            TokenTree::Ident(ident) => replace(ident, is_path(before)),
            // serde's attributes refer to functions in strings.
            TokenTree::Literal(literal) if literal.to_string() == "\"Option::is_none\"" => {
                let full = replace(&Ident::new("Option", Span::call_site()), false);
                full.map(|_| quote! { "::std::option::Option::is_none" })
            }
            _ => None,
        };
        match new {
            Some(new) => before.extend(new),
            None => return Some(tree),
        }
        None
    })
}

/// Removes the imports of names in `raw`.
fn without_imports(tokens: TokenStream, raw: &BTreeSet<String>) -> TokenStream {
    let is_kept = |item: &TokenStream| {
        let text = item.to_string();
        let path = text.strip_prefix("use ").map(|path| path.trim_end_matches([';', ' ']));
        path.is_none_or(|path| !raw.contains(path.rsplit(' ').next().unwrap_or_default()))
    };
    match raw.is_empty() {
        true => tokens,
        false => items(tokens).filter(is_kept).collect(),
    }
}

fn replaced_glob(tokens: TokenStream, explicit: &TokenStream) -> TokenStream {
    let is_glob = |item: &TokenStream| item.to_string() == "use super :: types :: * ;";
    items(tokens)
        .map(|item| if is_glob(&item) { explicit.clone() } else { item })
        .collect()
}
