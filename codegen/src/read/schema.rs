//! Schemas and their types, which are named or get a derived name.
//!
//! Schemas nest, so this module and `field`, `object` and `union` call each other.

use codegen_runtime::ArrayRules;
use proc_macro2::Ident;
use serde_json::Value;
use syn::ext::IdentExt;

use super::embed::{embedded, references};
use super::field::may_be_null;
use super::{enumerations, field, names, object, scalar, union};
use crate::error::Problem;
use crate::keywords::{ANNOTATIONS, allow, is_of_another_type};
use crate::model::{MapRules, PLAUSIBLE_RANGE, Shape, Type, TypeDefinition};
use crate::node::Node;

/// The types of inline schemas, with names derived from their places.
pub type Derived = Vec<TypeDefinition>;

pub fn definition(name: &str, node: &Node<'_>, derived: &mut Derived) -> Result<TypeDefinition, Problem> {
    match node.flag("nullable")? {
        true => nullable(name, node, false, derived),
        false => defined(name, node, false, derived),
    }
}

/// The named type of the schema at `node`: the one that it refers to, or a new one with a name derived from `proposed`.
pub fn named_type(node: &Node<'_>, proposed: &str, derived: &mut Derived) -> Result<Ident, Problem> {
    if node.flag("nullable")? {
        let is_this = |known: &&TypeDefinition| {
            let is_any = matches!(known.shape, Shape::Newtype(Type::Any | Type::Null));
            known.pointer == node.pointer() && (is_nullable(known) || is_any)
        };
        if let Some(known) = derived.iter().find(is_this) {
            return Ok(known.ident.clone());
        }
        let definition = nullable(&names::derived_name(proposed, node), node, true, derived)?;
        let ident = definition.ident.clone();
        derived.push(definition);
        return Ok(ident);
    }
    if let Some(reference) = reference(node)?
        && let Type::Named(ident) = ty(&reference, proposed, derived)?
    {
        return Ok(ident);
    }
    derive(node, proposed, derived)
}

/// The reference at `node`, possibly wrapped in an `allOf` that only adds annotations. Such a schema does not define a
/// type.
pub fn reference<'a>(node: &Node<'a>) -> Result<Option<Node<'a>>, Problem> {
    if node.get("$ref").is_some() {
        return Ok(Some(node.clone()));
    }
    let is_annotation_of_reference =
        |key: &str| key == "allOf" || ANNOTATIONS.contains(&key) && !["nullable", "default"].contains(&key);
    let has_other_keywords = node.members()?.iter().any(|(key, _)| !is_annotation_of_reference(key));
    Ok(match node.all_of()?.as_deref() {
        Some([only]) if !has_other_keywords && only.get("$ref").is_some() => Some(only.clone()),
        _ => None,
    })
}

/// Defines a type for the schema at `node`, with a name derived from `proposed`.
fn derive(node: &Node<'_>, proposed: &str, derived: &mut Derived) -> Result<Ident, Problem> {
    // A shared schema (through `allOf`, a path item or a shared response) is read several times but defines one type,
    // named by the first place. A recursive schema also finds its type here.
    let is_this = |known: &&TypeDefinition| known.pointer == node.pointer() && !is_nullable(known);
    if let Some(known) = derived.iter().find(is_this) {
        return Ok(known.ident.clone());
    }
    let proposed = &names::derived_name(proposed, node);
    let ident = names::type_name(proposed, node)?;
    // A placeholder while the type is being read.
    let unread = Shape::Newtype(Type::Any);
    derived.push(TypeDefinition::new(proposed, ident.clone(), unread, node.pointer()));
    let definition = defined(proposed, node, true, derived)?;
    derived.retain(|known| known.ident != ident);
    derived.push(definition);
    Ok(ident)
}

/// Whether the definition only adds null to another type, which has the same pointer.
fn is_nullable(definition: &TypeDefinition) -> bool {
    matches!(definition.shape, Shape::Newtype(Type::Nullable(_)))
}

