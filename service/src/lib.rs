//! The partner API's service. The program around it is the crate `partner-api-cli`.
//!
//! A request passes through three layers: [`gateway`], [`endpoints`], [`partner_api_store`]. Code that two endpoints share is
//! in [`partner_api_domain`] if it is pure, and otherwise in [`partner_api_store`]. [`generated`] comes from the OpenAPI document
//! and is never edited.

pub mod admission;
pub mod config;
pub mod context;
pub mod endpoints;
pub mod error;
pub mod gateway;
// Formatted by the generator.
#[rustfmt::skip]
pub mod generated;
pub mod inspectors;
pub mod logging;
pub mod observability;
pub mod plausible;
pub mod publishing;
pub mod recorder;
pub mod replicas;
pub mod request_log;
pub mod server;
pub mod startup;
pub mod storage;
pub mod traces;

pub use self::admission::caller;
