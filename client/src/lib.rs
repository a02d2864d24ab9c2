//! A client of the Partner Inspection Reports and Test-Line Measurements API.
//!
//! Reports are read, and measurements of test lines are sent, over HTTP and JSON, every request signed with HMAC-SHA256. This
//! crate signs, retries what is safe to retry, follows pages, keeps a copy up to date, and says in words what to do about an
//! error. The calls and types in [`types`] and [`builder`] are generated from the API's OpenAPI document: one method of
//! [`Client`] per operation, named as its `operationId`.
//!
//! # The first request
//!
//! What is needed is the address of the service, a key id and its secret. [`connect`] takes them and sends nothing yet;
//! health is the request to try them with:
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
//! let health = client.get_health().send().answer().await?;
//! println!("{} of {}, {}", health.status, health.environment, health.server_time);
//! # Ok(())
//! # }
//! ```
//!
//! Every call is made in this way: a method of [`Client`], its arguments, `send()`, and [`answer()`](Call::answer), which
//! gives an [`Answer`] or a [`Problem`].
//!
//! # Sending a measurement
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
//! let answer = client.submit_measurement().body(package).send().answer().await?;
//! if answer.is_payload_mismatch() {
//!     eprintln!("this external_id was used for another measurement: {}", answer.data.measurement_id);
//! }
//! println!("{}, {} points written", answer.data.status, answer.data.applied_points.len());
//! # Ok(())
//! # }
//! ```
//!
//! The `external_id` makes it safe: fix it before the first attempt, keep it with the measurement, and send it again for as long
//! as the outcome is not known, after a restart too. Nothing is then recorded twice. Without one, an attempt whose outcome is
//! unknown ([`Problem::is_outcome_unknown`]) is not repeated. [`submit_raw`] sends a package as it lies in a file.
//!
//! # Reading reports
//!
//! [`inspections`] is a list as one stream over all its pages:
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
//! Who keeps a copy of all reports uses [`sync`]: it fetches what is new, and what was archived, cancelled or changed since,
//! batch by batch, each with a [`Checkpoint`] from which an interrupted run goes on.
//!
//! # When it fails
//!
//! A [`Problem`] says what went wrong, in a sentence with the request id to quote and with what to do; [`Problem::code`] says it
//! to programs:
//!
//! ```no_run
//! use partner_api_client::{Call as _, Client, Code};
//!
//! # async fn example(client: Client, id: &str) {
//! match client.get_inspection().id(id).send().answer().await {
//!     Ok(report) => println!("{}", report.summary),
//!     Err(problem) if problem.code() == Some(&Code::NotFound) => println!("no such report, or not open to us"),
//!     Err(problem) => eprintln!("{problem}"),
//! }
//! # }
//! ```
//!
//! # What happens by itself
//!
//! - Every attempt at a request is signed anew, with a fresh timestamp and nonce, over the same bytes ([`Hooks`]).
//! - What passes by itself is tried again within bounds, where that is safe, and as late as `Retry-After` says
//!   ([`RetryPolicy`]).
//! - A request that is refused because this machine's clock is off is signed once more with the service's time, and so is what
//!   follows. [`Hooks::seconds_ahead`] tells by how much; the clock is to be mended all the same.
//! - Before the next page of a list, a quota that is used up is waited for ([`RateLimit`]).
//! - No error, and nothing that `Debug` prints, holds the secret.
//!
//! # Choices
//!
//! [`Connector`] takes a retry policy, an HTTP client with a proxy or certificates of its own, and an [`Observer`] that is shown
//! every attempt.

mod call;
mod clock;
mod code;
mod connect;
#[rustfmt::skip]
#[allow(unused_imports)] // Its prelude, which this crate does not need.
mod generated;
mod hooks;
mod paging;
mod problem;
mod retry;
mod seen;
mod sync;

pub use call::{Answer, Call, RateLimit, submit_raw};
pub use code::Code;
pub use connect::{ConnectError, Connector, connect};
pub use generated::{ByteStream, Client, ClientInfo, DecimalNumber, Error, ResponseValue, builder, types};
pub use hooks::{Exchange, Hooks, Observer, signed_path};
pub use paging::{inspections, inspections_leaving};
pub use partner_api_signing::{InvalidKeyId, InvalidSecret, KeyId, Secret};
pub use problem::{Problem, Refusal};
pub use retry::RetryPolicy;
pub use sync::{Batch, Checkpoint, SyncOptions, sync};
