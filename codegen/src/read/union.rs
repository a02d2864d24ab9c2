//! `oneOf` and `anyOf`, whose alternatives are distinguished as serde does.

use heck::ToUpperCamelCase;
use proc_macro2::Ident;
use serde_json::Value;

use super::field::may_be_null;
use super::names::named;
use super::object::Member;
use super::schema::{self, Derived};
use super::{enumerations, kinds, names, object, scalar};
use crate::error::Problem;
use crate::keywords::allow;
use crate::model::{Alternative, EnumerationKind, JoinedPart, Shape, Tagging, Type, Union};
use crate::naming::numbered;
use crate::node::Node;

/// The alternatives, and how they are distinguished.
type Distinguished = (Tagging, Vec<Alternative>);

const SCHEMAS: &str = "#/components/schemas/";

/// Reads the union in the member `keyword` of `node`. Its Rust name is `owner`.
pub fn union(node: &Node<'_>, keyword: &str, owner: &str, derived: &mut Derived) -> Result<Shape, Problem> {
    let mut known = vec![keyword, "discriminator", "type"];
    if node.get("properties").is_some() {
        // The members beside it are read separately.
        known.extend(["oneOf", "anyOf", "properties", "required"]);
    }
    allow(node, &known)?;
    let list = node.need(keyword)?;
    let items = list.items()?;
    if items.is_empty() {
        return Err(list.reject(format!("a `{keyword}` must have at least one alternative")));
    }
    let (tagging, mut alternatives) = if let Some(discriminated) = discriminated(node, &items)? {
        discriminated
    } else if let Some(alternatives) = by_name(&items, owner, derived)? {
        (Tagging::Name, alternatives)
    } else if let Some(tag) = common_tag(&items)? {
        by_member(&items, tag, owner, derived)?
    } else {
        let exclusive = keyword == "oneOf";
        (Tagging::Value { exclusive }, by_value(&items, owner, derived)?)
    };
    names::distinct(alternatives.iter_mut().map(|alternative| &mut alternative.ident));
    // If a value matches several objects, one of them would lose the members that only the others declare.
    if tagging == (Tagging::Value { exclusive: false }) && kinds::overlap(&items)? {
        return Ok(Shape::Checked(alternatives));
    }
    Ok(Shape::Union(Union { tagging, alternatives }))
}

pub const KEYWORDS: [&str; 2] = ["oneOf", "anyOf"];

/// The unions declared beside members at `node`.
pub fn beside<'n>(node: &'n Node<'_>) -> impl Iterator<Item = &'static str> + 'n {
    let has_members = node.get("properties").is_some();
    let keywords = KEYWORDS.into_iter();
    keywords.filter(move |keyword| has_members && node.get(keyword).is_some())
}

/// Reads an object with members and unions beside them, which schemars emits for flattened fields.
pub fn joined(node: &Node<'_>, owner: &str, derived: &mut Derived) -> Result<Shape, Problem> {
    let own = object::object(node, owner, derived)?;
    let own_names: Vec<String> = own.fields.iter().map(|field| field.name.clone()).collect();
    let mut parts = Vec::new();
    let mut theirs = Vec::new();
    for keyword in beside(node) {
        let list = node.need(keyword)?;
        let mut declared = Vec::new();
        for item in list.items()? {
            let members = object::declared(&item)?.into_iter().flatten();
            declared.extend(members.map(|member| member.name.to_string()));
        }
        let proposed = format!("{owner}Alternative");
        let shape = union(node, keyword, &proposed, derived)?;
        let ident = schema::derived_part(&proposed, &list, shape, derived)?;
        let mut others = own_names.clone();
        others.retain(|name| !declared.contains(name));
        parts.push(joined_part("alternative", ident, others));
        theirs.extend(declared);
    }
    let members = node.need("properties")?;
    let ident = schema::derived_part(&format!("{owner}Members"), &members, Shape::Struct(own), derived)?;
    theirs.retain(|name| !own_names.contains(name));
    theirs.sort();
    theirs.dedup();
    parts.insert(0, joined_part("members", ident, theirs));
    names::distinct(parts.iter_mut().map(|part| &mut part.ident));
    Ok(Shape::Joined(parts))
}

fn joined_part(name: &str, ty: Ident, others: Vec<String>) -> JoinedPart {
    JoinedPart {
        ident: quote::format_ident!("{name}"),
        ty: Type::Named(ty),
        others,
    }
}

