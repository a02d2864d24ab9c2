//! A member of an object, or a parameter: its schema, and what is said of it where it stands.

use heck::ToUpperCamelCase;
use serde_json::Value;

use super::embed::embedded;
use super::names;
use super::schema::{Derived, ty};
use crate::Problem;
use crate::model::{Field, OneWay};
use crate::node::Node;

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
    let default = said(node, "default")?.map(|default| default.value().clone());
    let proposed = format!("{owner}{}", name.to_upper_camel_case());
    Ok(Field {
        name: name.to_string(),
        ident: names::field_name(name, node),
        docs,
        ty: ty(node, &proposed, derived)?,
        required,
        nullable: node.flag("nullable")? || may_be_null(node)?,
        default,
        list: None,
        deprecated: node.flag("deprecated")?,
        one_way: one_way(node)?,
        two_way_type: false,
        schema: embedded(node.value()),
        pointer: node.pointer().to_string(),
    })
}

fn one_way(node: &Node<'_>) -> Result<Option<OneWay>, Problem> {
    let is_said = |key: &str| Ok(said(node, key)?.is_some_and(|place| place.value() == &Value::Bool(true)));
    match (is_said("readOnly")?, is_said("writeOnly")?) {
        (true, true) => Err(node.refuse("a member cannot be both `readOnly` and `writeOnly`")),
        (true, false) => Ok(Some(OneWay::Responses)),
        (false, true) => Ok(Some(OneWay::Requests)),
        (false, false) => Ok(None),
    }
}

/// What the schema at `node`, or the named one that it stands for, says in the member `key`.
fn said<'a>(node: &Node<'a>, key: &str) -> Result<Option<Node<'a>>, Problem> {
    let mut node = node.clone();
    for _ in 0..DEEPEST {
        if let Some(place) = node.get(key) {
            return Ok(Some(place));
        }
        let only = match node.get("allOf").map(|list| list.items()).transpose()?.as_deref() {
            Some([only]) => only.clone(),
            _ => node.clone(),
        };
        if only.get("$ref").is_none() {
            return Ok(None);
        }
        node = only.resolved()?;
    }
    Ok(None)
}

/// How far a name may stand for a name: far beyond any document, but the end of a circle.
const DEEPEST: usize = 32;

pub(super) fn may_be_null(node: &Node<'_>) -> Result<bool, Problem> {
    let said = said(node, "nullable")?;
    Ok(said.is_some_and(|place| place.value() == &Value::Bool(true)))
}
