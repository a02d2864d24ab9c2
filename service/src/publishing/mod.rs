//! Publishing of reports: PDFs are rendered in the background, stored in the object storage, and streamed from there (REP-8).
//!
//! A PDF's object key contains a fingerprint of the data that it shows (`partner_api_domain::pdf_key`). The statement that finds a
//! PDF for a request computes the fingerprint of the current data (`partner_api_store::inspections::pdf`), so no stale PDF is
//! served. The database holds the queue of reports whose PDFs are missing or stale (`partner_api_store::renderings`). A `Worker` of
//! any replica that was built with the feature `render` renders them.

#[cfg(feature = "render")]
mod background;
#[cfg(feature = "render")]
mod limits;
#[cfg(feature = "render")]
mod printed;
#[cfg(feature = "render")]
mod worker;

#[cfg(feature = "render")]
pub use background::Renderers;
#[cfg(feature = "render")]
pub use printed::{PHOTOS_MAX, read};
#[cfg(feature = "render")]
pub use worker::{PublishError, RenderOutcome, Worker};

/// The media type of a rendered report.
pub const MIME_TYPE: &str = "application/pdf";
