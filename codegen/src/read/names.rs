//! Names in Rust for names in the document.

use std::collections::BTreeSet;

use heck::{ToSnakeCase, ToUpperCamelCase};
use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;

use crate::Problem;
use crate::emit::is_generated_codes;
use crate::node::Node;

/// A type's name. Where generated code, or an operation's own type, has that name too, it is a raw identifier, by which
/// the emitters know which of the two is meant.
///
/// # Errors
/// When nothing of the name can stand in Rust.
pub fn type_name(name: &str, node: &Node<'_>) -> Result<Ident, Problem> {
    let name = node.renamed().schemas.get(name).map_or(name, String::as_str);
    let ident = identifier(&name.to_upper_camel_case(), name, true, node)?;
    Ok(raw_beside(ident, node))
}

fn raw_beside(ident: Ident, node: &Node<'_>) -> Ident {
    let text = ident.to_string();
    match is_generated_codes(&text) || node.names().operations.contains(&text) {
        true => Ident::new_raw(&text, Span::call_site()),
        false => ident,
    }
}

/// The name `proposed` for a schema that has none of its own; component schemas keep theirs, and another one without a
/// name that was there first.
pub fn derived_name(proposed: &str, node: &Node<'_>) -> String {
    let mut name = proposed.to_string();
    while node.names().schemas.contains(&name.to_upper_camel_case()) {
        name.push_str("Inline");
    }
    let base = name.clone();
    let mut count = 1;
    while !node.give(&name.to_upper_camel_case()) {
        count += 1;
        name = format!("{base}{count}");
    }
    name
}

/// A function's or module's name; keywords become raw identifiers.
///
/// # Errors
/// When nothing of the name can stand in Rust.
pub fn plain_name(name: &str, node: &Node<'_>) -> Result<Ident, Problem> {
    identifier(&name.to_snake_case(), name, false, node)
}

/// A field's name; keywords become raw identifiers. A member's name is the document's to choose: one of which nothing
/// can stand in Rust is a `member`.
pub fn field_name(name: &str, node: &Node<'_>) -> Ident {
    plain_name(name, node).unwrap_or_else(|_| Ident::new("member", Span::call_site()))
}

/// The name of an operation's function: Dropshot's macro takes no raw identifiers.
///
/// # Errors
/// When nothing of the name can stand in Rust.
pub fn function_name(name: &str, node: &Node<'_>) -> Result<Ident, Problem> {
    let ident = plain_name(name, node)?;
    match ident.to_string().strip_prefix("r#") {
        Some(keyword) => identifier(&format!("{keyword}_"), name, false, node),
        None => Ok(ident),
    }
}

/// A variant's name; `None` when nothing of the value can stand in Rust.
pub fn variant_name(value: &str, node: &Node<'_>) -> Option<Ident> {
    let ident = identifier(&value.to_upper_camel_case(), value, true, node).ok()?;
    Some(raw_beside(ident, node))
}

/// The same, with another name for what has none: values are the document's to choose.
pub fn any_variant_name(value: &str, node: &Node<'_>) -> Ident {
    variant_name(value, node).unwrap_or_else(|| Ident::new("Value", Span::call_site()))
}

fn identifier(text: &str, original: &str, is_type: bool, node: &Node<'_>) -> Result<Ident, Problem> {
    let text = match text.chars().next() {
        Some(first) if first.is_ascii_digit() => format!("{}{text}", if is_type { 'N' } else { 'n' }),
        _ => text.to_string(),
    };
    // syn does not know the keyword that Rust 2024 adds.
    if text != "gen" && syn::parse_str::<Ident>(&text).is_ok() {
        return Ok(Ident::new(&text, Span::call_site()));
    }
    // `self`, `Self`, `super` and `crate` cannot even be raw.
    for candidate in [format!("r#{text}"), format!("{text}_")] {
        if let Ok(ident) = syn::parse_str::<Ident>(&candidate) {
            return Ok(ident);
        }
    }
    Err(node.refuse(format!(
        "no Rust name can be made of `{original}`; use letters, digits and underscores"
    )))
}

/// The name itself, or where another thing has it, the name with the first number from `count` on that gives one of its
/// own.
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

/// Gives things names of their own: of those that meet in Rust, all but the first are counted.
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
