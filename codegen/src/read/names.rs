//! Names in Rust for names in the document.

use heck::{ToSnakeCase, ToUpperCamelCase};
use proc_macro2::{Ident, Span};

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

/// The name `proposed` for a schema that has none of its own; component schemas keep theirs.
pub fn derived_name(proposed: &str, node: &Node<'_>) -> String {
    let mut name = proposed.to_string();
    while node.names().schemas.contains(&name.to_upper_camel_case()) {
        name.push_str("Inline");
    }
    name
}

/// A field's, function's or module's name; keywords become raw identifiers.
///
/// # Errors
/// When nothing of the name can stand in Rust.
pub fn field_name(name: &str, node: &Node<'_>) -> Result<Ident, Problem> {
    identifier(&name.to_snake_case(), name, false, node)
}

/// The name of an operation's function: Dropshot's macro takes no raw identifiers.
///
/// # Errors
/// When nothing of the name can stand in Rust.
pub fn function_name(name: &str, node: &Node<'_>) -> Result<Ident, Problem> {
    let ident = field_name(name, node)?;
    match ident.to_string().strip_prefix("r#") {
        Some(keyword) => identifier(&format!("{keyword}_"), name, false, node),
        None => Ok(ident),
    }
}

/// An enumeration variant's name.
///
/// # Errors
/// When nothing of the name can stand in Rust.
pub fn variant_name(value: &str, node: &Node<'_>) -> Result<Ident, Problem> {
    let ident = identifier(&value.to_upper_camel_case(), value, true, node)?;
    Ok(raw_beside(ident, node))
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

/// Refuses two names that become one in Rust.
///
/// # Errors
/// Names both.
pub fn distinct<'n>(pairs: impl Iterator<Item = (&'n str, &'n Ident)>, node: &Node<'_>) -> Result<(), Problem> {
    let mut seen: Vec<(&str, &Ident)> = Vec::new();
    for (name, ident) in pairs {
        if let Some((other, _)) = seen.iter().find(|(_, known)| *known == ident) {
            return Err(node.refuse(format!("`{other}` and `{name}` are both `{ident}` in Rust; rename one")));
        }
        seen.push((name, ident));
    }
    Ok(())
}
