//! Rust names for names of the document.

use std::collections::BTreeSet;

use heck::{ToSnakeCase, ToUpperCamelCase};
use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;

use crate::error::Problem;
use crate::naming::{is_used_by_generated_code, numbered};
use crate::node::Node;

/// The name of a type. It is a raw identifier if generated code or an operation's own type has the same name, so
/// that the emitters can distinguish the two.
pub fn type_name(name: &str, node: &Node<'_>) -> Result<Ident, Problem> {
    let name = node.renamed().schemas.get(name).map_or(name, String::as_str);
    let ident = identifier(&name.to_upper_camel_case(), name, true, node)?;
    Ok(raw_beside(ident, node))
}

fn raw_beside(ident: Ident, node: &Node<'_>) -> Ident {
    let text = ident.to_string();
    match is_used_by_generated_code(&text) || node.names().operations.contains(&text) {
        true => Ident::new_raw(&text, Span::call_site()),
        false => ident,
    }
}

/// The name of an unnamed schema, derived from `proposed`. Component schemas, and unnamed schemas that were read
/// earlier, have precedence.
pub fn derived_name(proposed: &str, node: &Node<'_>) -> String {
    let mut name = proposed.to_string();
    while node.names().schemas.contains(&name.to_upper_camel_case()) {
        name.push_str("Inline");
    }
    let mut names = numbered(name.clone());
    names
        .find(|name| node.reserve(&name.to_upper_camel_case()))
        .unwrap_or(name)
}

/// The name of a function or module. Keywords become raw identifiers.
pub fn plain_name(name: &str, node: &Node<'_>) -> Result<Ident, Problem> {
    identifier(&name.to_snake_case(), name, false, node)
}

/// The name of a field. Keywords become raw identifiers, and names without a valid Rust identifier become `member`,
/// because member names may be any string.
pub fn field_name(name: &str, node: &Node<'_>) -> Ident {
    plain_name(name, node).unwrap_or_else(|_| Ident::new("member", Span::call_site()))
}

/// The name of an operation's function, which is not a raw identifier because Dropshot's macro does not accept one.
pub fn function_name(name: &str, node: &Node<'_>) -> Result<Ident, Problem> {
    let ident = plain_name(name, node)?;
    match ident.to_string().strip_prefix("r#") {
        Some(keyword) => identifier(&format!("{keyword}_"), name, false, node),
        None => Ok(ident),
    }
}

/// The name of a variant; `None` if no Rust identifier can be derived from the value.
pub fn variant_name(value: &str, node: &Node<'_>) -> Option<Ident> {
    let ident = identifier(&value.to_upper_camel_case(), value, true, node).ok()?;
    Some(raw_beside(ident, node))
}

/// The name of a variant, or `Value` if no Rust identifier can be derived, because values may be any string.
pub fn any_variant_name(value: &str, node: &Node<'_>) -> Ident {
    variant_name(value, node).unwrap_or_else(|| Ident::new("Value", Span::call_site()))
}

fn identifier(text: &str, original: &str, is_type: bool, node: &Node<'_>) -> Result<Ident, Problem> {
    let text = match text.chars().next() {
        Some(first) if first.is_ascii_digit() => format!("{}{text}", if is_type { 'N' } else { 'n' }),
        _ => text.to_string(),
    };
    // syn does not know this keyword of the 2024 edition.
    if text != "gen" && syn::parse_str::<Ident>(&text).is_ok() {
        return Ok(Ident::new(&text, Span::call_site()));
    }
    // `self`, `Self`, `super` and `crate` cannot be raw identifiers.
    for candidate in [format!("r#{text}"), format!("{text}_")] {
        if let Ok(ident) = syn::parse_str::<Ident>(&candidate) {
            return Ok(ident);
        }
    }
    Err(node.reject(format!(
        "`{original}` has no valid Rust name; use letters, digits and underscores"
    )))
}

/// The name itself, or if it is taken, the name with the first free number starting at `count`.
pub fn counted(ident: Ident, count: usize, is_taken: impl Fn(&Ident) -> bool) -> Ident {
    if !is_taken(&ident) {
        return ident;
    }
    let base = ident.unraw();
    let mut numbers = count..;
    loop {
        let ident = quote::format_ident!("{base}{}", numbers.next().unwrap_or_default());
        if !is_taken(&ident) {
            return ident;
        }
    }
}

/// Makes the names distinct by adding numbers to all but the first of those that are equal.
pub fn distinct<'n>(idents: impl Iterator<Item = &'n mut Ident>) {
    let all: Vec<&mut Ident> = idents.collect();
    let mut first: BTreeSet<Ident> = BTreeSet::new();
    let mut others = Vec::new();
    for ident in all {
        match first.contains(ident) {
            false => drop(first.insert(ident.clone())),
            true => others.push(ident),
        }
    }
    for ident in others {
        *ident = counted(ident.clone(), 2, |ident| first.contains(ident));
        first.insert(ident.clone());
    }
}

/// The Rust name of the component schema that `reference` refers to.
pub fn named(reference: &str, node: &Node<'_>) -> Result<Ident, Problem> {
    match reference.strip_prefix("#/components/schemas/") {
        Some(name) if !name.contains('/') => type_name(name, node),
        _ => Err(node.reject(format!("`{reference}` must refer to a schema in #/components/schemas/"))),
    }
}
