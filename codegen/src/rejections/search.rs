//! The search for all errors.

use std::collections::BTreeSet;

use serde_json::Value;

use super::patch;
use crate::emit::Dispatch;
use crate::error::Problem;
use crate::load::Document;
use crate::naming::SharedNames;
use crate::node::below;
use crate::{lint, read, structure};

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
            if !self.patched.contains(&target) && patch::replace(&mut self.value, &target) {
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
