//! The harness of the conformance tests.
//!
//! A test starts a [`Service`] of its own over a database of its own (a copy of a template that holds the small world of
//! [`fixture`]), sends requests, and looks at the answers and at the database. Every answer, whichever way it was got, is
//! checked against the OpenAPI document by [`contract`] before the test sees it, and is kept as a [`snapshot`].
//!
//! ```text
//! let service = Service::start().await;
//! let answer = service.get(&ALPHA, "/api/v1/partner/health").await;
//! answer.snapshot("a_partner_is_told_who_it_is");
//! ```
//!
//! The databases live in one private PostgreSQL cluster. `test-postgres -- COMMAND` starts it, runs the command and
//! stops it; without that (plain `cargo test`) each process starts its own.
//!
//! Two gates watch the snapshots: [`coverage`] (each declared answer has one) and [`snapshot_log`] (each is asserted).

// A harness says what is wrong by panicking: that is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub mod answer;
pub mod cluster;
pub mod contract;
pub mod coverage;
pub mod desk;
pub mod fixture;
pub mod operations;
pub mod options;
pub mod port;
pub mod request;
mod schema;
mod secrecy;
pub mod service;
pub mod snapshot;
pub mod snapshot_log;
pub mod stopped;
pub mod wait;

pub use answer::Answer;
pub use desk::{AYSE, DERYA, MEHMET};
pub use fixture::{ALPHA, BETA, DELTA, GAMMA, TestKey};
pub use options::Options;
pub use request::Request;
pub use service::Service;
