//! Everything in a document that cannot be generated, not only the first thing.
//!
//! The readers stop at the first refusal. Here, what was refused is replaced by something harmless in a copy of the
//! document ([`patch`]), and the part is read again, until nothing is refused. What is refused only because of such a
//! replacement is not told.

mod group;
mod patch;
mod skip;

use std::collections::BTreeSet;

use serde_json::Value;

pub use group::{Group, groups};
pub use skip::{Left, skipping};

use crate::load::Document;
use crate::node::SharedNames;
use crate::{Problem, lint, read, structure};

/// More than this many refusals of one part, or of the whole, are not looked for.
const MOST: usize = 500;

/// All refusals, in the document's order by their places.
pub fn all(document: &Document) -> Vec<Problem> {
    let mut search = Search {
        value: document.value.clone(),
        patched: BTreeSet::new(),
        found: Vec::new(),
    };
    search.structure();
    let names = SharedNames::default();
    for part in read::parts(&document.value) {
        search.part(&part, &names);
    }
    search.whole();
    let mut located: Vec<Problem> = search
        .found
        .into_iter()
        .map(|problem| document.positions.locate(&document.path, problem))
        .collect();
    located.sort_by_key(|problem| match problem {
        Problem::Refused { place, pointer, .. } => {
            (place.as_ref().map(|place| (place.line, place.column)), pointer.clone())
        }
        _ => (None, String::new()),
    });
    located
}

struct Search {
    /// The document, with what was refused replaced.
    value: Value,
    /// The pointers of what was replaced.
    patched: BTreeSet<String>,
    found: Vec<Problem>,
}

impl Search {
    fn structure(&mut self) {
        for _ in 0..MOST {
            let problems = structure::check(&self.value);
            if problems.is_empty() {
                return;
            }
            let replaced = problems
                .into_iter()
                .filter_map(|problem| self.note(problem).then_some(()));
            if replaced.count() == 0 {
                return;
            }
        }
    }

    fn part(&mut self, part: &read::Part, names: &SharedNames) {
        for _ in 0..MOST {
            match read::part(&self.value, part, names) {
                Ok(()) => return,
                Err(problem) => {
                    if !self.note(problem) {
                        return;
                    }
                }
            }
        }
    }

    fn whole(&mut self) {
        for _ in 0..MOST {
            match read::api(&self.value) {
                Ok(api) => {
                    let mut problems = lint::check(&api);
                    problems.retain(|problem| !self.is_consequence(problem));
                    self.found.extend(problems);
                    return;
                }
                Err(problem) => {
                    if !self.note(problem) {
                        return;
                    }
                }
            }
        }
    }

    /// Notes a refusal and replaces its cause; `false` when there is nothing left to replace.
    fn note(&mut self, problem: Problem) -> bool {
        let Problem::Refused { pointer, .. } = &problem else {
            self.found.push(problem);
            return false;
        };
        let mut target = pointer.clone();
        let is_known = self.is_consequence(&problem);
        let is_replaced = loop {
            if !self.patched.contains(&target) && patch::replace(&mut self.value, &target) {
                self.patched.insert(target);
                break true;
            }
            match target.rsplit_once('/') {
                Some((around, _)) => target = around.to_string(),
                None => break false,
            }
        };
        if !is_known {
            self.found.push(problem);
        }
        is_replaced
    }

    /// Whether something was replaced at the refused place, inside it or around it.
    fn is_consequence(&self, problem: &Problem) -> bool {
        let Problem::Refused { pointer, .. } = problem else {
            return false;
        };
        let within = |inner: &str, outer: &str| {
            inner
                .strip_prefix(outer)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // What is wrong of an operation as a whole is no consequence of a part: the parts keep their names.
        let is_operation = pointer.starts_with("#/paths/") && pointer.matches('/').count() == 3;
        self.patched.iter().any(|patched| {
            let steps = patched
                .matches('/')
                .count()
                .saturating_sub(pointer.matches('/').count());
            within(pointer, patched) || within(patched, pointer) && steps <= 2 && !is_operation
        })
    }
}
