//! The gates on the real files, and on contracts and documents that were changed on purpose.

// A test says what is wrong by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod consistency;
mod contracts;
mod documents;
mod operations;
mod requests;
mod responses;
mod spelling;
mod versions;