/// Reads alternatives with a `discriminator` that identifies them: each is a named schema that requires it, and allows
/// the values that select it. Otherwise the `discriminator` is a hint, and the alternatives are distinguished as without
/// it: the result is `None`.
fn discriminated(node: &Node<'_>, items: &[Node<'_>]) -> Result<Option<Distinguished>, Problem> {
    let Some(discriminator) = node.get("discriminator") else {
        return Ok(None);
    };
    let tag = discriminator.need("propertyName")?.text()?;
    let mut mapping = Vec::new();
    for (value, place) in discriminator.members_of("mapping")? {
        mapping.push((value, target_of_mapping(place.text()?), place));
    }
    let mut alternatives: Vec<Alternative> = Vec::new();
    let mut references = Vec::new();
    for item in items {
        let wrapped = schema::reference(item)?;
        let reference = wrapped.as_ref().map(|node| node.text_of("$ref")).transpose()?.flatten();
        let (Some(reference), Some((field, allowed))) = (reference, tag_field(item, tag)?) else {
            return Ok(None);
        };
        let ident = named(reference, item)?;
        let mapped = mapping.iter().filter(|(_, target, _)| target == reference);
        let mut values: Vec<String> = mapped.map(|(value, ..)| (*value).to_string()).collect();
        if values.is_empty() {
            values.push(reference.trim_start_matches(SCHEMAS).to_string());
        }
        if allowed.is_some_and(|allowed| values.iter().any(|value| !allowed.contains(value))) {
            return Ok(None);
        }
        let is_known = |value: &&String| alternatives.iter().any(|known| known.values.contains(value));
        if let Some(value) = values.iter().find(is_known) {
            return Err(item.reject(format!("`{value}` already identifies another alternative")));
        }
        alternatives.push(Alternative {
            tag_field: Some(field),
            docs: String::new(),
            content: Some(Type::Named(ident.clone())),
            ident,
            values,
        });
        references.push(reference);
    }
    let mut targets = mapping.iter();
    if let Some((value, target, place)) = targets.find(|(_, target, _)| !references.contains(&target.as_str())) {
        let reason = format!("`{value}` refers to {target}, which is not one of the alternatives");
        return Err(place.reject(reason));
    }
    Ok(Some((Tagging::Member(tag.to_string()), alternatives)))
}

/// The reference in a discriminator's mapping, which may also be the name of a component.
pub fn target_of_mapping(text: &str) -> String {
    match text.starts_with('#') {
        true => text.to_string(),
        false => format!("{SCHEMAS}{text}"),
    }
}

/// The member that identifies an alternative, and its values if it is an enumeration.
type TagField = (Ident, Option<Vec<String>>);

/// The member that identifies the alternative, if it is required and text.
fn tag_field(item: &Node<'_>, tag: &str) -> Result<Option<TagField>, Problem> {
    let mut members = object::declared(item)?.into_iter().flatten();
    let Some(member) = members.find(|member| member.name == tag && member.required) else {
        return Ok(None);
    };
    if may_be_null(&member.node)? {
        return Ok(None);
    }
    let node = match schema::reference(&member.node)? {
        Some(reference) => reference.resolved()?,
        None => member.node.clone(),
    };
    let is_inline = node.pointer() == member.node.pointer();
    let values = match enumerations::documented(&node)? {
        Some(documented) => Some(documented),
        None if node.get("enum").is_some() => Some(enumerations::enumeration(&node)?),
        None => None,
    };
    Ok(match values {
        Some(of) if of.kind == EnumerationKind::Text => {
            let values = of.variants.into_iter().map(|variant| variant.value).collect();
            Some((member.ident, Some(values)))
        }
        None if is_inline && node.text_of("type")? == Some("string") => {
            matches!(scalar::string(&node)?, Type::String(_)).then_some((member.ident, None))
        }
        _ => None,
    })
}

/// The only possible value of a member, from an enumeration with one value.
fn constant<'a>(member: &Member<'a>) -> Result<Option<&'a str>, Problem> {
    let values = member.node.get("enum").and_then(|list| list.value().as_array());
    Ok(match values.map(Vec::as_slice) {
        Some([Value::String(value)]) if member.required && !may_be_null(&member.node)? => Some(value),
        _ => None,
    })
}

/// The member that every alternative requires with a different constant value.
fn common_tag(items: &[Node<'_>]) -> Result<Option<String>, Problem> {
    let mut candidates: Vec<(&str, Vec<&str>)> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(members) = object::declared(item)? else {
            return Ok(None);
        };
        let mut constants = Vec::new();
        for member in &members {
            constants.extend(constant(member)?.map(|value| (member.name, value)));
        }
        if index == 0 {
            candidates = constants.into_iter().map(|(name, value)| (name, vec![value])).collect();
            continue;
        }
        candidates.retain_mut(|(name, values)| {
            let mut all = constants.iter();
            let value = all.find(|(known, value)| known == name && !values.contains(value));
            values.extend(value.map(|(_, value)| *value));
            value.is_some()
        });
    }
    // A single alternative needs no tag.
    let first = candidates.into_iter().next().filter(|_| items.len() > 1);
    Ok(first.map(|(name, _)| name.to_string()))
}

