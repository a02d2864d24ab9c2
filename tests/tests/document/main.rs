//! The published document, compared with the snapshots and with the operations that Dropshot registers. Needs no database.

// Tests report failures by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod coverage;
mod dropshot;
