//! Removal of the operations that are not supported.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::all;
use crate::error::Problem;
use crate::load::Document;
use crate::model::closure;
use crate::node::{below, escaped, members, text_of, unescaped};

/// An operation that was left out, with its first error.
#[derive(Debug)]
pub struct Left {
    /// The method, in upper case.
    pub method: String,
    /// The path.
    pub path: String,
    /// The `operationId`, if declared.
    pub id: Option<String>,
    /// The reason.
    pub reason: String,
}

/// The maximum number of rounds. Each one removes something, which may reveal other errors.
const ROUNDS: usize = 20;

/// Removes everything that is not supported, and all operations and schemas that depend on it.
///
/// # Errors
/// If an error does not belong to an operation or component, or cannot be removed.
pub fn skipping(document: &Document) -> Result<(Document, Vec<Left>), Problem> {
    let mut document = document.clone();
    let mut left = Vec::new();
    for _ in 0..ROUNDS {
        let problems = all(&document);
        if problems.is_empty() {
            return Ok((document, left));
        }
        let rejected = problems.iter().filter_map(|problem| match problem {
            Problem::Rejected { pointer, .. } => Some((pointer.as_str(), problem.to_string())),
            _ => None,
        });
        let is_less = leave_out(&mut document.value, &rejected.collect::<Vec<_>>(), &mut left);
        if let Some(first) = problems.into_iter().next().filter(|_| !is_less) {
            return Err(first);
        }
    }
    Err(Problem::rejected(
        "#",
        "failed to leave out all unsupported operations; fix the errors in the document",
    ))
}

/// Removes each operation and component that contains or depends on a rejected value; `false` if there is none.
fn leave_out(document: &mut Value, rejected: &[(&str, String)], left: &mut Vec<Left>) -> bool {
    let uses = uses(document);
    let reason = |pointer: &str| -> Option<&String> {
        let reached = closure([pointer.to_string()], |place| {
            uses.get(place).cloned().unwrap_or_default()
        });
        let holds = |place: &str| reached.iter().any(|holder| below(place, holder).is_some());
        let mut rejected = rejected.iter();
        rejected.find(|(place, _)| holds(place)).map(|(_, reason)| reason)
    };
    let mut removed = Vec::new();
    for (path, item) in members(document.get("paths")) {
        let at = format!("#/paths/{}", escaped(path));
        let shared = reason(&format!("{at}/parameters"));
        let mut of_paths = rejected.iter();
        let here = of_paths.find(|(place, _)| *place == at).map(|(_, reason)| reason);
        for (member, value) in members(Some(item)) {
            let pointer = format!("{at}/{}", escaped(member));
            if member == "parameters" {
                continue;
            }
            let Some(reason) = reason(&pointer).or(shared).or(here) else {
                continue;
            };
            if value.get("responses").is_some() || value.get("operationId").is_some() {
                left.push(Left {
                    method: member.to_uppercase(),
                    path: path.clone(),
                    id: text_of(value, "operationId").map(str::to_string),
                    reason: reason.clone(),
                });
            }
            removed.push(pointer);
        }
    }
    for (kind, list) in members(document.get("components")) {
        for (name, _) in members(Some(list)) {
            let pointer = format!("#/components/{kind}/{}", escaped(name));
            if reason(&pointer).is_some() {
                removed.push(pointer);
            }
        }
    }
    for pointer in &removed {
        remove(document, pointer);
    }
    if let Some(Value::Object(paths)) = document.get_mut("paths") {
        let serves =
            |item: &Value| members(Some(item)).any(|(_, member)| member.is_object()) || item.get("$ref").is_some();
        paths.retain(|path, item| path.starts_with("x-") || serves(item));
    }
    !removed.is_empty()
}

fn remove(document: &mut Value, pointer: &str) {
    if let Some((around, last)) = pointer.trim_start_matches('#').rsplit_once('/')
        && let Some(Value::Object(members)) = document.pointer_mut(around)
    {
        members.shift_remove(&unescaped(last));
    }
}

/// The references of each operation, parameter list and component.
fn uses(document: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    for first in ["paths", "components"] {
        for (outer, list) in members(document.get(first)) {
            for (inner, value) in members(Some(list)) {
                let mut found = BTreeSet::new();
                references(value, &mut found);
                all.insert(format!("#/{first}/{}/{}", escaped(outer), escaped(inner)), found);
            }
        }
    }
    all
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                // A reference to a nested value counts as one to its component.
                let parts: Vec<&str> = reference.splitn(5, '/').take(4).collect();
                found.insert(parts.join("/"));
            }
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}
