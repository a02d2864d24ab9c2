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

pub mod bundle;
pub mod emit;
pub mod equivalent;
pub mod error;
pub mod explain;
pub mod hoist;
pub mod join;
pub mod lint;
pub mod literals;
pub mod load;
pub mod model;
pub mod naming;
pub mod node;
pub mod openapi_3_1;
pub mod output;
pub mod pipeline;
pub mod places;
pub mod positions;
pub mod read;
pub mod rejections;
pub mod scaffold;
pub mod structure;
pub mod versions;

pub use error::Problem;
pub use pipeline::{model, model_of, operations};

/// The stack size, in bytes, that is enough to read any document and generate its code. Documents nest and refer to
/// themselves, and their readers, including progenitor's, are recursive.
pub const STACK: usize = 256 << 20;