/// Defines a nullable type as a newtype of an `Option`.
fn nullable(name: &str, node: &Node<'_>, inline: bool, derived: &mut Derived) -> Result<TypeDefinition, Problem> {
    let value = ty(node, &format!("{name}Value"), derived)?;
    let shape = match value {
        // These types already include null.
        Type::Any | Type::Null => Shape::Newtype(value),
        value => Shape::Newtype(Type::Nullable(Box::new(value))),
    };
    with_shape(name, node, inline, shape)
}

fn defined(name: &str, node: &Node<'_>, inline: bool, derived: &mut Derived) -> Result<TypeDefinition, Problem> {
    let owner = &names::type_name(name, node)?.unraw().to_string();
    let union = union::KEYWORDS.into_iter().find(|keyword| node.get(keyword).is_some());
    let shape = if is_null(node) {
        Shape::Newtype(Type::Null)
    } else if let Some(documented) = enumerations::documented(node)? {
        Shape::Enum(documented)
    } else if node.get("enum").is_some() {
        Shape::Enum(enumerations::enumeration(node)?)
    } else if union::beside(node).next().is_some() {
        union::joined(node, owner, derived)?
    } else if let Some(keyword) = union {
        union::union(node, keyword, owner, derived)?
    } else if object::is_object(node)? {
        Shape::Struct(object::object(node, owner, derived)?)
    } else {
        Shape::Newtype(ty(node, &format!("{owner}Value"), derived)?)
    };
    with_shape(name, node, inline, shape)
}

fn with_shape(name: &str, node: &Node<'_>, inline: bool, shape: Shape) -> Result<TypeDefinition, Problem> {
    let mut refers_to = Vec::new();
    references(node, &mut refers_to)?;
    Ok(TypeDefinition {
        docs: node.description()?,
        schema: embedded(node.value()),
        refers_to,
        inline,
        ..TypeDefinition::new(name, names::type_name(name, node)?, shape, node.pointer())
    })
}

/// Defines a type for a part of a schema, with a name derived from `proposed`.
pub fn derived_part(proposed: &str, node: &Node<'_>, shape: Shape, derived: &mut Derived) -> Result<Ident, Problem> {
    let is_this = |known: &&TypeDefinition| known.pointer == node.pointer();
    if let Some(known) = derived.iter().find(is_this) {
        return Ok(known.ident.clone());
    }
    let name = names::derived_name(proposed, node);
    let ident = names::type_name(&name, node)?;
    derived.push(TypeDefinition::new(&name, ident.clone(), shape, node.pointer()));
    Ok(ident)
}

/// Whether null is the only value (`enum: [null]`, which Dropshot emits for `()`).
fn is_null(node: &Node<'_>) -> bool {
    let values = node.get("enum").and_then(|list| list.value().as_array());
    values.is_some_and(|values| !values.is_empty() && values.iter().all(Value::is_null))
}

