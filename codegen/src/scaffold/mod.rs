//! Files that are written once and then belong to the user: a crate around generated code, the file of an operation,
//! and the line that declares it in its module.
//!
//! They are created from templates. `a/{tag}/{operation}.rs.template` is the file of each operation; its `{{names}}` are
//! replaced. `a/{tag}/mod.rs.lines` contains lines that are added, in alphabetical order, to a file that does not have
//! them. The lines of a block, `mod x {` … `}`, are added to the same block. Existing files are never overwritten.

mod crates;
mod errors;
mod lines;
mod plan;
mod values;

pub use crates::{Runtime, init, operation_templates};
pub use plan::{Plan, Template, templates};
