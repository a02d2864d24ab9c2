//! The inspectors' rules, as pure functions without I/O.

pub mod answers;
pub mod moves;
