//! Comparison of two versions of the contract.
//!
//! A changed member is either covered by a rule, or part of the wording, or unknown. Unknown changes count as breaking.

mod keywords;
mod operations;
mod responses;
mod schema;

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use crate::document::{Node, Pair, keys_of_both, pairs};
use crate::{Change, Severity, second_opinion};

/// The direction of a value.
///
/// A client of the released contract must keep working, so requests may only accept more, and responses may only contain less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    /// From the client: parameters and request bodies.
    Request,
    /// To the client: response headers and bodies.
    Response,
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Self::Request => "requests",
            Self::Response => "responses",
        }
    }
}

/// Members that only describe. `x-admission`, `x-raw-body`, `x-further-faults` and `x-supplied-by` concern the server's
/// implementation, and a value outside `x-plausible-range` is accepted as well.
const WORDING: [&str; 13] = [
    "description",
    "summary",
    "title",
    "example",
    "examples",
    "externalDocs",
    "tags",
    "x-admission",
    "x-codeSamples",
    "x-further-faults",
    "x-plausible-range",
    "x-raw-body",
    "x-supplied-by",
];

/// Returns the changes from `base`, the released contract, to `working`, sorted by place.
///
/// Both are OpenAPI 3.0 documents. Components are compared where operations use them, in the direction of that use.
pub fn compare(base: &Value, working: &Value) -> Vec<Change> {
    let mut comparison = Comparison::default();
    comparison.document(&Node::root(base), &Node::root(working));
    let mut changes: Vec<Change> = comparison.changes.into_iter().collect();
    // drift panics if the media types differ, which our comparison has reported already.
    if !comparison.media_types_differ {
        let unseen = second_opinion::unseen(base, working, &changes);
        changes.extend(unseen);
        changes.sort();
        changes.dedup();
    }
    changes
}

/// The state of a comparison.
#[derive(Default)]
pub(crate) struct Comparison {
    changes: BTreeSet<Change>,
    /// Pairs of schemas that were compared or are being compared.
    visited: HashSet<(String, String, Direction)>,
    media_types_differ: bool,
}

impl Comparison {
    fn report(&mut self, severity: Severity, pointer: impl Into<String>, what: impl Into<String>) {
        self.changes.insert(Change {
            pointer: pointer.into(),
            what: what.into(),
            severity,
        });
    }

    fn breaking(&mut self, pointer: impl Into<String>, what: impl Into<String>) {
        self.report(Severity::Breaking, pointer, what);
    }

    fn addition(&mut self, pointer: impl Into<String>, what: impl Into<String>) {
        self.report(Severity::Addition, pointer, what);
    }

    fn document(&mut self, base: &Node<'_>, working: &Node<'_>) {
        for key in keys_of_both(Some(base), Some(working)) {
            let (was, is) = (base.raw(key), working.raw(key));
            match key {
                "paths" | "components" | "security" => {}
                "info" => self.info(base, working),
                // Partners get the base URLs from the operator; those of the document are examples.
                "servers" | "tags" | "externalDocs" => {
                    if was != is {
                        self.report(Severity::Wording, working.below(key), "the wording changed");
                    }
                }
                "openapi" => {
                    let minor = |value: Option<&Value>| {
                        value
                            .and_then(Value::as_str)
                            .and_then(|v| v.rsplit_once('.'))
                            .map(|(minor, _)| minor.to_owned())
                    };
                    if minor(was) != minor(is) {
                        self.breaking(
                            working.below(key),
                            "the OpenAPI version changed, which tools may not support",
                        );
                    }
                }
                _ => self.other(base, working, key),
            }
        }
        self.operations(base, working);
        self.security_schemes(base, working);
    }

    fn info(&mut self, base: &Node<'_>, working: &Node<'_>) {
        let (base, working) = (base.get("info"), working.get("info"));
        for Pair { name, place, was, is } in pairs(base.as_ref(), working.as_ref()) {
            if name != "version" && was.map(|node| node.value) != is.map(|node| node.value) {
                self.report(Severity::Wording, place, "the wording changed");
            }
        }
    }

    /// Compares the security schemes. Every client has to follow a change of them, except of their wording.
    fn security_schemes(&mut self, base: &Node<'_>, working: &Node<'_>) {
        let [base, working] = [base, working].map(|node| node.get("components")?.get("securitySchemes"));
        for Pair { name, place, was, is } in pairs(base.as_ref(), working.as_ref()) {
            match (was, is) {
                (Some(was), Some(is)) => self.rest(&was, &is, &[]),
                (Some(_), None) => self.breaking(place, format!("the security scheme `{name}` was removed")),
                // An operation that uses it has a changed `security`.
                (None, _) => {}
            }
        }
    }

    /// Compares the members that are not in `known`: wording, deprecation, and unknown members.
    fn rest(&mut self, base: &Node<'_>, working: &Node<'_>, known: &[&str]) {
        for key in keys_of_both(Some(base), Some(working)) {
            if !known.contains(&key) {
                self.other(base, working, key);
            }
        }
    }

    fn other(&mut self, base: &Node<'_>, working: &Node<'_>, key: &str) {
        if base.raw(key) == working.raw(key) {
            return;
        }
        let pointer = working.below(key);
        if WORDING.contains(&key) {
            self.report(Severity::Wording, pointer, "the wording changed");
        } else if key == "deprecated" {
            // Semantic Versioning 2.0.0, 7: marking something as deprecated requires a new minor version.
            match working.is_true(key) {
                true => self.addition(pointer, "it was marked as deprecated"),
                false => self.report(Severity::Wording, pointer, "it is no longer deprecated"),
            }
        } else {
            let what = format!(
                "`{key}` changed {}, which no rule covers",
                keywords::step(base.raw(key), working.raw(key))
            );
            self.breaking(pointer, what);
        }
    }
}
