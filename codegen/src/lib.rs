//! Generates a Dropshot server and a progenitor client from an OpenAPI document.
//!
//! [`load`] reads the document, with what other files hold ([`bundle`]) and 3.1 said as 3.0 ([`newer`]); [`structure`] refuses what is no OpenAPI 3.0, [`read`] turns it into the neutral
//! [`model`] and refuses what cannot be generated, [`lint`] refuses what only shows in the whole, [`emit`] writes the
//! code, [`output`] compares it with the files there are or replaces them. [`refusals`] goes on after a refusal, and
//! finds all. The generator knows nothing of any particular API: what it needs beyond OpenAPI it reads from the `x-`
//! extensions that README.md lists.

pub mod bundle;
pub mod emit;
pub mod error;
pub mod explain;
pub mod lint;
pub mod literals;
pub mod load;
pub mod model;
pub mod newer;
pub mod node;
pub mod output;
pub mod positions;
pub mod read;
pub mod refusals;
pub mod scaffold;
pub mod structure;
pub mod versions;

pub use error::Problem;

/// The stack, in bytes, on which any document can be read and generated: documents nest and refer to themselves, and
/// what reads them, progenitor's part too, recurses.
pub const STACK: usize = 256 << 20;

/// The model of a document that can be generated.
///
/// # Errors
/// The first thing that cannot, with its place in the file.
pub fn model(document: &load::Document) -> Result<model::Api, Problem> {
    let located = |problem| document.positions.locate(&document.path, problem);
    if let Some(problem) = structure::check(&document.value).into_iter().next() {
        return Err(located(problem));
    }
    let api = read::api(&document.value).map_err(located)?;
    match lint::check(&api).into_iter().next() {
        Some(problem) => Err(located(problem)),
        None => Ok(api),
    }
}

/// The model of documents that each are a version of the same API.
///
/// # Errors
/// The first thing that cannot be generated, with its place in its file.
pub fn model_of(documents: &[load::Document]) -> Result<model::Api, Problem> {
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

/// How many operations a document has.
pub fn operations(document: &load::Document) -> usize {
    read::parts(&document.value)
        .iter()
        .filter(
            |part| matches!(part, read::Part::PathMember { member, .. } if read::METHODS.contains(&member.as_str())),
        )
        .count()
}
