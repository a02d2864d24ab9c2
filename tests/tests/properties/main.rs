//! Properties that hold for every operation, and for generated data: paging, privacy, and the separation of tenants.

// A test says what is wrong by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod fields;
mod inspectors_see;
mod paging;
mod privacy_table;
mod tenant_cross_product;
