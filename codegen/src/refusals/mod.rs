//! Collection of all errors in a document.
//!
//! The readers stop at the first error. To find all errors, the refused value is replaced by a valid one in a copy of
//! the document (`patch`), and the part is read again until it has no errors. Errors that only result from a
//! replacement are not reported.

mod group;
mod patch;
mod search;
mod skip;

pub use group::{Group, groups};
pub use search::all;
pub use skip::{Left, skipping};
