//! The steps from a loaded document to its model.

use crate::error::Problem;
use crate::load::Document;
use crate::model::Api;
use crate::node::METHODS;
use crate::{lint, read, structure, versions};

/// Checks a document and converts it to a model.
///
/// # Errors
/// The first problem, with its place in the file.
pub fn model(document: &Document) -> Result<Api, Problem> {
    let located = |problem| document.positions.locate(&document.path, problem);
    if let Some(problem) = structure::check(&document.value).into_iter().next() {
        return Err(located(problem));
    }
    let api = read::api(&document.value).map_err(located)?;
    match lint::check(&api, document.dispatch).into_iter().next() {
        Some(problem) => Err(located(problem)),
        None => Ok(api),
    }
}

/// Merges documents that each are one version of the same API into one model.
///
/// # Errors
/// The first problem, with its place in its file.
pub fn model_of(documents: &[Document]) -> Result<Api, Problem> {
    match documents {
        [one] => model(one),
        several => {
            for document in several {
                model(document)?;
            }
            versions::merged(several)
        }
    }
}

/// The number of operations in a document.
pub fn operations(document: &Document) -> usize {
    read::parts(&document.value)
        .iter()
        .filter(|part| matches!(part, read::Part::PathMember { member, .. } if METHODS.contains(&member.as_str())))
        .count()
}
