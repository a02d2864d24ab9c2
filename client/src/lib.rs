//! A client for the Partner Inspection Reports and Test-Line Measurements API.
//!
//! The API reads reports and submits test-line measurements over HTTP and JSON. Every request is signed with HMAC-SHA256. This crate
//! signs requests, retries those that are safe to repeat, follows pages, keeps a copy of all reports up to date, and suggests remedies
//! for errors. The calls and types in [`types`] and [`builder`] are generated from the API's OpenAPI document. [`Client`] has a
//! method for each operation, named after its `operationId`.
//!
//! # The first request
//!
//! [`connect`] takes the URL of the service, a key ID and its secret, and sends nothing yet. Test them with a health request:
//!
//! ```no_run
//! use partner_api_client::{Call as _, connect};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = connect(
//!     "https://partner-sandbox.inspection.example",
//!     "vip_test_ABCDEFGHIJKLMNOPQRSTUV",
//!     &std::env::var("PARTNER_SECRET")?,
//! )?;
//! let health = client.get_health().send().response().await?;
//! println!("{} of {}, {}", health.status, health.environment, health.server_time);
//! # Ok(())
//! # }
//! ```
//!
//! Every call has this form: a method of [`Client`], its arguments, `send()`, and [`response()`](Call::response), which returns a
//! [`Response`] or a [`Problem`].
//!
//! # Submitting a measurement
//!
//! ```no_run
//! use partner_api_client::{Call as _, Client, Problem, types::MeasurementRequest};
//!
//! # async fn example(client: Client, uuid: &str) -> Result<(), Box<dyn std::error::Error>> {
//! let package = MeasurementRequest::builder()
//!     .branch_code("ANK-01")
//!     .plate("34 ABC 123")
//!     .external_id(Some(format!("ANK-01-BT3000-77812-{uuid}").parse()?))
//!     .measurements(std::collections::HashMap::from([("BRAKE_FRONT_LEFT".to_owned(), "2.85".parse()?)]));
//! let response = client.submit_measurement().body(package).send().response().await?;
//! if response.is_payload_mismatch() {
//!     eprintln!("this external_id was already used for another measurement: {}", response.data.measurement_id);
//! }
//! println!("{}, {} points written", response.data.status, response.data.applied_points.len());
//! # Ok(())
//! # }
//! ```
//!
//! The `external_id` makes retries safe. Choose it before the first attempt and store it with the measurement. While the outcome is
//! unknown, even after a restart, retry with the same ID: nothing is recorded twice. Without an ID, the client does not repeat an
//! attempt whose outcome is unknown ([`Problem::is_outcome_unknown`]). [`submit_raw`] sends the exact bytes of a package. To get the
//! status of a measurement later, submit its package again: the response has the current status, and nothing is recorded twice.
//!
//! # Reading reports
//!
//! [`inspections`] returns all pages of a list as one stream:
//!
//! ```no_run
//! use futures::TryStreamExt;
//! use partner_api_client::{Client, Problem, inspections, types::InspectionStatus};
//!
//! # async fn example(client: Client) -> Result<(), Problem> {
//! let list = client.list_inspections().status(InspectionStatus::Published);
//! let mut reports = std::pin::pin!(inspections(list));
//! while let Some(report) = reports.try_next().await? {
//!     println!("{} {}", report.report_number, report.final_price_try);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! To keep a copy of all reports, use [`sync`]. It fetches new and changed reports in batches. Each batch has a [`Checkpoint`] from
//! which an interrupted run resumes.
//!
//! # Handling errors
//!
//! A [`Problem`] describes the error with the request ID and, if known, a remedy. Programs use [`Problem::code`]:
//!
//! ```no_run
//! use partner_api_client::{Call as _, Client, Code};
//!
//! # async fn example(client: Client, id: &str) {
//! match client.get_inspection().id(id).send().response().await {
//!     Ok(report) => println!("{}", report.summary),
//!     Err(problem) if problem.code() == Some(&Code::NotFound) => println!("the report does not exist or is not accessible"),
//!     Err(problem) => eprintln!("{problem}"),
//! }
//! # }
//! ```
//!
//! # Automatic behavior
//!
//! - Each attempt is signed with a new timestamp and nonce over the same bytes ([`Hooks`]).
//! - Temporary failures are retried within limits if that is safe. The client waits as long as `Retry-After` asks ([`RetryPolicy`]).
//! - If the service rejects a request because this machine's clock is wrong, the client signs it again, and all later requests, with the
//!   service's time. [`Hooks::seconds_ahead`] returns the difference. Set the clock nevertheless.
//! - If the quota is used up, the client waits before it requests the next page of a list ([`RateLimit`]). [`Connector::on_pause`] sets a
//!   function that is called before each pause.
//! - Neither errors nor `Debug` output contain the secret.
//!
//! # Options
//!
//! [`Connector`] accepts a retry policy, an HTTP client with its own proxy or certificates, and an [`Observer`] of all attempts.

mod call;
mod clock;
mod code;
mod connect;
#[rustfmt::skip]
#[allow(unused_imports)] // The generated prelude, which this crate does not use.
mod generated;
mod hooks;
mod paging;
mod problem;
mod retry;
mod sync;

pub use call::{Call, Quota, RateLimit, Response, submit_raw};
pub use code::Code;
pub use connect::{ConnectError, Connector, connect};
pub use generated::{ByteStream, Client, ClientInfo, DecimalNumber, Error, ResponseValue, builder, types};
pub use hooks::{Exchange, Hooks, Observer, signed_path};
pub use paging::{inspections, inspections_with_pauses, inspections_with_reserve};
pub use partner_api_signing::{InvalidKeyId, InvalidSecret, KeyId, Secret};

pub use problem::{Problem, Rejection};
pub use retry::{Pause, PauseReason, RetryPolicy};
pub use sync::{Batch, Checkpoint, SyncOptions, sync};
