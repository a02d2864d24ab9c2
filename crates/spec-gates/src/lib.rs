//! Checks of the contract and of the project's documents.
//!
//! - Compatibility: [`compare`] finds the changes between the newest released contract and the working one. [`verdict`] checks
//!   that the version and `CHANGELOG.md` match these changes (Semantic Versioning).
//! - [`consistency`]: the contract does not contradict itself.
//! - [`documents`]: the files, folders and commands that documents name exist, and so do the rules that comments cite. A test
//!   cites each rule.
//!
//! The tests run the checks on the real files. Each message names the place and the remedy.

pub mod accepted;
mod change;
mod compare;
pub mod consistency;
mod document;
pub mod documents;
pub mod released;
mod second_opinion;

pub use change::{Change, Severity, verdict};
pub use compare::compare;
