//! Generates a Dropshot server and a progenitor client from an OpenAPI document.
//!
//! [`load`] reads a document. [`bundle`] adds the parts that are in other files, and [`openapi_3_1`] converts
//! OpenAPI 3.1 to 3.0. [`equivalent`], [`hoist`] and [`join`] reduce the document to one form for each meaning. [`structure`]
//! checks that the result is valid OpenAPI 3.0, [`read`] converts it to the [`model`], and [`lint`] checks rules
//! that involve more than one part of the document. [`emit`] generates the code, and [`output`] compares it with
//! the files on disk or replaces them. [`rejections`] continues after an error to collect all of them.
//!
//! Hidden modules are for this crate's own programs and tests.
//!
//! The generator knows no particular API. Whatever it needs beyond OpenAPI comes from the `x-` extensions that
//! README.md lists.

pub mod archive;
mod bundle;
pub mod emit;
mod equivalent;
pub mod error;
pub mod explain;
mod hoist;
mod join;
#[doc(hidden)]
pub mod keywords;
mod lint;
mod literals;
pub mod load;
#[doc(hidden)]
pub mod model;
#[doc(hidden)]
pub mod naming;
#[doc(hidden)]
pub mod node;
mod openapi_3_1;
pub mod output;
mod places;
#[doc(hidden)]
pub mod positions;
mod read;
pub mod rejections;
pub mod scaffold;
mod structure;
mod versions;

use crate::load::Document;
use crate::model::Api;

pub use error::Problem;

/// The stack size, in bytes, that is enough to read any document and generate its code. Documents nest and refer to
/// themselves, and their readers, including progenitor's, are recursive.
pub const STACK: usize = 256 << 20;

/// Checks a document and converts it to a model.
///
/// # Errors
/// The first problem, with its place in the file.
pub fn model(document: &Document) -> Result<Api, Problem> {
    let located = |problem| document.locate(problem);
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
    let places = places::all(&document.value).into_iter();
    places.filter(|(_, kind)| *kind == places::Kind::Operation).count()
}

/// The pointer of the first operation whose path Dropshot's router does not support.
pub fn conflict(api: &Api) -> Option<String> {
    let first = lint::conflicts(&api.operations).into_iter().next();
    first.and_then(|problem| match problem {
        Problem::Rejected { pointer, .. } => Some(pointer),
        _ => None,
    })
}
