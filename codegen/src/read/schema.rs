//! Schemas: named types, members and parameters.

use heck::ToUpperCamelCase;
use proc_macro2::Ident;
use serde_json::Value;
use syn::ext::IdentExt;

use super::embed::{embedded, references};
use super::{names, object, scalar, union};
use crate::Problem;
use crate::model::{Field, Shape, Type, TypeDefinition, Variant};
use crate::node::Node;

/// What may stand beside any keyword and changes nothing in Rust.
const ANNOTATIONS: [&str; 10] = [
    "title",
    "description",
    "example",
    "externalDocs",
    "deprecated",
    "readOnly",
    "writeOnly",
    "nullable",
    "default",
    "xml",
];

/// Types of schemas that stand inside other schemas, with names made of the place where they stand.
pub type Derived = Vec<TypeDefinition>;

/// Reads a component schema.
///
/// # Errors
/// What cannot be generated, with its place.
pub fn definition(name: &str, node: &Node<'_>, derived: &mut Derived) -> Result<TypeDefinition, Problem> {
    if node.flag("nullable")? {
        return Err(node.refuse("a named schema cannot be nullable; say `nullable` where it is used"));
    }
    if node.get("default").is_some() {
        return Err(node.refuse("a named schema cannot have a default; give it where the schema is used"));
    }
    defined(name, node, false, derived)
}

/// The type of the schema at `node`, as one with a name: that of the reference, or one derived, `proposed`.
///
/// # Errors
/// What cannot be generated, with its place.
pub fn named_type(node: &Node<'_>, proposed: &str, derived: &mut Derived) -> Result<Ident, Problem> {
    if node.flag("nullable")? {
        return Err(node.refuse("a body cannot be null"));
    }
    if node.get("$ref").is_some()
        && let Type::Named(ident) = ty(node, proposed, derived)?
    {
        return Ok(ident);
    }
    derive(node, proposed, derived)
}

