//! The operations, one file each.

pub mod measurements;
pub mod reports;
pub mod session;
