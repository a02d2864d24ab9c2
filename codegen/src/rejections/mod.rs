//! Collection of all errors in a document, grouped by cause.
//!
//! The readers stop at the first error. To find all errors, the search works on a copy of the document. It replaces each
//! rejected value by a valid one and reads the part again, until the part has no errors. Errors that only
//! result from a replacement are not reported.

mod skip;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::error::Problem;
use crate::keywords::{self, ANNOTATIONS};
use crate::load::Document;
use crate::model::Dispatch;
use crate::naming::SharedNames;
use crate::node::{below, text_of, unescaped};
use crate::read;
use crate::{lint, structure};

pub use skip::{Left, skipping};

/// The maximum number of errors that are collected from one part, or from the whole document.
const MAX_ERRORS: usize = 500;

/// All errors, in document order.
pub fn all(document: &Document) -> Vec<Problem> {
    let mut search = Search {
        value: document.value.clone(),
        dispatch: document.dispatch,
        patched: BTreeSet::new(),
        found: Vec::new(),
    };
    search.repeat(structure::check);
    let names = SharedNames::default();
    for part in read::parts(&document.value) {
        search.repeat(|value| read::part(value, &part, &names).err().into_iter().collect());
    }
    search.whole();
    let located = search.found.into_iter().map(|problem| document.locate(problem));
    let mut located: Vec<Problem> = located.collect();
    located.sort_by_key(|problem| match problem {
        Problem::Rejected { place, pointer, .. } => {
            (place.as_ref().map(|place| (place.line, place.column)), pointer.clone())
        }
        _ => (None, String::new()),
    });
    located
}

struct Search {
    /// The document, with rejected values replaced.
    value: Value,
    dispatch: Dispatch,
    /// The pointers of the replaced values.
    patched: BTreeSet<String>,
    found: Vec<Problem>,
}

impl Search {
    /// Records what `find` finds and replaces its cause, until nothing is left.
    fn repeat(&mut self, find: impl Fn(&Value) -> Vec<Problem>) {
        for _ in 0..MAX_ERRORS {
            let mut is_patched = false;
            for problem in find(&self.value) {
                is_patched |= self.note(problem);
            }
            if !is_patched {
                return;
            }
        }
    }

    fn whole(&mut self) {
        self.repeat(|value| read::api(value).err().into_iter().collect());
        if let Ok(api) = read::api(&self.value) {
            let mut problems = lint::check(&api, self.dispatch);
            problems.retain(|problem| !self.is_consequence(problem));
            self.found.extend(problems);
        }
    }

    /// Records an error and replaces its cause; `false` if there is nothing left to replace.
    fn note(&mut self, problem: Problem) -> bool {
        let Problem::Rejected { pointer, .. } = &problem else {
            self.found.push(problem);
            return false;
        };
        let mut target = pointer.clone();
        let is_here = |known: &Problem| matches!(known, Problem::Rejected { pointer: known, .. } if *known == target);
        let is_known = self.is_consequence(&problem) || self.found.iter().any(is_here);
        let is_replaced = loop {
            if !self.patched.contains(&target) && replace(&mut self.value, &target) {
                self.patched.insert(target);
                break true;
            }
            match target.rsplit_once('/') {
                // A component or an operation is replaced as a whole, but never the object that contains all of them.
                Some((around, _)) if !is_list(around) => target = around.to_string(),
                _ => break false,
            }
        };
        if !is_known {
            self.found.push(problem);
        }
        is_replaced
    }

    /// Whether a value was replaced at the error's place, inside it or around it.
    fn is_consequence(&self, problem: &Problem) -> bool {
        let Problem::Rejected { pointer, .. } = problem else {
            return false;
        };
        // An error of an operation as a whole is not caused by replacing a part of it, because the parts keep their
        // names.
        let is_operation = pointer.starts_with("#/paths/") && pointer.matches('/').count() == 3;
        self.patched.iter().any(|patched| {
            let depth = |pointer: &str| pointer.matches('/').count();
            let steps = depth(patched).saturating_sub(depth(pointer));
            below(pointer, patched).is_some() || below(patched, pointer).is_some() && steps <= 2 && !is_operation
        })
    }
}

/// Whether a pointer is that of all components of a kind, of a path with its operations, or of something around them.
fn is_list(pointer: &str) -> bool {
    let tokens: Vec<&str> = pointer.split('/').collect();
    matches!(
        tokens.as_slice(),
        ["#"] | ["#", "components" | "paths"] | ["#", "components", _]
    )
}

