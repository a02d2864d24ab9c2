//! The inspectors' rules: pure, no I/O.

pub mod answers;
pub mod moves;
pub mod vocabulary;
