//! Tests of the client over real HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod calls;
mod common;
mod problems;
mod server;
mod sync;
