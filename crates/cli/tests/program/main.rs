//! Tests that run the program `partner-api` as a process.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod linked;
mod operators;
#[cfg(feature = "embedded-postgres")]
mod serving;
