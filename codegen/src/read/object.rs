//! Objects with declared members, which may be combined with `allOf`.

use std::collections::BTreeSet;

use proc_macro2::Ident;
use serde_json::{Value, json};
use syn::ext::IdentExt;

use super::field;
use super::schema::{self, Derived};
use super::{names, union};
use crate::error::Problem;
use crate::keywords::allow;
use crate::model::{Field, MapRules, Others, Shape, Struct, Type};
use crate::node::Node;

/// Whether the schema at `node` declares members, in `properties` or in the parts of an `allOf`.
pub fn is_object(node: &Node<'_>) -> Result<bool, Problem> {
    let mut node = node.resolved()?;
    let mut seen = BTreeSet::new();
    while seen.insert(node.pointer().to_string()) {
        let is_closed = |it: Node<'_>| it.value() == &Value::Bool(false);
        if node.get("properties").is_some() || node.get("additionalProperties").is_some_and(is_closed) {
            return Ok(true);
        }
        match node.all_of()?.as_deref() {
            Some([only]) => node = only.resolved()?,
            // An `allOf` of several parts always combines objects. Unsuitable parts are rejected when the members are
            // collected.
            Some([_, ..]) => return Ok(true),
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// A declared member, before its type is read.
pub struct Member<'a> {
    pub name: &'a str,
    pub node: Node<'a>,
    pub ident: Ident,
    pub required: bool,
}

/// The members that an object declares, in the order of its fields; `None` if the schema at `node` is not an object.
pub fn declared<'a>(node: &Node<'a>) -> Result<Option<Vec<Member<'a>>>, Problem> {
    if !is_object(node)? {
        return Ok(None);
    }
    let (mut all, mut required) = (Vec::new(), Vec::new());
    collect(node, &mut all, &mut required, &mut BTreeSet::new())?;
    for member in &mut all {
        member.required = required.contains(&member.name);
    }
    names::distinct(all.iter_mut().map(|member| &mut member.ident));
    Ok(Some(all))
}

fn collect<'a>(
    node: &Node<'a>,
    all: &mut Vec<Member<'a>>,
    required: &mut Vec<&'a str>,
    seen: &mut BTreeSet<String>,
) -> Result<(), Problem> {
    let node = node.resolved()?;
    if !seen.insert(node.pointer().to_string()) {
        return Ok(());
    }
    for part in node.all_of()?.into_iter().flatten() {
        collect(&part, all, required, seen)?;
    }
    for (name, node) in node.members_of("properties")? {
        if !all.iter().any(|known| known.name == name) {
            all.push(Member {
                name,
                ident: names::field_name(name, &node),
                node,
                required: false,
            });
        }
    }
    let names = node.get("required").and_then(|list| list.value().as_array());
    required.extend(names.into_iter().flatten().filter_map(Value::as_str));
    Ok(())
}

/// Reads an object whose Rust name is `owner`.
pub fn object(node: &Node<'_>, owner: &str, derived: &mut Derived) -> Result<Struct, Problem> {
    let mut parts = Parts {
        is_joined: union::beside(node).next().is_some(),
        ..Parts::default()
    };
    parts.gather(node, owner, derived)?;
    for (name, place) in &parts.required {
        if parts.closed.as_ref().is_some_and(|allowed| !allowed.contains(name)) {
            return Err(place.reject(format!(
                "`{name}` is required, but an `additionalProperties: false` allows only the members in the `properties` beside \
                 it; declare it there"
            )));
        }
        match parts.fields.iter_mut().find(|field| field.name == *name) {
            Some(field) => field.required = true,
            // A member without a schema has any value.
            None => parts.fields.push(Field {
                required: true,
                ..Field::any(name, names::field_name(name, place), place.pointer())
            }),
        }
    }
    let mut others = match (parts.closed, parts.others) {
        (Some(allowed), _) => {
            parts.fields.retain(|field| allowed.contains(field.name.as_str()));
            Others::Rejected
        }
        (None, Some(place)) => Others::Kept(Box::new(others(&place, owner, derived)?)),
        (None, None) => Others::Ignored,
    };
    let others_ident = match &mut others {
        Others::Kept(field) => Some(&mut field.ident),
        _ => None,
    };
    let mut fields = parts.fields;
    names::distinct(fields.iter_mut().map(|field| &mut field.ident).chain(others_ident));
    Ok(Struct { fields, others })
}

#[derive(Default)]
struct Parts<'a> {
    /// Whether alternatives are declared beside the members. They are read separately.
    is_joined: bool,
    fields: Vec<Field>,
    required: Vec<(&'a str, Node<'a>)>,
    /// The members that every `additionalProperties: false` allows: those in the `properties` beside it.
    closed: Option<BTreeSet<&'a str>>,
    /// The schema of undeclared members.
    others: Option<Node<'a>>,
    /// The pointers of the schema and of the parts that contain the one being read.
    around: Vec<String>,
}