/// Gives the schema at `node` the name `proposed`.
fn derive(node: &Node<'_>, proposed: &str, derived: &mut Derived) -> Result<Ident, Problem> {
    // A schema that several places share (through allOf, a path, a shared response) is read several times, but is one
    // type, named by whoever came first. One that holds itself finds itself here while it is read.
    if let Some(known) = derived.iter().find(|known| known.pointer == node.pointer()) {
        return Ok(known.ident.clone());
    }
    let proposed = &names::derived_name(proposed, node);
    let ident = names::type_name(proposed, node)?;
    derived.push(unread(proposed, &ident, node));
    let definition = defined(proposed, node, true, derived)?;
    derived.retain(|known| known.pointer != definition.pointer);
    derived.push(definition);
    Ok(ident)
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

fn defined(name: &str, node: &Node<'_>, inline: bool, derived: &mut Derived) -> Result<TypeDefinition, Problem> {
    let ident = names::type_name(name, node)?;
    let shape = if let Some(documented) = documented_values(node)? {
        Shape::Enum(documented)
    } else if node.get("enum").is_some() {
        Shape::Enum(variants(node)?)
    } else if node.get("oneOf").is_some() {
        Shape::Union(union::union(node)?)
    } else if object::is_object(node)? {
        Shape::Struct(object::object(node, &ident.unraw().to_string(), derived)?)
    } else {
        Shape::Newtype(ty(node, &format!("{}Value", ident.unraw()), derived)?)
    };
    let mut refers_to = Vec::new();
    references(node, &mut refers_to)?;
    Ok(TypeDefinition {
        name: name.to_string(),
        ident,
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

/// Reads one member of an object, or a parameter, whose schema stands at `node`; `owner` is the type it belongs to.
///
/// # Errors
/// What cannot be generated, with its place.
pub fn field(
    name: &str,
    docs: String,
    required: bool,
    node: &Node<'_>,
    owner: &str,
    derived: &mut Derived,
) -> Result<Field, Problem> {
    let default = node.get("default").map(|default| default.value().clone());
    let proposed = format!("{owner}{}", name.to_upper_camel_case());
    Ok(Field {
        name: name.to_string(),
        ident: names::field_name(name, node)?,
        docs,
        ty: ty(node, &proposed, derived)?,
        required,
        nullable: node.flag("nullable")?,
        default,
        deprecated: node.flag("deprecated")?,
        schema: embedded(node.value()),
        pointer: node.pointer().to_string(),
    })
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
    for keyword in ["anyOf", "not"] {
        if let Some(place) = node.get(keyword) {
            return Err(place.refuse(format!("`{keyword}` is not supported; name one type")));
        }
    }
    if let Some(all_of) = node.get("allOf") {
        // The wrapper that gives a reference a description, a default or `nullable` of its own.
        return match all_of.items()?.as_slice() {
            [] => Err(all_of.refuse("an `allOf` needs at least one part")),
            [only] if node.get("properties").is_none() && !is_inline_object(only)? => {
                allow(node, &["allOf"])?;
                ty(only, proposed, derived)
            }
            _ => Ok(Type::Named(derive(node, proposed, derived)?)),
        };
    }
    if node.get("enum").is_some() || node.get("oneOf").is_some() || node.get("properties").is_some() {
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
    allow(node, &["type", "items", "minItems", "maxItems"])?;
    let (min_items, max_items) = scalar::span(node, "minItems", "maxItems")?;
    let items = inner(&node.need("items")?, &format!("{proposed}Item"), derived)?;
    Ok(Type::Array {
        items: Box::new(items),
        min_items,
        max_items,
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
        ],
    )?;
    let values = match node.get("additionalProperties") {
        None => Type::Any,
        Some(place) if place.value() == &Value::Bool(true) => Type::Any,
        Some(place) => inner(&place, &format!("{proposed}Value"), derived)?,
    };
    let (min_properties, max_properties) = scalar::span(node, "minProperties", "maxProperties")?;
    Ok(Type::Map {
        values: Box::new(values),
        min_properties,
        max_properties,
        key_pattern: scalar::pattern(node, "x-key-pattern")?,
    })
}

/// The type of an array's items or a map's values.
fn inner(node: &Node<'_>, proposed: &str, derived: &mut Derived) -> Result<Type, Problem> {
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
    Ok(match node.flag("nullable")? {
        true if inner != Type::Any => Type::Nullable(Box::new(inner)),
        _ => inner,
    })
}

fn variants(node: &Node<'_>) -> Result<Vec<Variant>, Problem> {
    allow(node, &["type", "enum"])?;
    if node.text_of("type")? != Some("string") {
        return Err(node.refuse("an enumeration needs `type: string`"));
    }
    let mut all = Vec::new();
    for item in node.need("enum")?.items()? {
        if item.value().is_null() && node.flag("nullable")? {
            continue;
        }
        let value = item.text()?;
        all.push(Variant {
            value: value.to_string(),
            ident: names::variant_name(value, &item)?,
            docs: String::new(),
        });
    }
    if all.is_empty() {
        return Err(node.refuse("an enumeration needs at least one value"));
    }
    names::distinct(all.iter().map(|variant| (variant.value.as_str(), &variant.ident)), node)?;
    Ok(all)
}

/// The values of an enumeration in the form that gives each a description: a `oneOf` of enumerations of one value.
/// `None` if this is none.
fn documented_values(node: &Node<'_>) -> Result<Option<Vec<Variant>>, Problem> {
    let Some(list) = node.get("oneOf") else { return Ok(None) };
    let mut all = Vec::new();
    for item in list.items()? {
        if item.get("enum").is_none() {
            return Ok(None);
        }
        let about = docs(&item)?;
        all.extend(variants(&item)?.into_iter().map(|variant| Variant {
            docs: about.clone(),
            ..variant
        }));
    }
    allow(node, &["oneOf"])?;
    names::distinct(all.iter().map(|variant| (variant.value.as_str(), &variant.ident)), node)?;
    Ok(Some(all))
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

/// Refuses keywords that would silently be ignored.
///
/// # Errors
/// Names the first such keyword.
pub fn allow(node: &Node<'_>, keywords: &[&str]) -> Result<(), Problem> {
    for (key, place) in node.members()? {
        let known = keywords.contains(&key) || ANNOTATIONS.contains(&key);
        // Rules of ours are refused where they would not be checked; other extensions are none of our business.
        let ours = ["x-decimal-places", "x-max-significant-digits", "x-key-pattern"].contains(&key);
        if !known && (ours || !key.starts_with("x-")) {
            return Err(place.refuse(format!(
                "`{key}` is not supported here; values would not be checked against it"
            )));
        }
    }
    Ok(())
}
