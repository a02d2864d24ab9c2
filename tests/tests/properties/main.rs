//! Properties of every operation and of generated data: paging, privacy, and the separation of tenants.

// Tests report failures by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod fields;
mod inspectors_see;
mod paging;
mod privacy_table;
mod tenant_cross_product;
