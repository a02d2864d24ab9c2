//! Objects with declared members, which may be combined with `allOf`.

use proc_macro2::Ident;
use serde_json::Value;
use syn::ext::IdentExt;

use super::field;
use super::keywords::allow;
use super::schema::{self, Derived};
use super::{names, union};
use crate::error::Problem;
use crate::model::{Field, MapRules, Others, Shape, Struct, Type};
use crate::node::Node;

/// Whether the schema at `node` declares members, in `properties` or in the parts of an `allOf`.
///
/// # Errors
/// If a reference points to nothing.
pub fn is_object(node: &Node<'_>) -> Result<bool, Problem> {
    fn look(node: &Node<'_>, depth: usize) -> Result<bool, Problem> {
        let node = node.resolved()?;
        if node.get("properties").is_some() {
            return Ok(true);
        }
        if node
            .get("additionalProperties")
            .is_some_and(|it| it.value() == &Value::Bool(false))
        {
            return Ok(true);
        }
        let Some(parts) = node.get("allOf") else {
            return Ok(false);
        };
        let parts = parts.items()?;
        // An `allOf` of several parts always combines objects. Unsuitable parts are refused when the members are
        // collected.
        if depth > DEEPEST || parts.len() > 1 {
            return Ok(true);
        }
        for part in parts {
            if look(&part, depth + 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
    look(node, 0)
}

/// The maximum nesting of `allOf`, which also ends cycles.
const DEEPEST: usize = 32;

/// Reads an object whose Rust name is `owner`.
///
/// # Errors
/// The first part that is not supported.
pub fn object(node: &Node<'_>, owner: &str, derived: &mut Derived) -> Result<Struct, Problem> {
    let mut parts = Parts {
        is_joined: union::beside(node).next().is_some(),
        ..Parts::default()
    };
    parts.gather(node, owner, derived, 0)?;
    for (name, place) in &parts.required {
        match parts.fields.iter_mut().find(|field| field.name == *name) {
            Some(field) => field.required = true,
            None => {
                return Err(place.refuse(format!(
                    "`{name}` is required but not declared in `properties`; declare it"
                )));
            }
        }
    }
    let mut others = match node.get("additionalProperties") {
        None => Others::Ignored,
        Some(place) if place.value() == &Value::Bool(false) => {
            if node.get("allOf").is_some() {
                return Err(place.refuse(
                    "`additionalProperties: false` beside an `allOf` would refuse the members of \
                                         its parts; remove it",
                ));
            }
            Others::Refused
        }
        Some(place) => Others::Kept(Box::new(others(&place, owner, derived)?)),
    };
    let kept = match &mut others {
        Others::Kept(field) => Some(&mut field.ident),
        _ => None,
    };
    names::distinct(parts.fields.iter_mut().map(|field| &mut field.ident).chain(kept));
    Ok(Struct {
        fields: parts.fields,
        others,
    })
}

#[derive(Default)]
struct Parts<'a> {
    /// Whether alternatives are declared beside the members. They are read separately.
    is_joined: bool,
    fields: Vec<Field>,
    required: Vec<(&'a str, Node<'a>)>,
}

impl<'a> Parts<'a> {
    fn gather(&mut self, node: &Node<'a>, owner: &str, derived: &mut Derived, depth: usize) -> Result<(), Problem> {
        if depth > DEEPEST {
            return Err(node.refuse("the references of this `allOf` form a cycle; remove one of them"));
        }
        if let Some(reference) = node.text_of("$ref")? {
            let owner = names::named(reference, node)?.unraw().to_string();
            return self.gather(&node.resolved()?, &owner, derived, depth + 1);
        }
        match node.text_of("type")? {
            Some("object") => {}
            None if node.get("allOf").is_some() => {}
            // A part may only declare which members of other parts are required.
            None if depth > 0 && node.get("properties").is_none() && node.get("required").is_some() => {}
            _ if depth > 0 => return Err(node.refuse("the parts of an `allOf` must be objects with declared members")),
            _ => return Err(node.refuse("a schema with `properties` must have `type: object`")),
        }
        let mut known = vec!["type", "properties", "required", "additionalProperties", "allOf"];
        if self.is_joined && depth == 0 {
            known.extend(union::KEYWORDS);
            known.push("discriminator");
            if let Some(place) = node.get("additionalProperties") {
                return Err(place.refuse(
                    "`additionalProperties` is not supported beside alternatives, because it would also apply to their \
                     members; move the map into a member",
                ));
            }
        }
        allow(node, &known)?;
        if depth > 0
            && let Some(place) = node.get("additionalProperties")
        {
            return Err(place.refuse(
                "`additionalProperties` in a part of an `allOf` is not supported; move the map into a member",
            ));
        }
        if let Some(list) = node.get("allOf") {
            for part in list.items()? {
                self.gather(&part, owner, derived, depth + 1)?;
            }
        }
        if let Some(properties) = node.get("properties") {
            for (name, place) in properties.members()? {
                let field = field::field(name, place.description()?, false, &place, owner, derived)?;
                self.add(field, &place)?;
            }
        }
        if let Some(list) = node.get("required") {
            for item in list.items()? {
                self.required.push((item.text()?, item));
            }
        }
        Ok(())
    }

    /// Adds a member. If two parts declare it, the declarations must be equal.
    fn add(&mut self, field: Field, place: &Node<'a>) -> Result<(), Problem> {
        match self.fields.iter().find(|known| known.name == field.name) {
            None => self.fields.push(field),
            Some(known) if known.schema == field.schema => {}
            Some(known) => {
                return Err(place.refuse(format!(
                    "`{}` is declared differently at {}; the parts of an `allOf` must agree",
                    field.name, known.pointer
                )));
            }
        }
        Ok(())
    }
}

/// The field that keeps undeclared members.
fn others(place: &Node<'_>, owner: &str, derived: &mut Derived) -> Result<Field, Problem> {
    let values = match place.value() {
        Value::Bool(_) => Type::Any,
        _ => schema::ty(place, &format!("{owner}Other"), derived)?,
    };
    let is_enumeration = |ident: &Ident| {
        let mut known = derived.iter();
        known.any(|it| it.ident == *ident && matches!(it.shape, Shape::Enum(_)))
    };
    let is_enumeration = matches!(&values, Type::Named(ident) if is_enumeration(ident));
    // serde buffers these members, so types that need the original text cannot be read.
    let plain = matches!(
        values,
        Type::String { .. }
            | Type::Integer { .. }
            | Type::Number { .. }
            | Type::Boolean
            | Type::Date
            | Type::DateTime
            | Type::Uuid
            | Type::Any
    );
    if !(plain || is_enumeration) || place.flag("nullable").unwrap_or(false) {
        return Err(place.refuse(
            "beside declared members, `additionalProperties` must be strings, numbers, booleans, inline enumerations \
             or any values; move the map into a member",
        ));
    }
    let ty = Type::Map {
        values: Box::new(values),
        rules: MapRules::NONE,
    };
    Ok(Field {
        name: "additional_properties".into(),
        ident: names::field_name("additional_properties", place),
        docs: "The undeclared members.".into(),
        ty,
        required: true,
        nullable: false,
        default: None,
        list: None,
        deprecated: false,
        one_way: None,
        two_way_type: false,
        schema: Value::Null,
        pointer: place.pointer().to_string(),
    })
}
