//! Collection of all errors in a document, grouped by cause.
//!
//! The readers stop at the first error. To find all errors, the search works on a copy of the document. It replaces each
//! rejected value by a valid one and reads the part again, until the part has no errors. Errors that only
//! result from a replacement are not reported.

mod skip;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::error::Problem;
use crate::keywords::{ANNOTATIONS, KEYWORDS};
use crate::load::Document;
use crate::model::Dispatch;
use crate::naming::SharedNames;
use crate::node::below;
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
    let mut located: Vec<Problem> = search
        .found
        .into_iter()
        .map(|problem| document.positions.locate(&document.path, problem))
        .collect();
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
            let steps = patched
                .matches('/')
                .count()
                .saturating_sub(pointer.matches('/').count());
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
    let name = last.replace("~1", "/").replace("~0", "~");
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
    let around = tokens.len().checked_sub(2).map_or("", |index| tokens[index]);
    let is_properties = tokens
        .len()
        .checked_sub(3)
        .is_some_and(|index| tokens[index] == "properties");
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
    if is_properties {
        // A keyword of a member, whatever the member's name.
        return None;
    }
    match (around, name) {
        ("properties" | "allOf", _) | (_, "items" | "additionalProperties") => Some(json!({})),
        ("parameters", _) => Some(parameter(
            parent.get(name).or_else(|| parent.get(name.parse::<usize>().ok()?)),
        )),
        ("enum", _) => Some(format!("rejected {name}").into()),
        ("tags", _) => Some("rejected".into()),
        (_, "schema") if parent.get("in").is_some() => Some(json!({ "type": "string" })),
        (_, "schema") => Some(json!({})),
        (_, "content") => Some(bytes()),
        _ => None,
    }
}

/// A string parameter with the same location and name.
fn parameter(rejected: Option<&Value>) -> Value {
    let mut new = Map::new();
    let text = |key: &str| rejected.and_then(|rejected| rejected.get(key)).and_then(Value::as_str);
    let location = text("in").filter(|place| ["path", "query", "header", "cookie"].contains(place));
    new.insert("in".into(), location.unwrap_or("query").into());
    new.insert("name".into(), text("name").unwrap_or("rejected").into());
    new.insert("required".into(), (location == Some("path")).into());
    new.insert("schema".into(), json!({ "type": "string" }));
    new.into()
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
    let mut words = WORDS.split(' ').chain(KEYWORDS).chain(ANNOTATIONS);
    words.any(|word| word == text) || text.starts_with("x-")
}

fn cause(reason: &str) -> String {
    let mut out = String::new();
    for (index, piece) in reason.split('`').enumerate() {
        if index % 2 == 0 {
            // Pointers are not quoted.
            let words = piece
                .split(' ')
                .map(|word| if word.starts_with("#/") { "…" } else { word });
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
