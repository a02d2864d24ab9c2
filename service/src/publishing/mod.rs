//! Publishing reports: their PDFs are rendered in the background and kept in the object storage, from where they are
//! streamed (REP-8).
//!
//! A PDF's object key says what it was rendered from (`partner_api_domain::pdf_key`), and the statement that finds it for a reader
//! computes what the report holds now (`partner_api_store::inspections::pdf`): so nothing stale is served, whatever was changed and however.
//! What is missing or stale is work in the database (`partner_api_store::renderings`), and a `Worker` of any replica that was built with the
//! feature `render` does it.

#[cfg(feature = "render")]
mod background;
#[cfg(feature = "render")]
mod judged;
#[cfg(feature = "render")]
mod printed;
#[cfg(feature = "render")]
mod worker;

#[cfg(feature = "render")]
pub use background::Renderers;
#[cfg(feature = "render")]
pub use printed::{PHOTOS_MAX, read};
#[cfg(feature = "render")]
pub use worker::{PublishError, Turn, Worker};

/// Media type of a rendered report.
pub const MIME_TYPE: &str = "application/pdf";
