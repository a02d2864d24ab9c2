//! What changed between two versions of the contract.
//!
//! Every member of a document belongs to a rule, to the wording, or to "not understood": what no rule knows counts as
//! breaking, so that nothing slips through because nobody thought of it.

mod keywords;
mod operations;
mod responses;
mod schema;

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use crate::document::{Node, Pair, keys_of_both, pairs};
use crate::{Change, Severity, second_opinion};

/// Which way a value travels.
///
/// What may be sent may only grow, and what may be answered may only shrink: the released contract's client must still be
/// understood, and must still understand.
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

/// Members that describe and bind nobody; `x-admission`, `x-raw-body`, `x-further-faults` and `x-supplied-by` say how the
/// server is built, and a value outside of `x-plausible-range` is accepted all the same.
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

/// The changes from `base`, the released contract, to `working`, sorted by place.
///
/// Both are OpenAPI 3.0 documents. Components are compared where operations use them, and in the direction of that use.
pub fn compare(base: &Value, working: &Value) -> Vec<Change> {
    let mut comparison = Comparison::default();
    comparison.document(&Node::root(base), &Node::root(working));
    let mut changes: Vec<Change> = comparison.changes.into_iter().collect();
    // drift panics where the media types differ, which is a finding of ours already.
    if !comparison.media_types_differ {
        let unseen = second_opinion::unseen(base, working, &changes);
        changes.extend(unseen);
        changes.sort();
        changes.dedup();
    }
    changes
}

/// A comparison under way.
#[derive(Default)]
pub(crate) struct Comparison {
    changes: BTreeSet<Change>,
    /// Pairs of schemas that were compared, or are being compared further up.
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
                // The operator tells partners the base addresses; the document only shows them.
                "servers" | "tags" | "externalDocs" => {
                    if was != is {
                        self.report(Severity::Wording, working.below(key), "the words changed");
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
                            "another version of OpenAPI, which tools may not read",
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
                self.report(Severity::Wording, place, "the words changed");
            }
        }
    }

    /// How a client identifies itself: any change but of the words asks every client to change.
    fn security_schemes(&mut self, base: &Node<'_>, working: &Node<'_>) {
        let [base, working] = [base, working].map(|node| node.get("components")?.get("securitySchemes"));
        for Pair { name, place, was, is } in pairs(base.as_ref(), working.as_ref()) {
            match (was, is) {
                (Some(was), Some(is)) => self.rest(&was, &is, &[]),
                (Some(_), None) => self.breaking(place, format!("the security scheme `{name}` was removed")),
                // What uses it, changes its `security`.
                (None, _) => {}
            }
        }
    }

    /// Compares the members that are not in `known`: wording, deprecation, and what no rule knows.
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
            self.report(Severity::Wording, pointer, "the words changed");
        } else if key == "deprecated" {
            // Semantic Versioning 2.0.0, 7: a minor version when something is marked as deprecated.
            match working.is_true(key) {
                true => self.addition(pointer, "it was marked as deprecated"),
                false => self.report(Severity::Wording, pointer, "it is not deprecated any more"),
            }
        } else {
            let what = format!(
                "`{key}` went {}, which no rule understands",
                keywords::step(base.raw(key), working.raw(key))
            );
            self.breaking(pointer, what);
        }
    }
}