impl<'a> Parts<'a> {
    fn gather(&mut self, node: &Node<'a>, owner: &str, derived: &mut Derived) -> Result<(), Problem> {
        if let Some(reference) = node.text_of("$ref")? {
            let owner = names::named(reference, node)?.unraw().to_string();
            let target = node.resolved()?;
            if self.around.iter().any(|pointer| pointer == target.pointer()) {
                return Err(node.reject("the references of this `allOf` form a cycle; remove one of them"));
            }
            return self.gather(&target, &owner, derived).map_err(|problem| match problem {
                // The schema may be supported elsewhere, so the error is where it is a part.
                Problem::Rejected { pointer, reason, .. } if is_of_itself(&pointer, &target) => node.reject(format!(
                    "`{reference}` is not supported as a part of an `allOf`: {reason}"
                )),
                other => other,
            });
        }
        let is_part = !self.around.is_empty();
        match node.text_of("type")? {
            Some("object") => {}
            None if node.get("allOf").is_some() => {}
            // A part may only declare which members of other parts are required.
            None if is_part && node.get("properties").is_none() && node.get("required").is_some() => {}
            _ if is_part => return Err(node.reject("the parts of an `allOf` must be objects with declared members")),
            _ => return Err(node.reject("a schema with `properties` must have `type: object`")),
        }
        let mut known = vec!["type", "properties", "required", "additionalProperties", "allOf"];
        if is_part {
            // Inheriting schemas name the alternatives; the schema of the member applies here.
            known.push("discriminator");
        }
        if self.is_joined && !is_part {
            known.extend(union::KEYWORDS);
            known.push("discriminator");
            if let Some(place) = node.get("additionalProperties") {
                return Err(place.reject(
                    "`additionalProperties` is not supported beside alternatives, because it would also apply to their \
                     members; move the map into a member",
                ));
            }
        }
        allow(node, &known)?;
        self.around.push(node.pointer().to_string());
        for part in node.all_of()?.into_iter().flatten() {
            self.gather(&part, owner, derived)?;
        }
        let properties = node.members_of("properties")?;
        match node.get("additionalProperties") {
            None => {}
            Some(place) if place.value() == &Value::Bool(false) => {
                let own = properties.iter().map(|(name, _)| *name).collect();
                self.closed = Some(match self.closed.take() {
                    None => own,
                    Some(allowed) => &allowed & &own,
                });
            }
            Some(place) if is_part && ![json!(true), json!({})].contains(place.value()) => {
                return Err(place.reject(
                    "a schema in `additionalProperties` of a part would also apply to the members of the other parts; \
                     move the map into a member",
                ));
            }
            Some(place) => self.others = Some(place),
        }
        for (name, place) in properties {
            let field = field::field(name, place.description()?, false, &place, owner, derived)?;
            self.add(field, &place)?;
        }
        for item in node.items_of("required")? {
            self.required.push((item.text()?, item));
        }
        self.around.pop();
        Ok(())
    }

    /// Adds a member. If two parts declare it, one of the declarations must have all rules of the other.
    fn add(&mut self, field: Field, place: &Node<'a>) -> Result<(), Problem> {
        let Some(known) = self.fields.iter_mut().find(|known| known.name == field.name) else {
            self.fields.push(field);
            return Ok(());
        };
        if known.schema == field.schema || is_weaker(&field.schema, &known.schema) {
            return Ok(());
        }
        if is_weaker(&known.schema, &field.schema) {
            *known = field;
            return Ok(());
        }
        Err(place.reject(format!(
            "`{}` is declared differently at {}; the parts of an `allOf` must agree",
            field.name, known.pointer
        )))
    }
}

/// Whether another schema has all rules of a schema.
pub fn is_weaker(weaker: &Value, other: &Value) -> bool {
    let rules = |schema: &'_ Value| -> Vec<(String, Value)> {
        let members = schema.as_object().into_iter().flatten();
        let texts = ["title", "description", "example", "externalDocs", "xml"];
        let rules = members.filter(|(key, _)| !texts.contains(&key.as_str()) && !key.starts_with("x-"));
        rules.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let other = rules(other);
    rules(weaker).iter().all(|rule| other.contains(rule))
}

/// Whether an error is about the schema itself or one of its keywords, rather than about something inside it.
fn is_of_itself(pointer: &str, schema: &Node<'_>) -> bool {
    let rest = pointer.strip_prefix(schema.pointer());
    rest.is_some_and(|rest| rest.matches('/').count() < 2)
}

/// The field that keeps undeclared members.
fn others(place: &Node<'_>, owner: &str, derived: &mut Derived) -> Result<Field, Problem> {
    let values = match place.value() {
        Value::Bool(_) => Type::Any,
        _ => schema::ty(place, &format!("{owner}Other"), derived)?,
    };
    // serde buffers these members, so types that need the original text cannot be read.
    let is_plain = match &values {
        Type::String(_) | Type::Integer { .. } | Type::Number(_) | Type::Boolean | Type::Any => true,
        Type::Date | Type::DateTime | Type::Uuid => true,
        Type::Named(ident) => {
            let mut enums = derived.iter().filter(|it| matches!(it.shape, Shape::Enum(_)));
            enums.any(|it| it.ident == *ident)
        }
        _ => false,
    };
    if !is_plain || place.flag("nullable").unwrap_or(false) {
        return Err(place.reject(
            "beside declared members, `additionalProperties` must be strings, numbers, booleans, inline enumerations \
             or any values; move the map into a member",
        ));
    }
    let (name, values, rules) = ("additional_properties", Box::new(values), MapRules::NONE);
    Ok(Field {
        docs: "The undeclared members.".into(),
        ty: Type::Map { values, rules },
        required: true,
        ..Field::any(name, names::field_name(name, place), place.pointer())
    })
}