/// Replaces or removes the value at `pointer`. Returns `false` if that is not possible.
pub fn replace(document: &mut Value, pointer: &str) -> bool {
    let tokens: Vec<&str> = pointer.trim_start_matches('#').split('/').skip(1).collect();
    let Some((last, before)) = tokens.split_last() else {
        return false;
    };
    // Without its alternatives, the rest of the schema would be rejected, so the whole schema is replaced.
    if ["oneOf", "anyOf"].contains(last) {
        return false;
    }
    let around = before.iter().fold(String::new(), |around, token| around + "/" + token);
    let Some(parent) = document.pointer_mut(&around) else {
        return false;
    };
    let name = unescaped(last);
    let harmless = harmless(&tokens, parent, &name);
    match parent {
        Value::Object(members) => match harmless {
            Some(harmless) => members.insert(name, harmless).is_some(),
            None => members.shift_remove(&name).is_some(),
        },
        // The other items must keep their indexes.
        Value::Array(items) => match (last.parse::<usize>(), harmless) {
            (Ok(index), Some(harmless)) if index < items.len() => {
                items[index] = harmless;
                true
            }
            _ => false,
        },
        _ => false,
    }
}

/// The replacement for a value; `None` if it can be removed.
fn harmless(tokens: &[&str], parent: &Value, name: &str) -> Option<Value> {
    match tokens {
        ["components", "schemas", _] => return Some(json!({})),
        ["components", "parameters", _] => return Some(parameter(parent.get(name))),
        ["components", "requestBodies", _] => return Some(json!({ "required": true, "content": bytes() })),
        ["components", "responses", _] => return Some(json!({ "description": "" })),
        ["info", "title" | "version"] => return Some("0".into()),
        ["paths", _, _, "responses"] => return Some(json!({ "204": { "description": "" } })),
        ["paths", _, _, "operationId"] => {
            let place = tokens.concat().to_lowercase();
            let place = place.replace(|it: char| !it.is_ascii_alphanumeric(), "");
            return Some(format!("rejected_{place}").into());
        }
        _ => {}
    }
    match tokens {
        // A keyword of a member, whatever the member's name.
        [.., "properties", _, _] => None,
        [.., "properties" | "allOf", _] | [.., "items" | "additionalProperties"] => Some(json!({})),
        [.., "parameters", _] => {
            let item = || parent.get(name.parse::<usize>().ok()?);
            Some(parameter(parent.get(name).or_else(item)))
        }
        [.., "enum", _] => Some(format!("rejected {name}").into()),
        [.., "tags", _] => Some("rejected".into()),
        [.., "schema"] if parent.get("in").is_some() => Some(json!({ "type": "string" })),
        [.., "schema"] => Some(json!({})),
        [.., "content"] => Some(bytes()),
        _ => None,
    }
}

/// A string parameter with the same location and name.
fn parameter(rejected: Option<&Value>) -> Value {
    let text = |key: &str| text_of(rejected?, key);
    let location = text("in").filter(|place| ["path", "query", "header", "cookie"].contains(place));
    json!({
        "in": location.unwrap_or("query"),
        "name": text("name").unwrap_or("rejected"),
        "required": location == Some("path"),
        "schema": { "type": "string" },
    })
}

fn bytes() -> Value {
    json!({ "application/octet-stream": {} })
}

/// Errors with the same cause.
#[derive(Debug)]
pub struct Group {
    /// The cause: the message without names that differ from place to place.
    pub cause: String,
    /// The errors, in document order.
    pub problems: Vec<Problem>,
}

/// Groups errors by cause, the most frequent first.
pub fn groups(problems: Vec<Problem>) -> Vec<Group> {
    let mut all: Vec<Group> = Vec::new();
    for problem in problems {
        let cause = match &problem {
            Problem::Rejected { reason, .. } => cause(reason),
            other => other.to_string(),
        };
        match all.iter_mut().find(|group| group.cause == cause) {
            Some(group) => group.problems.push(problem),
            None => all.push(Group {
                cause,
                problems: vec![problem],
            }),
        }
    }
    all.sort_by_key(|group| std::cmp::Reverse(group.problems.len()));
    all
}

/// Words of OpenAPI that are not schema keywords. They are part of the cause rather than names of the document.
const WORDS: &str = "allowEmptyValue allowReserved binary byte callbacks components content date date-time \
                     decimal explode head links mapping operationId options parameters patternProperties requestBody \
                     responses schema security servers style summary tags trace";

fn is_word(text: &str) -> bool {
    let mut words = WORDS.split(' ').chain(keywords::all()).chain(ANNOTATIONS);
    words.any(|word| word == text) || text.starts_with("x-")
}

fn cause(reason: &str) -> String {
    let mut out = String::new();
    for (index, piece) in reason.split('`').enumerate() {
        if index % 2 == 0 {
            // Pointers are not quoted.
            let words = piece.split(' ').map(|it| if it.starts_with("#/") { "…" } else { it });
            out += &words.collect::<Vec<_>>().join(" ");
            continue;
        }
        let first = piece.split([':', ' ']).next().unwrap_or_default();
        let is_media_type = !piece.starts_with('/') && piece.contains('/') && !piece.contains(['{', '#', ' ']);
        let is_keyword = is_word(first) || first.ends_with("XX");
        out += &match is_media_type || is_keyword {
            true => format!("`{piece}`"),
            false => "…".into(),
        };
    }
    out
}
