//! Shared code of the command-line programs `partner-api` and `partner`.

pub mod manual;
pub mod names;
pub mod output;
pub mod progress;
pub mod when;
