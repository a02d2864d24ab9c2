//! Organizations and their branches.

pub mod list_branches;
pub mod list_organizations;
