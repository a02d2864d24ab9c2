//! The program `partner`: a command-line client of the partner API.
//!
//! It calls the service through `partner-api-client`. Each command has a module with its arguments, its examples and its code.

mod certify;
pub mod cli;
mod explain;
mod failure;
mod file;
mod inspections;
mod measure;
mod platform;
mod profile;
mod proxy;
mod read;
mod request;
mod sign;
mod sync;
mod text;

pub use failure::Failure;
