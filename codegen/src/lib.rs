//! Generates a Dropshot server and a progenitor client from an OpenAPI document.
//!
//! [`load`] reads a document. [`bundle`] adds the parts that are in other files, and [`openapi_3_1`] converts
//! OpenAPI 3.1 to 3.0. [`equivalent`], [`hoist`] and [`join`] reduce the document to one form for each meaning. [`structure`]
//! checks that the result is valid OpenAPI 3.0, [`read`] converts it to the [`model`], and [`lint`] checks rules
//! that involve more than one part of the document. [`emit`] generates the code, and [`output`] compares it with
//! the files on disk or replaces them. [`rejections`] continues after an error to collect all of them.
//!
//! The generator knows no particular API. Whatever it needs beyond OpenAPI comes from the `x-` extensions that
//! README.md lists.

pub mod archive;
pub mod bundle;
pub mod emit;
pub mod equivalent;
pub mod error;
pub mod explain;
pub mod hoist;
pub mod join;
pub mod keywords;
pub mod lint;
pub mod literals;
pub mod load;
pub mod model;
pub mod naming;
pub mod node;
pub mod openapi_3_1;
pub mod output;
pub mod places;
pub mod positions;
pub mod read;
pub mod rejections;
pub mod scaffold;
pub mod structure;
pub mod versions;

use crate::load::Document;
use crate::model::Api;
use crate::node::METHODS;

pub use error::Problem;

/// The stack size, in bytes, that is enough to read any document and generate its code. Documents nest and refer to
/// themselves, and their readers, including progenitor's, are recursive.
pub const STACK: usize = 256 << 20;

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
