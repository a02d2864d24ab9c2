//! Collection of all errors in a document.
//!
//! The readers stop at the first error. To find all errors, the search works on a copy of the document. It replaces each
//! rejected value by a valid one (`patch`) and reads the part again, until the part has no errors. Errors that only
//! result from a replacement are not reported.

mod group;
mod patch;
mod search;
mod skip;

pub use group::{Group, groups};
pub use search::all;
pub use skip::{Left, skipping};
