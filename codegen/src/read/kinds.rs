//! The kinds of JSON values that a schema accepts.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::Problem;
use crate::node::Node;

/// The kinds of values that a type may read only in part, because it stores only the members and items that it declares.
#[derive(Clone, Copy, Default)]
struct Kinds {
    objects: bool,
    arrays: bool,
}

const ALL: Kinds = Kinds {
    objects: true,
    arrays: true,
};

impl Kinds {
    fn and(self, other: Kinds) -> Self {
        Kinds {
            objects: self.objects || other.objects,
            arrays: self.arrays || other.arrays,
        }
    }

    fn meets(self, other: Kinds) -> bool {
        self.objects && other.objects || self.arrays && other.arrays
    }
}

/// Whether an object or array could match two of the schemas.
///
/// # Errors
/// If a reference points to nothing.
pub fn overlap(schemas: &[Node<'_>]) -> Result<bool, Problem> {
    let mut before = Kinds::default();
    for schema in schemas {
        let kinds = of(schema, &mut BTreeSet::new())?;
        if kinds.meets(before) {
            return Ok(true);
        }
        before = before.and(kinds);
    }
    Ok(false)
}

fn of(node: &Node<'_>, seen: &mut BTreeSet<String>) -> Result<Kinds, Problem> {
    let node = node.resolved()?;
    // The kinds of a schema that was seen before have been added already.
    if !seen.insert(node.pointer().to_string()) {
        return Ok(Kinds::default());
    }
    if let Some(ty) = node.text_of("type")? {
        return Ok(Kinds {
            objects: ty == "object",
            arrays: ty == "array",
        });
    }
    for keyword in ["oneOf", "anyOf", "allOf"] {
        if let Some(list) = node.get(keyword) {
            let parts = list.items()?;
            return parts
                .iter()
                .try_fold(Kinds::default(), |all, part| Ok(all.and(of(part, seen)?)));
        }
    }
    let values = node.get("enum").and_then(|list| list.value().as_array());
    Ok(match values {
        Some(values) => Kinds {
            objects: values.iter().any(Value::is_object),
            arrays: values.iter().any(Value::is_array),
        },
        None => ALL,
    })
}
