//! Signatures and canonical queries: the published vectors, and properties of generated queries.

// Clippy's leave for tests does not reach helper functions beside them.
#![allow(clippy::unwrap_used)]

mod properties;
mod vectors;
