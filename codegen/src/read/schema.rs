//! Schemas: the types that they are, with the names that those have or are given.

use codegen_runtime::ArrayRules;
use proc_macro2::Ident;
use serde_json::Value;
use syn::ext::IdentExt;

use super::embed::{embedded, references};
use super::field::may_be_null;
use super::keywords::{ANNOTATIONS, allow};
use super::{enumerations, names, object, plausible, scalar, union};
use crate::Problem;
use crate::model::{MapRules, Shape, Type, TypeDefinition};
use crate::node::Node;

/// Types of schemas that stand inside other schemas, with names made of the place where they stand.
pub type Derived = Vec<TypeDefinition>;

/// Reads a component schema.
///
/// # Errors
/// What cannot be generated, with its place.
pub fn definition(name: &str, node: &Node<'_>, derived: &mut Derived) -> Result<TypeDefinition, Problem> {
    match node.flag("nullable")? {
        true => nullable(name, node, false, derived),
        false => defined(name, node, false, derived),
    }
}

/// The type of the schema at `node`, as one with a name: that of the reference, or one derived, `proposed`.
///
/// # Errors
/// What cannot be generated, with its place.
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

/// The reference that the schema at `node` is, or goes around to say more of it. What stands there is no type of its own.
///
/// # Errors
/// When an `allOf` is no list.
pub fn reference<'a>(node: &Node<'a>) -> Result<Option<Node<'a>>, Problem> {
    if node.get("$ref").is_some() {
        return Ok(Some(node.clone()));
    }
    let is_said_of_it =
        |key: &str| key == "allOf" || ANNOTATIONS.contains(&key) && !["nullable", "default"].contains(&key);
    let says_more = node.members()?.iter().any(|(key, _)| !is_said_of_it(key));
    Ok(
        match node.get("allOf").map(|list| list.items()).transpose()?.as_deref() {
            Some([only]) if !says_more && only.get("$ref").is_some() => Some(only.clone()),
            _ => None,
        },
    )
}

/// Gives the schema at `node` the name `proposed`.
fn derive(node: &Node<'_>, proposed: &str, derived: &mut Derived) -> Result<Ident, Problem> {
    // A schema that several places share (through allOf, a path, a shared response) is read several times, but is one
    // type, named by whoever came first. One that holds itself finds itself here while it is read.
    if let Some(known) = derived
        .iter()
        .find(|known| known.pointer == node.pointer() && !is_nullable(known))
    {
        return Ok(known.ident.clone());
    }
    let proposed = &names::derived_name(proposed, node);
    let ident = names::type_name(proposed, node)?;
    derived.push(unread(proposed, &ident, node));
    let definition = defined(proposed, node, true, derived)?;
    derived.retain(|known| known.ident != ident);
    derived.push(definition);
    Ok(ident)
}

/// Whether it adds null to another type, which then stands at the same place.
fn is_nullable(definition: &TypeDefinition) -> bool {
    matches!(definition.shape, Shape::Newtype(Type::Nullable(_)))
}

/// What stands for a type while it is read.
fn unread(name: &str, ident: &Ident, node: &Node<'_>) -> TypeDefinition {
    TypeDefinition {
        name: name.to_string(),
        ident: ident.clone(),
        docs: String::new(),
        shape: Shape::Newtype(Type::Any),
        schema: Value::Null,
        refers_to: Vec::new(),
        in_requests: false,
        in_responses: false,
        inline: true,
        pointer: node.pointer().to_string(),
    }
}

/// A named type that may be null: a newtype of what it is otherwise.
fn nullable(name: &str, node: &Node<'_>, inline: bool, derived: &mut Derived) -> Result<TypeDefinition, Problem> {
    let value = ty(node, &format!("{name}Value"), derived)?;
    let shape = match value {
        // Its values include null already.
        Type::Any | Type::Null => Shape::Newtype(value),
        value => Shape::Newtype(Type::Nullable(Box::new(value))),
    };
    with_shape(name, node, inline, shape)
}

