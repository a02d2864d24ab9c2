//! What the command lines of this project have in common: `partner-api` for operators and `partner` for partners.

pub mod manual;
pub mod names;
pub mod output;
pub mod progress;
pub mod when;