/// The type of the schema at `node`. If it needs a name and has none, the name is derived from `proposed`.
pub fn ty(node: &Node<'_>, proposed: &str, derived: &mut Derived) -> Result<Type, Problem> {
    if let Some(reference) = node.text_of("$ref")? {
        if let Some((key, place)) = node.members()?.into_iter().find(|(key, _)| *key != "$ref") {
            return Err(place.reject(format!(
                "OpenAPI 3.0 ignores `{key}` beside a `$ref`; wrap the reference in an `allOf`"
            )));
        }
        let ident = names::named(reference, node)?;
        node.resolved()?;
        return Ok(Type::Named(ident));
    }
    if let Some(place) = node.get("not")
        && node.text_of("type")? != Some("integer")
    {
        // Dropshot emits this for a type without values.
        if place.value().as_object().is_some_and(serde_json::Map::is_empty) {
            allow(node, &["not"])?;
            return Ok(Type::Never);
        }
        return Err(place.reject("`not` is supported only as `not: {}`; declare a `type` instead"));
    }
    if is_null(node) {
        allow(node, &["type", "enum"])?;
        return Ok(Type::Null);
    }
    if let Some(parts) = node.all_of()? {
        // An `allOf` that adds a description, default or `nullable` to a reference.
        return match parts.as_slice() {
            [] if node.need("allOf")?.items()?.is_empty() => {
                Err(node.need("allOf")?.reject("an `allOf` must have at least one part"))
            }
            [] => Ok(Type::Any),
            // A single part without members is equivalent to the schema itself.
            [only] if node.get("properties").is_none() && !is_inline_object(only)? => {
                let target = match object::is_object(only)? {
                    true => Some("object"),
                    false => only.resolved()?.text_of("type")?,
                };
                let is_same_type = target.is_some() && node.text_of("type")? == target;
                let has_no_effect =
                    |key: &&str| *key == "type" && is_same_type || target.is_some_and(|ty| is_of_another_type(key, ty));
                let members = node.members()?.into_iter().map(|(key, _)| key);
                let known: Vec<&str> = members.filter(has_no_effect).chain(["allOf"]).collect();
                allow(node, &known)?;
                ty(only, proposed, derived)
            }
            _ => Ok(Type::Named(derive(node, proposed, derived)?)),
        };
    }
    let mut of_named_types = ["enum", "oneOf", "anyOf", "properties"].iter();
    if of_named_types.any(|key| node.get(key).is_some()) {
        return Ok(Type::Named(derive(node, proposed, derived)?));
    }
    match node.text_of("type")? {
        None => {
            // A format that is not known restricts nothing.
            allow(node, &["format"])?;
            Ok(Type::Any)
        }
        Some("string") => scalar::string(node),
        Some("boolean") => {
            allow(node, &["type"])?;
            Ok(Type::Boolean)
        }
        Some("integer") => scalar::integer(node),
        Some("number") => scalar::number(node),
        Some("array") => array(node, proposed, derived),
        Some("object") if object::is_object(node)? => Ok(Type::Named(derive(node, proposed, derived)?)),
        Some("object") => map(node, proposed, derived),
        Some(other) => Err(node.reject(format!("the type `{other}` does not exist in OpenAPI"))),
    }
}

fn is_inline_object(node: &Node<'_>) -> Result<bool, Problem> {
    Ok(node.get("$ref").is_none() && object::is_object(node)?)
}

fn array(node: &Node<'_>, proposed: &str, derived: &mut Derived) -> Result<Type, Problem> {
    allow(node, &["type", "items", "minItems", "maxItems", "uniqueItems"])?;
    let (min_items, max_items) = scalar::span(node, "minItems", "maxItems")?;
    let items = inner(&node.need("items")?, &format!("{proposed}Item"), derived)?;
    let (items, unique_items) = (Box::new(items), node.flag("uniqueItems")?);
    let rules = ArrayRules {
        min_items,
        max_items,
        unique_items,
    };
    Ok(Type::Array { items, rules })
}

fn map(node: &Node<'_>, proposed: &str, derived: &mut Derived) -> Result<Type, Problem> {
    let counts = ["minProperties", "maxProperties"];
    let known = [
        &["type", "additionalProperties", "x-key-pattern", PLAUSIBLE_RANGE],
        &counts[..],
    ]
    .concat();
    allow(node, &known)?;
    let values = match node.get("additionalProperties") {
        None => Type::Any,
        Some(place) if place.value() == &Value::Bool(true) => Type::Any,
        Some(place) => inner(&place, &format!("{proposed}Value"), derived)?,
    };
    let (min_properties, max_properties) = scalar::span(node, counts[0], counts[1])?;
    let rules = MapRules {
        min_properties,
        max_properties,
        key_pattern: scalar::pattern(node, "x-key-pattern")?,
    };
    let values_are_exact = matches!(values, Type::ExactNumber { .. });
    field::plausible_range(node, rules.key_pattern.as_ref(), values_are_exact)?;
    let values = Box::new(values);
    Ok(Type::Map { values, rules })
}

/// The type of an array's items, a map's values or an alternative. If it needs a name, it is derived from `proposed`.
pub fn inner(node: &Node<'_>, proposed: &str, derived: &mut Derived) -> Result<Type, Problem> {
    let inner = ty(node, proposed, derived)?;
    if matches!(inner, Type::Decimal { .. }) {
        return Err(node.reject(
            "items and map values with `format: decimal` must be named schemas; move this schema to components/schemas \
             and refer to it",
        ));
    }
    Ok(match node.flag("nullable")? || may_be_null(node)? {
        true if inner != Type::Any => Type::Nullable(Box::new(inner)),
        _ => inner,
    })
}
