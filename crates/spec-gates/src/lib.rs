//! The gates in front of a release of the API.
//!
//! - Compatibility: [`compare`] finds what changed between the newest released contract and the working one, and
//!   [`verdict`] says whether its version and `CHANGELOG.md` are right for that (Semantic Versioning).
//! - [`consistency`]: what the contract says in two places is the same in both.
//! - [`documents`]: the files, folders and commands that the documents name exist, and so do the rules that comments
//!   cite; a test cites each.
//!
//! The tests run the gates on the real files; every message names the place and what to do.

pub mod accepted;
mod change;
mod compare;
pub mod consistency;
mod document;
pub mod documents;
pub mod released;
mod second_opinion;
mod verdict;

pub use change::{Change, Severity};
pub use compare::compare;
pub use verdict::verdict;
