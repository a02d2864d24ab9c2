//! Tokens that several files use: documentation, imports, Rust types and error types; and the text of a file.

use std::collections::BTreeSet;

use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::{format_ident, quote};
use rust_decimal::Decimal;

use crate::error::Problem;
use crate::model::{Api, Field, OneWay, Operation, Type};
use crate::naming::used;
use crate::output::{File, GENERATED};

/// Doc attributes. Code blocks are marked as text, so that rustdoc does not run them.
pub(super) fn docs(text: &str) -> TokenStream {
    let mut lines = Vec::new();
    let mut fenced = false;
    for line in text.trim().lines() {
        if line.trim_start().starts_with("```") {
            lines.push(if fenced { " ```" } else { " ```text" }.to_string());
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

/// Imports of those types of other crates, and of those `modules` of the runtime, that occur in `code`.
pub(super) fn imports(modules: &[&'static str], code: &TokenStream) -> TokenStream {
    let mut found = BTreeSet::new();
    identifiers(code, &mut found);
    let foreign = used().filter(|(module, _)| !module.is_empty() && !module.starts_with("::std"));
    let all = foreign.chain(modules.iter().map(|name| ("::codegen_runtime", *name)));
    let all = all.filter(|(_, name)| found.contains(*name));
    let mut paths: Vec<String> = all.map(|(module, name)| format!("{module}::{name}")).collect();
    paths.sort_unstable();
    let paths = paths.iter().map(|path| path.trim_start_matches(':'));
    let paths = paths.filter_map(|path| syn::parse_str::<syn::Path>(path).ok());
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

/// Gets a tree with those before and after it in its group, and returns the tree, or `None` if it has added its replacement
/// to those before.
type Change<'c> = dyn FnMut(TokenTree, &mut Vec<TokenTree>, &mut IntoIter) -> Option<TokenTree> + 'c;

/// Rewrites tokens and those in their groups.
pub(super) fn rewritten(tokens: TokenStream, change: &mut Change<'_>) -> TokenStream {
    let (mut before, mut after) = (Vec::new(), tokens.into_iter());
    while let Some(tree) = after.next() {
        match change(tree, &mut before, &mut after) {
            Some(TokenTree::Group(group)) => {
                let mut new = Group::new(group.delimiter(), rewritten(group.stream(), change));
                new.set_span(group.span());
                before.push(new.into());
            }
            other => before.extend(other),
        }
    }
    before.into_iter().collect()
}

/// Whether the last two tokens are `::`.
pub(super) fn is_path(before: &[TokenTree]) -> bool {
    let is_colon = |tree: &TokenTree| matches!(tree, TokenTree::Punct(punct) if punct.as_char() == ':');
    matches!(before, [.., one, other] if is_colon(one) && is_colon(other))
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

/// The module with the handler of an operation.
pub(super) fn endpoint(operation: &Operation, root: &TokenStream) -> TokenStream {
    let (name, tag) = (&operation.ident, operation.tag.iter());
    quote! { #root::endpoints::#(#tag::)*#name }
}

pub(super) fn error_type(api: &Api, operation: &Operation) -> TokenStream {
    match api.failure(operation) {
        Some(body) => quote! { Failure<#body, ApiError> },
        None => quote! { ApiError },
    }
}

pub(super) fn file(name: &str, about: &str, tokens: TokenStream) -> Result<File, Problem> {
    let mut code = String::new();
    // Items are formatted one by one, because the syntax tree of a large client takes several times the memory of its
    // text.
    for item in items(tokens) {
        let defect = |error| Problem::Defect(format!("the generated {name} does not parse: {error}"));
        code += &prettyplease::unparse(&syn::parse2(item).map_err(defect)?);
    }
    let allow = match name {
        "mod.rs" => {
            "#![allow(clippy::all, clippy::unwrap_used, clippy::expect_used, missing_docs, non_camel_case_types)]\n\n"
        }
        _ => "",
    };
    let (name, text) = (
        name.to_string(),
        format!("//! {about}\n//!\n{GENERATED}\n\n{allow}{code}"),
    );
    Ok(File { name, text })
}

/// The items of a file, in order.
pub(super) fn items(tokens: TokenStream) -> impl Iterator<Item = TokenStream> {
    let mut rest = tokens.into_iter();
    std::iter::from_fn(move || {
        let mut item = TokenStream::new();
        let mut words = Vec::new();
        for tree in rest.by_ref() {
            if let TokenTree::Ident(word) = &tree
                && words.len() < 3
                && *word != "pub"
            {
                words.push(word.to_string());
            }
            let begins = |word: &str| words.first().is_some_and(|first| first == word);
            let of_functions = |word: &String| ["fn", "unsafe", "async", "extern"].contains(&word.as_str());
            let is_function = words.get(1).is_some_and(of_functions);
            let ends = match &tree {
                TokenTree::Punct(punct) => punct.as_char() == ';',
                // Braces are part of these items.
                TokenTree::Group(group) if group.delimiter() == proc_macro2::Delimiter::Brace => {
                    !(["use", "static", "type"].into_iter().any(begins) || begins("const") && !is_function)
                }
                _ => false,
            };
            item.extend([tree]);
            if ends {
                break;
            }
        }
        (!item.is_empty()).then_some(item)
    })
}

pub(super) fn rust_type(ty: &Type) -> TokenStream {
    match ty {
        Type::String(_) => quote! { String },
        Type::Decimal { .. } => quote! { Decimal },
        Type::DateTime => quote! { DateTime<Utc> },
        Type::Date => quote! { NaiveDate },
        Type::Bytes => quote! { Base64 },
        Type::Uuid => quote! { uuid::Uuid },
        Type::Boolean => quote! { bool },
        Type::Null => quote! { () },
        Type::Never => quote! { codegen_runtime::Never },
        Type::Integer { kind, .. } => {
            let kind = format_ident!("{}", kind.name());
            quote! { #kind }
        }
        Type::Number(_) => quote! { f64 },
        Type::ExactNumber { .. } => quote! { ExactNumber },
        Type::Array { items, .. } => {
            let items = rust_type(items);
            quote! { Vec<#items> }
        }
        Type::Map { values, .. } => {
            let values = rust_type(values);
            quote! { std::collections::BTreeMap<String, #values> }
        }
        Type::Nullable(inner) => {
            let inner = rust_type(inner);
            quote! { Option<#inner> }
        }
        Type::Boxed(inner) => {
            let inner = rust_type(inner);
            quote! { Box<#inner> }
        }
        Type::Named(ident) => quote! { #ident },
        Type::Any => quote! { serde_json::Value },
    }
}

/// The attribute for members that serde does not serialize as the document requires.
pub(super) fn write_attribute(field: &Field) -> Option<TokenStream> {
    if field.one_way == Some(OneWay::Requests) {
        return Some(quote! { #[serde(skip_serializing)] });
    }
    // Responses contain members that are read-only and required, although requests omit them.
    let is_set = field.required && !field.nullable && field.is_option();
    if is_set && !matches!(field.ty, Type::Decimal { .. }) {
        return Some(quote! { #[serde(serialize_with = "codegen_runtime::body::set")] });
    }
    let absent = (!field.required).then(|| quote! { #[serde(skip_serializing_if = "Option::is_none")] });
    let absent = absent.filter(|_| field.is_option());
    let function = serialize_attribute(&field.ty, field.is_option());
    match (absent, function) {
        (None, None) => None,
        (absent, function) => Some(quote! { #absent #function }),
    }
}

/// The attribute that serializes a decimal amount, or a date and time.
pub(super) fn serialize_attribute(ty: &Type, is_option: bool) -> Option<TokenStream> {
    let function = if is_option { "serialize_optional" } else { "serialize" };
    let path = match ty {
        Type::Decimal { places } => format!("codegen_runtime::decimal::{function}::<{places}, _>"),
        Type::DateTime => format!("codegen_runtime::date_time::{function}"),
        _ => return None,
    };
    Some(quote! { #[serde(serialize_with = #path)] })
}

/// A constant expression for a decimal number.
pub(super) fn decimal(value: Decimal) -> TokenStream {
    let parts = value.unpack();
    let (lo, mid, hi, negative, scale) = (parts.lo, parts.mid, parts.hi, parts.negative, parts.scale);
    quote! { Decimal::from_parts(#lo, #mid, #hi, #negative, #scale) }
}
