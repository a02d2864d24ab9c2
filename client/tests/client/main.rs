//! The client over real HTTP.

// A test says what is wrong by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod calls;
mod common;
mod problems;
mod server;
mod sync;
