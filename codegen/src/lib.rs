//! Generates a Dropshot server and a progenitor client from an OpenAPI 3.0 document.
//!
//! [`load`] reads the document, [`read`] turns it into the neutral [`model`] and refuses what cannot be generated,
//! [`lint`] refuses what only shows in the whole, [`emit`] writes the code, [`output`] compares it with the files there
//! are or replaces them. The generator knows nothing of any particular API: what it needs beyond OpenAPI it reads from
//! the `x-` extensions that README.md lists.

pub mod emit;
pub mod error;
pub mod lint;
pub mod literals;
pub mod load;
pub mod model;
pub mod node;
pub mod output;
pub mod positions;
pub mod read;

pub use error::Problem;

/// The model of a document that can be generated.
///
/// # Errors
/// The first thing that cannot, with its place in the file.
pub fn model(document: &load::Document) -> Result<model::Api, Problem> {
    let located = |problem| document.positions.locate(&document.path, problem);
    let api = read::api(&document.value).map_err(located)?;
    lint::check(&api).map_err(located)?;
    Ok(api)
}
