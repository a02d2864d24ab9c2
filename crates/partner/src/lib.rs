//! The program `partner`: the partner API on the command line, for partners.
//!
//! What it says to the service it says through `partner-api-client`; this crate is what a command line adds. A module for each
//! command: its arguments, its examples, and what it does.

mod certify;
pub mod cli;
mod explain;
mod failure;
mod file;
mod inspections;
mod measure;
mod profile;
mod proxy;
mod read;
mod request;
mod sign;
mod sync;

pub use failure::Failure;
