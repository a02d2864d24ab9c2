//! The published document, compared with the snapshots and with the operations that Dropshot registers. Needs no database.

// A test says what is wrong by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod coverage;
mod dropshot;
