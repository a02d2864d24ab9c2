//! The request log: its rows, its reasons, and the operators' searches.

// Tests report failures by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod partitions;
mod reading;
mod reasons;
mod rejections;
mod rows;
