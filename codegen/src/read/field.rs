//! Members of objects, and parameters.

use codegen_runtime::Pattern;
use heck::ToUpperCamelCase;
use serde_json::Value;

use super::embed::embedded;
use super::names;
use super::schema::{Derived, ty};
use crate::error::Problem;
use crate::model::{Field, OneWay, PLAUSIBLE_RANGE, exact};
use crate::node::Node;

/// Reads a member of an object, or a parameter, whose schema is at `node`. `owner` is the type that it belongs to.
pub fn field(
    name: &str,
    docs: String,
    required: bool,
    node: &Node<'_>,
    owner: &str,
    derived: &mut Derived,
) -> Result<Field, Problem> {
    let default = resolved_member(node, "default")?.map(|default| default.value().clone());
    let proposed = format!("{owner}{}", name.to_upper_camel_case());
    Ok(Field {
        docs,
        ty: ty(node, &proposed, derived)?,
        required,
        nullable: node.flag("nullable")? || may_be_null(node)?,
        default,
        deprecated: node.flag("deprecated")?,
        one_way: one_way(node)?,
        schema: embedded(node.value()),
        ..Field::any(name, names::field_name(name, node), node.pointer())
    })
}

fn one_way(node: &Node<'_>) -> Result<Option<OneWay>, Problem> {
    let is_true = |key: &str| Ok(resolved_member(node, key)?.is_some_and(|place| place.value() == &Value::Bool(true)));
    match (is_true("readOnly")?, is_true("writeOnly")?) {
        (true, true) => Err(node.reject("a member must not be both `readOnly` and `writeOnly`")),
        (true, false) => Ok(Some(OneWay::Responses)),
        (false, true) => Ok(Some(OneWay::Requests)),
        (false, false) => Ok(None),
    }
}

/// The member `key` of the schema at `node`, or of the schema that it refers to.
fn resolved_member<'a>(node: &Node<'a>, key: &str) -> Result<Option<Node<'a>>, Problem> {
    let mut node = node.clone();
    for _ in 0..MAX_REFERENCES {
        if let Some(place) = node.get(key) {
            return Ok(Some(place));
        }
        let only = match node.all_of()?.as_deref() {
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

/// The maximum number of references that are followed, which also ends cycles.
const MAX_REFERENCES: usize = 32;

pub(super) fn may_be_null(node: &Node<'_>) -> Result<bool, Problem> {
    let nullable = resolved_member(node, "nullable")?;
    Ok(nullable.is_some_and(|place| place.value() == &Value::Bool(true)))
}

/// Rejects ranges that are incomplete, empty, or for names that cannot occur.
pub fn plausible_range(node: &Node<'_>, key_pattern: Option<&Pattern>, values_are_exact: bool) -> Result<(), Problem> {
    let Some(ranges) = node.get(PLAUSIBLE_RANGE) else {
        return Ok(());
    };
    if !values_are_exact {
        let reason =
            "`x-plausible-range` must be on a map of numbers with `format: decimal`; remove it or add the format";
        return Err(ranges.reject(reason));
    }
    for (name, range) in ranges.members()? {
        if key_pattern.is_some_and(|pattern| !pattern.is_match(name)) {
            let reason = format!("`{name}` does not match the `x-key-pattern` of this map; remove it");
            return Err(range.reject(reason));
        }
        for (key, place) in range.members()? {
            if !["minimum", "maximum"].contains(&key) {
                let reason = format!("`{key}` is not supported here; a range has `minimum` and `maximum`");
                return Err(place.reject(reason));
            }
        }
        let bound = |key: &str| {
            let missing = || range.reject("a range must have both `minimum` and `maximum`");
            let place = range.get(key).ok_or_else(missing)?;
            exact(place.value()).ok_or_else(|| place.reject("must be a number"))
        };
        if bound("minimum")? > bound("maximum")? {
            return Err(range.reject("`minimum` must not exceed `maximum`; swap them"));
        }
    }
    Ok(())
}
