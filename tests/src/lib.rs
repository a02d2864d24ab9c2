//! The harness of the conformance tests.
//!
//! A test starts its own [`Service`] over its own database (a copy of a template with the data of [`fixture`]), sends requests,
//! and examines the responses and the database. [`contract`] checks every response against the OpenAPI document before the test
//! gets it; [`snapshot`] compares it with a file.
//!
//! ```text
//! let service = Service::start().await;
//! let response = service.get(&ALPHA, "/api/v1/partner/health").await;
//! response.snapshot("health_returns_the_partner_and_the_time");
//! ```
//!
//! All databases are in one private PostgreSQL cluster, which `test-postgres -- COMMAND` starts for the command and then stops.
//! Without it (plain `cargo test`), each process starts a cluster.
//!
//! Two checks guard the snapshots: [`coverage`] (each declared response has one) and [`snapshot_log`] (each is asserted once).

// The harness reports failures by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub mod certificate;
pub mod cluster;
pub mod contract;
pub mod coverage;
mod dropshot;
pub mod fixture;
pub mod inspectors;
mod leaks;
pub mod log;
pub mod measurements;
pub mod metrics;
pub mod operations;
pub mod options;
pub mod port;
pub mod request;
pub mod request_log;
pub mod response;
mod schema;
pub mod service;
pub mod snapshot;
pub mod snapshot_log;
mod state;
pub mod suspended_processes;
pub mod wait;

pub use fixture::{ALPHA, BETA, DELTA, GAMMA, TestKey};
pub use inspectors::{AYSE, DERYA, MEHMET};
pub use options::Options;
pub use request::Request;
pub use response::TestResponse;
pub use service::Service;
