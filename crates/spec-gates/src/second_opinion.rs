//! Differences that the crate `drift` finds and our comparison does not.
//!
//! `drift` knows operations, parameters, bodies, statuses and types. It reports most changes inside a schema as "unhandled",
//! without a direction, and ignores headers, security, extensions (error codes, scopes, key patterns), defaults and `nullable`.
//! So our comparison decides the severity, and `drift` is a safety net: a difference that only `drift` finds is breaking until
//! our comparison covers it.

use serde_json::Value;

use crate::{Change, Severity};

/// Returns a breaking change for each difference that `drift` finds at a place where `ours` has no change.
pub(crate) fn unseen(base: &Value, working: &Value, ours: &[Change]) -> Vec<Change> {
    let unseen = |pointer: &str, message: &str| Change {
        pointer: pointer.to_owned(),
        what: format!("{message} (found by drift only)"),
        severity: Severity::Breaking,
    };
    let found = match drift::compare(&in_order(base), &in_order(working)) {
        Ok(found) => found,
        Err(error) => return vec![unseen("", &format!("the documents cannot be compared: {error:#}"))],
    };
    let mut changes = Vec::new();
    for group in &found {
        let Some(path) = group.paths.first() else { continue };
        for change in group
            .changes
            .iter()
            .filter(|change| change.class != drift::ChangeClass::Trivial)
        {
            let places = [
                place(path.old.base_and_subpath().0, &change.old_subpath),
                place(path.new.base_and_subpath().0, &change.new_subpath),
            ];
            // drift reports an added or removed operation together with the root of all paths, which contains every place.
            let known = places
                .iter()
                .filter(|place| *place != "/paths")
                .any(|place| ours.iter().any(|change| is_at_or_below(&change.pointer, place)));
            if !known {
                changes.push(unseen(&places[1], &change.message));
            }
        }
    }
    changes
}

/// Returns a JSON pointer in our notation. `drift` calls the member `requestBody` of an operation `request_body`.
fn place(base: &str, subpath: &str) -> String {
    let base = base.trim_start_matches('#');
    let whole = if subpath.is_empty() {
        base.to_owned()
    } else {
        format!("{base}/{}", subpath.trim_start_matches('/'))
    };
    whole.replace("/request_body", "/requestBody")
}

/// Returns whether `pointer` is `place` or below it.
fn is_at_or_below(pointer: &str, place: &str) -> bool {
    pointer
        .strip_prefix(place)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the document with its sets in alphabetical order, because `drift` compares `required` and `enum` as lists.
fn in_order(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| {
                let mut value = in_order(value);
                if let ("required" | "enum", Value::Array(elements)) = (key.as_str(), &mut value) {
                    elements.sort_by_key(Value::to_string);
                }
                (key.clone(), value)
            })
            .collect(),
        Value::Array(elements) => elements.iter().map(in_order).collect(),
        other => other.clone(),
    }
}
