//! The partner API's service. The program around it is the crate `partner-api-cli`.
//!
//! A request's way in is three rooms long: [`front_door`] → [`endpoints`] → [`db`]. What two endpoints share is pure and
//! lives in [`rules`], or is SQL and lives in [`db`]. [`generated`] comes from the OpenAPI document and is never edited.

pub mod admission;
pub mod config;
pub mod context;
pub mod db;
pub mod deadline;
pub mod directory;
pub mod endpoints;
pub mod error;
pub mod front_door;
// Formatted by the generator.
#[rustfmt::skip]
pub mod generated;
pub mod listener;
pub mod logging;
pub mod observability;
pub mod publishing;
pub mod recorder;
pub mod replicas;
pub mod request_log;
pub mod rules;
pub mod secrets;
pub mod server;
pub mod startup;
pub mod storage;
pub mod tls;
pub mod traces;