/// Reads alternatives with serde's internal or adjacent tagging.
fn by_member(items: &[Node<'_>], tag: String, owner: &str, derived: &mut Derived) -> Result<Distinguished, Problem> {
    let mut alternatives = Vec::new();
    for item in items {
        let is_joined = beside(&item.resolved()?).next().is_some();
        let mut members = object::declared(item)?.into_iter().flatten();
        let Some(member) = members.find(|member| member.name == tag) else {
            continue;
        };
        let value = constant(&member)?.unwrap_or_default().to_string();
        let ident = names::any_variant_name(&value, item);
        let content = schema::ty(item, &format!("{owner}{}", value.to_upper_camel_case()), derived)?;
        alternatives.push(Alternative {
            docs: item.description()?,
            // An alternative with its own unions has the member in a separate part.
            tag_field: Some(member.ident).filter(|_| !is_joined),
            ..Alternative::new(ident, value, Some(content))
        });
    }
    Ok((Tagging::Member(tag), alternatives))
}

/// Reads alternatives with serde's external tagging: strings and objects with exactly one member. `None` if an
/// alternative is neither, or if all are strings.
fn by_name(items: &[Node<'_>], owner: &str, derived: &mut Derived) -> Result<Option<Vec<Alternative>>, Problem> {
    let mut named: Vec<(String, String, Option<Node<'_>>, &Node<'_>)> = Vec::new();
    for item in items {
        let about = item.description()?;
        let texts = item.get("enum").and_then(|list| list.value().as_array());
        if let Some(texts) = texts.filter(|_| item.text_of("type").ok().flatten() == Some("string")) {
            for text in texts {
                let Some(text) = text.as_str() else { return Ok(None) };
                named.push((text.to_string(), about.clone(), None, item));
            }
            continue;
        }
        let closed = item.get("additionalProperties").is_some_and(|it| it.value() == false);
        let required = item.get("required").and_then(|list| list.value().as_array());
        match (required.map(Vec::as_slice), item.members_of("properties")?.as_slice()) {
            (Some([name]), [(known, content)]) if closed && name == *known && item.get("allOf").is_none() => {
                named.push(((*known).to_string(), about, Some(content.clone()), item));
            }
            _ => return Ok(None),
        }
    }
    let is_object = |(_, _, content, _): &(_, _, Option<Node<'_>>, _)| content.is_some();
    let is_twice =
        |(index, (name, ..)): (usize, &(String, _, _, _))| named[..index].iter().any(|(known, ..)| known == name);
    if !named.iter().any(is_object) || named.iter().enumerate().any(is_twice) {
        return Ok(None);
    }
    let mut alternatives = Vec::new();
    for (name, docs, content, item) in named {
        let proposed = format!("{owner}{}", name.to_upper_camel_case());
        let content = content.map(|content| schema::inner(&content, &proposed, derived));
        let ident = names::any_variant_name(&name, item);
        alternatives.push(Alternative {
            docs,
            ..Alternative::new(ident, name, content.transpose()?)
        });
    }
    Ok(Some(alternatives))
}

/// Reads alternatives with serde's `untagged`: each one is tried.
fn by_value(items: &[Node<'_>], owner: &str, derived: &mut Derived) -> Result<Vec<Alternative>, Problem> {
    let mut alternatives: Vec<Alternative> = Vec::new();
    for item in items {
        let name = called(item)?;
        let is_free = |name: &String| alternatives.iter().all(|known| known.values[0] != *name);
        let unique = numbered(name.clone()).find(is_free).unwrap_or(name);
        let content = schema::inner(item, &format!("{owner}{}", unique.to_upper_camel_case()), derived)?;
        alternatives.push(Alternative {
            docs: item.description()?,
            ..Alternative::new(names::any_variant_name(&unique, item), unique, Some(content))
        });
    }
    Ok(alternatives)
}

/// The name of an alternative without a name on the wire: its title, its schema's name, or its format or type.
fn called(item: &Node<'_>) -> Result<String, Problem> {
    if let Some(title) = item.text_of("title")? {
        return Ok(title.to_string());
    }
    let wrapped = item.all_of()?.into_iter().flatten().next();
    let reference = wrapped.as_ref().unwrap_or(item).text_of("$ref")?;
    if let Some(reference) = reference {
        return Ok(reference.trim_start_matches(SCHEMAS).to_string());
    }
    let word = item.text_of("format")?.or(item.text_of("type")?);
    Ok(word.unwrap_or("value").to_string())
}
