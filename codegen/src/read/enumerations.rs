//! Enumerations of strings, numbers or booleans.

use proc_macro2::Ident;

use super::names;
use crate::error::Problem;
use crate::keywords::allow;
use crate::model::{Enumeration, EnumerationKind, IntegerKind, Variant};
use crate::node::Node;

/// Reads the values in `enum`.
pub fn enumeration(node: &Node<'_>) -> Result<Enumeration, Problem> {
    allow(node, &["type", "enum", "format"])?;
    let ty = node.text_of("type")?;
    let kind = match ty {
        Some("string") => EnumerationKind::Text,
        Some("integer") => EnumerationKind::Integer(IntegerKind::of_format(node.text_of("format")?)),
        Some("number") => EnumerationKind::Number,
        Some("boolean") => EnumerationKind::Boolean,
        _ => return Err(node.reject("an enumeration must have `type: string`, `integer`, `number` or `boolean`")),
    };
    let mut variants = Vec::new();
    for item in node.need("enum")?.items()? {
        if item.value().is_null() && node.flag("nullable")? {
            continue;
        }
        let ty = ty.unwrap_or_default();
        let wrong = || item.reject(format!("must be a value of the enumeration's type `{ty}`"));
        let value = kind.text(item.value()).ok_or_else(wrong)?;
        variants.push(Variant {
            ident: named(&spelled(&value, kind), &variants, &item),
            value,
            docs: String::new(),
        });
    }
    of(kind, variants, node)
}

/// The text that a value's Rust name is derived from. The signs of numbers are spelled out.
fn spelled(value: &str, kind: EnumerationKind) -> String {
    match kind {
        EnumerationKind::Integer(_) | EnumerationKind::Number => value.replace('-', "minus ").replace('.', " point "),
        EnumerationKind::Text | EnumerationKind::Boolean => value.to_string(),
    }
}

/// The Rust name of a value, with a number if another value has the same name.
fn named(spelled: &str, others: &[Variant], node: &Node<'_>) -> Ident {
    let has_name = names::variant_name(spelled, node).is_some();
    let is_taken = |ident: &Ident| !has_name && ident == "Value" || others.iter().any(|other| other.ident == *ident);
    names::counted(names::any_variant_name(spelled, node), others.len() + 1, is_taken)
}

fn of(kind: EnumerationKind, variants: Vec<Variant>, node: &Node<'_>) -> Result<Enumeration, Problem> {
    if variants.is_empty() {
        return Err(node.reject("an enumeration must have at least one value"));
    }
    for (index, variant) in variants.iter().enumerate() {
        if variants[..index].iter().any(|other| other.value == variant.value) {
            return Err(node.reject(format!("the value `{}` occurs twice; remove one", variant.value)));
        }
    }
    Ok(Enumeration { kind, variants })
}

/// The values of an enumeration whose values have descriptions: a `oneOf` of enumerations. `None` if the schema has
/// another form.
pub fn documented(node: &Node<'_>) -> Result<Option<Enumeration>, Problem> {
    let Some(list) = node.get("oneOf") else { return Ok(None) };
    let mut all: Vec<Variant> = Vec::new();
    let mut kind = None;
    for item in list.items()? {
        let Some(values) = item.get("enum").map(|list| list.items()).transpose()? else {
            return Ok(None);
        };
        if values.iter().any(|value| value.value().is_null()) {
            return Ok(None);
        }
        let about = item.description()?;
        let part = enumeration(&item)?;
        if kind.is_some_and(|kind| kind != part.kind) {
            return Ok(None);
        }
        kind = Some(part.kind);
        for variant in part.variants {
            all.push(Variant {
                ident: named(&spelled(&variant.value, part.kind), &all, &item),
                docs: about.clone(),
                ..variant
            });
        }
    }
    let Some(kind) = kind else { return Ok(None) };
    allow(node, &["oneOf"])?;
    of(kind, all, node).map(Some)
}
