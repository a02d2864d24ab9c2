//! The inspectors' rules: pure, no I/O.

pub mod moves;
pub mod vocabulary;
