//! The operations, a file for each.

pub mod measurements;
pub mod reports;
pub mod session;
