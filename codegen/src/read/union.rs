//! `oneOf` with a discriminator: one of several objects, told apart by a member.

use super::object;
use super::schema::{allow, named};
use crate::Problem;
use crate::model::{Alternative, Type, Union};
use crate::node::Node;

const SCHEMAS: &str = "#/components/schemas/";

/// Reads a union.
///
/// # Errors
/// What cannot be generated, with its place.
pub fn union(node: &Node<'_>) -> Result<Union, Problem> {
    allow(node, &["oneOf", "discriminator", "type"])?;
    let list = node.need("oneOf")?;
    let Some(discriminator) = node.get("discriminator") else {
        return Err(list
            .refuse("`oneOf` needs a `discriminator`: without one, which alternative a value is would be guesswork"));
    };
    let tag = discriminator.need("propertyName")?.text()?;
    let mut mapping = Vec::new();
    if let Some(node) = discriminator.get("mapping") {
        for (value, place) in node.members()? {
            let target = place.text()?;
            let reference = match target.starts_with('#') {
                true => target.to_string(),
                false => format!("{SCHEMAS}{target}"),
            };
            mapping.push((value, reference, place));
        }
    }
    let mut alternatives: Vec<Alternative> = Vec::new();
    let mut references = Vec::new();
    for item in list.items()? {
        let Some(reference) = item.text_of("$ref")? else {
            return Err(item.refuse("an alternative of a `oneOf` needs a name: move it to components/schemas"));
        };
        let ident = named(reference, &item)?;
        let mut values: Vec<String> = mapping
            .iter()
            .filter(|(_, target, _)| target == reference)
            .map(|(value, ..)| (*value).to_string())
            .collect();
        if values.is_empty() {
            values.push(reference.trim_start_matches(SCHEMAS).to_string());
        }
        if let Some(value) = values
            .iter()
            .find(|value| alternatives.iter().any(|known| known.values.contains(value)))
        {
            return Err(item.refuse(format!("`{value}` already stands for another alternative")));
        }
        alternatives.push(Alternative {
            tag_field: tag_field(&item, tag)?,
            ident,
            values,
        });
        references.push(reference);
    }
    if let Some((value, target, place)) = mapping
        .iter()
        .find(|(_, target, _)| !references.contains(&target.as_str()))
    {
        return Err(place.refuse(format!(
            "`{value}` stands for {target}, which is not among the alternatives"
        )));
    }
    if alternatives.is_empty() {
        return Err(list.refuse("a `oneOf` needs at least one alternative"));
    }
    Ok(Union {
        tag: tag.to_string(),
        alternatives,
    })
}

/// The member that tells the alternative apart; it must always be there, and be text.
fn tag_field(item: &Node<'_>, tag: &str) -> Result<proc_macro2::Ident, Problem> {
    let target = item.resolved()?;
    let wrong = || {
        item.refuse(format!(
            "the discriminator `{tag}` must be a required member of this alternative, a string or an enumeration"
        ))
    };
    if !object::is_object(&target)? {
        return Err(wrong());
    }
    let object = object::object(&target, "Alternative", &mut Vec::new())?;
    let field = object
        .fields
        .into_iter()
        .find(|field| field.name == tag)
        .ok_or_else(wrong)?;
    // A named type is an enumeration here: anything else would have no text, which `lint` sees.
    let is_text = matches!(field.ty, Type::String { .. } | Type::Named(_));
    if !is_text || !field.required || field.nullable {
        return Err(wrong());
    }
    Ok(field.ident)
}
