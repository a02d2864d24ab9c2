//! The harness of the conformance tests.
//!
//! A test starts its own [`Service`] over its own database (a copy of a template with the data of [`fixture`]), sends requests,
//! and examines the answers and the database. [`contract`] checks every answer against the OpenAPI document before the test sees
//! it; [`snapshot`] compares it with a file.
//!
//! ```text
//! let service = Service::start().await;
//! let answer = service.get(&ALPHA, "/api/v1/partner/health").await;
//! answer.snapshot("a_partner_is_told_who_it_is");
//! ```
//!
//! The databases live in one private PostgreSQL cluster. `test-postgres -- COMMAND` starts it, runs the command and
//! stops it; without it (plain `cargo test`) each process starts its own.
//!
//! Two checks guard the snapshots: [`coverage`] (each declared answer has one) and [`snapshot_log`] (each is asserted once).

// The harness panics where something is wrong: that fails the test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub mod answer;
pub mod certificate;
pub mod cluster;
pub mod contract;
pub mod coverage;
mod dropshot;
pub mod fixture;
pub mod inspectors;
mod leaks;
pub mod measurements;
pub mod metrics;
pub mod operations;
pub mod options;
pub mod port;
pub mod request;
pub mod request_log;
mod schema;
pub mod service;
pub mod snapshot;
pub mod snapshot_log;
pub mod suspended_processes;
pub mod wait;

pub use answer::Answer;
pub use fixture::{ALPHA, BETA, DELTA, GAMMA, TestKey};
pub use inspectors::{AYSE, DERYA, MEHMET};
pub use options::Options;
pub use request::Request;
pub use service::Service;
