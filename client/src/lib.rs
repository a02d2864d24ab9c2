//! A client of the Partner Inspection Reports and Test-Line Measurements API.
//!
//! The calls and types in [`types`] and [`builder`] are generated from the OpenAPI document: one method of [`Client`]
//! per operation, named as its `operationId`. This crate adds what the document cannot say:
//!
//! - every attempt at a request is signed anew, with a fresh timestamp and nonce ([`Hooks`]);
//! - connection failures, 429 and 503 are retried within bounds, where that is safe ([`RetryPolicy`]);
//! - the list of inspections as one stream over all its pages ([`inspections`]);
//! - what to do about an error, in words ([`describe`]).
//!
//! ```no_run
//! use futures::TryStreamExt;
//! use partner_api_client::{connect, describe, inspections, types::MeasurementRequest};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = connect(
//!     "https://partner-sandbox.inspection.example",
//!     "vip_test_ABCDEFGHIJKLMNOPQRSTUV",
//!     "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
//! )?;
//!
//! // One call.
//! match client.get_health().send().await {
//!     Ok(health) => println!("{} at {}", health.environment, health.server_time),
//!     Err(error) => eprintln!("{}", describe(&error)),
//! }
//!
//! // All published reports, page by page as they are consumed.
//! let mut reports = std::pin::pin!(inspections(client.list_inspections().limit(std::num::NonZeroU32::MIN)));
//! while let Some(report) = reports.try_next().await? {
//!     println!("{}", report.report_number);
//! }
//!
//! // A measurement. With an `external_id` it may be retried without being recorded twice.
//! let package = MeasurementRequest::builder()
//!     .branch_code("ANK-01")
//!     .plate("34 ABC 123")
//!     .external_id(Some("M-2026-000123".parse()?))
//!     .measurements(std::collections::HashMap::from([("BRAKE_FRONT_LEFT".to_owned(), "2.85".parse()?)]));
//! let answer = client.submit_measurement().body(package).send().await?;
//! println!("{:?}", answer.data.status);
//! # Ok(())
//! # }
//! ```

mod connect;
mod describe;
#[rustfmt::skip]
#[allow(unused_imports)] // Its prelude, which this crate does not need.
mod generated;
mod hooks;
mod paging;
mod retry;

pub use connect::{ConnectError, Connector, connect};
pub use describe::{Description, describe};
pub use generated::{ByteStream, Client, ClientInfo, DecimalNumber, Error, ResponseValue, builder, types};
pub use hooks::{Exchange, Hooks, Observer};
pub use paging::inspections;
pub use partner_api_signing::{InvalidKeyId, InvalidSecret, KeyId, Secret};
pub use retry::RetryPolicy;