fn defined(name: &str, node: &Node<'_>, inline: bool, derived: &mut Derived) -> Result<TypeDefinition, Problem> {
    let ident = names::type_name(name, node)?;
    let shape = if is_null(node) {
        Shape::Newtype(Type::Null)
    } else if let Some(documented) = enumerations::documented(node)? {
        Shape::Enum(documented)
    } else if node.get("enum").is_some() {
        Shape::Enum(enumerations::enumeration(node)?)
    } else if union::beside(node).next().is_some() {
        union::joined(node, &ident.unraw().to_string(), derived)?
    } else if node.get("oneOf").is_some() {
        union::union(node, "oneOf", &ident.unraw().to_string(), derived)?
    } else if node.get("anyOf").is_some() {
        union::union(node, "anyOf", &ident.unraw().to_string(), derived)?
    } else if object::is_object(node)? {
        Shape::Struct(object::object(node, &ident.unraw().to_string(), derived)?)
    } else {
        Shape::Newtype(ty(node, &format!("{}Value", ident.unraw()), derived)?)
    };
    with_shape(name, node, inline, shape)
}

fn with_shape(name: &str, node: &Node<'_>, inline: bool, shape: Shape) -> Result<TypeDefinition, Problem> {
    let mut refers_to = Vec::new();
    references(node, &mut refers_to)?;
    Ok(TypeDefinition {
        name: name.to_string(),
        ident: names::type_name(name, node)?,
        docs: docs(node)?,
        shape,
        schema: embedded(node.value()),
        refers_to,
        in_requests: false,
        in_responses: false,
        inline,
        pointer: node.pointer().to_string(),
    })
}

/// Gives a name to a part of a schema, which its place in the schema tells from the whole.
///
/// # Errors
/// When nothing of the name can stand in Rust.
pub fn derived_part(proposed: &str, node: &Node<'_>, shape: Shape, derived: &mut Derived) -> Result<Ident, Problem> {
    let is_this = |known: &&TypeDefinition| known.pointer == node.pointer();
    if let Some(known) = derived.iter().find(is_this) {
        return Ok(known.ident.clone());
    }
    let name = names::derived_name(proposed, node);
    let ident = names::type_name(&name, node)?;
    derived.push(TypeDefinition {
        shape,
        docs: String::new(),
        ..unread(&name, &ident, node)
    });
    Ok(ident)
}

/// Whether null is the only value (`enum: [null]`, as Dropshot writes Rust's `()`).
fn is_null(node: &Node<'_>) -> bool {
    let values = node.get("enum").and_then(|list| list.value().as_array());
    values.is_some_and(|values| !values.is_empty() && values.iter().all(Value::is_null))
}

