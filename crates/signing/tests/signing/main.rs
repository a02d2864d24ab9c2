//! Tests of signatures and canonical queries: the published vectors, and properties of generated queries.

// Clippy's configuration for tests does not apply to helper functions.
#![allow(clippy::unwrap_used)]

mod properties;
mod vectors;
