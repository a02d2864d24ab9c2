//! The request log: its rows, its reasons, and how operators read it.

// A test says what is wrong by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod partitions;
mod reading;
mod reasons;
mod refusals;
mod rows;