/// The type of the schema at `node`; `proposed` names it if it has no name and needs one.
///
/// # Errors
/// What cannot be generated, with its place.
pub fn ty(node: &Node<'_>, proposed: &str, derived: &mut Derived) -> Result<Type, Problem> {
    if let Some(reference) = node.text_of("$ref")? {
        if let Some((key, place)) = node.members()?.into_iter().find(|(key, _)| *key != "$ref") {
            return Err(place.refuse(format!(
                "OpenAPI 3.0 ignores `{key}` beside a `$ref`; put the reference into an `allOf` of its own"
            )));
        }
        let ident = named(reference, node)?;
        node.resolved()?;
        return Ok(Type::Named(ident));
    }
    if let Some(place) = node.get("not")
        && node.text_of("type")? != Some("integer")
    {
        // As Dropshot writes a type without values.
        if place.value().as_object().is_some_and(serde_json::Map::is_empty) {
            allow(node, &["not"])?;
            return Ok(Type::Never);
        }
        return Err(place.refuse("`not` is supported only as `not: {}`, which no value is; name one type"));
    }
    if is_null(node) {
        allow(node, &["type", "enum"])?;
        return Ok(Type::Null);
    }
    if let Some(all_of) = node.get("allOf") {
        // The wrapper that gives a reference a description, a default or `nullable` of its own.
        return match all_of.items()?.as_slice() {
            [] => Err(all_of.refuse("an `allOf` needs at least one part")),
            // One part that names no members is the schema itself.
            [only] if node.get("properties").is_none() && !is_inline_object(only)? => {
                allow(node, &["allOf"])?;
                ty(only, proposed, derived)
            }
            _ => Ok(Type::Named(derive(node, proposed, derived)?)),
        };
    }
    if ["enum", "oneOf", "anyOf", "properties"]
        .iter()
        .any(|key| node.get(key).is_some())
    {
        return Ok(Type::Named(derive(node, proposed, derived)?));
    }
    match node.text_of("type")? {
        None => {
            allow(node, &[])?;
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
        Some(other) => Err(node.refuse(format!("type `{other}` is unknown"))),
    }
}

fn is_inline_object(node: &Node<'_>) -> Result<bool, Problem> {
    Ok(node.get("$ref").is_none() && object::is_object(node)?)
}

fn array(node: &Node<'_>, proposed: &str, derived: &mut Derived) -> Result<Type, Problem> {
    allow(node, &["type", "items", "minItems", "maxItems", "uniqueItems"])?;
    let (min_items, max_items) = scalar::span(node, "minItems", "maxItems")?;
    let items = inner(&node.need("items")?, &format!("{proposed}Item"), derived)?;
    let rules = ArrayRules {
        min_items,
        max_items,
        unique_items: node.flag("uniqueItems")?,
    };
    Ok(Type::Array {
        items: Box::new(items),
        rules,
    })
}

fn map(node: &Node<'_>, proposed: &str, derived: &mut Derived) -> Result<Type, Problem> {
    allow(
        node,
        &[
            "type",
            "additionalProperties",
            "minProperties",
            "maxProperties",
            "x-key-pattern",
            plausible::KEYWORD,
        ],
    )?;
    let values = match node.get("additionalProperties") {
        None => Type::Any,
        Some(place) if place.value() == &Value::Bool(true) => Type::Any,
        Some(place) => inner(&place, &format!("{proposed}Value"), derived)?,
    };
    let (min_properties, max_properties) = scalar::span(node, "minProperties", "maxProperties")?;
    let rules = MapRules {
        min_properties,
        max_properties,
        key_pattern: scalar::pattern(node, "x-key-pattern")?,
    };
    let values_are_exact = matches!(values, Type::ExactNumber { .. });
    plausible::check(node, rules.key_pattern.as_ref(), values_are_exact)?;
    Ok(Type::Map {
        values: Box::new(values),
        rules,
    })
}

/// The type of an array's items, a map's values or an alternative; `proposed` names it if it needs a name.
///
/// # Errors
/// What cannot be generated, with its place.
pub fn inner(node: &Node<'_>, proposed: &str, derived: &mut Derived) -> Result<Type, Problem> {
    let inner = ty(node, proposed, derived)?;
    if matches!(inner, Type::Decimal { .. }) {
        return Err(node.refuse(
            "items and map values of `format: decimal` need a name: move this schema to components/schemas and \
             refer to it",
        ));
    }
    if let Some(place) = node.get("default") {
        return Err(place.refuse("an item or a map's value cannot be left out, so it has no default"));
    }
    Ok(match node.flag("nullable")? || may_be_null(node)? {
        true if inner != Type::Any => Type::Nullable(Box::new(inner)),
        _ => inner,
    })
}

/// The description, trimmed; empty when there is none.
///
/// # Errors
/// When it is no string.
pub fn docs(node: &Node<'_>) -> Result<String, Problem> {
    Ok(node.text_of("description")?.unwrap_or_default().trim().to_string())
}

/// The Rust name of the component schema that `reference` names.
///
/// # Errors
/// When it names something else.
pub fn named(reference: &str, node: &Node<'_>) -> Result<Ident, Problem> {
    match reference.strip_prefix("#/components/schemas/") {
        Some(name) if !name.contains('/') => names::type_name(name, node),
        _ => Err(node.refuse(format!("`{reference}` must name a schema under #/components/schemas/"))),
    }
}
