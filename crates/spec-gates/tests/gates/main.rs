//! Runs the checks on the real files, and on changed contracts and documents.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod consistency;
mod contracts;
mod documents;
mod operations;
mod requests;
mod responses;
mod versions;
