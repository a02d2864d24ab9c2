//! The kinds of JSON values that a schema accepts.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::Problem;
use crate::node::Node;

/// The kinds of values that a type may read only in part, because it stores only the members and items that it declares.
const PARTLY: [&str; 2] = ["object", "array"];

/// Whether an object or array could match two of the schemas.
pub fn overlap(schemas: &[Node<'_>]) -> Result<bool, Problem> {
    let mut before = BTreeSet::new();
    for schema in schemas {
        let kinds = of(schema, &mut BTreeSet::new())?;
        if !kinds.is_disjoint(&before) {
            return Ok(true);
        }
        before.extend(kinds);
    }
    Ok(false)
}

fn of(node: &Node<'_>, seen: &mut BTreeSet<String>) -> Result<BTreeSet<&'static str>, Problem> {
    let node = node.resolved()?;
    let these = |is_one: &dyn Fn(&str) -> bool| PARTLY.into_iter().filter(|kind| is_one(kind)).collect();
    // The kinds of a schema that was seen before have been added already.
    if !seen.insert(node.pointer().to_string()) {
        return Ok(BTreeSet::new());
    }
    if let Some(ty) = node.text_of("type")? {
        return Ok(these(&|kind| kind == ty));
    }
    for keyword in ["oneOf", "anyOf", "allOf"] {
        if let Some(list) = node.get(keyword) {
            let mut all = BTreeSet::new();
            for part in list.items()? {
                all.extend(of(&part, seen)?);
            }
            return Ok(all);
        }
    }
    let values = node.get("enum").and_then(|list| list.value().as_array());
    let has = |kind: &str| match values {
        Some(values) if kind == "object" => values.iter().any(Value::is_object),
        Some(values) => values.iter().any(Value::is_array),
        None => true,
    };
    Ok(these(&has))
}
