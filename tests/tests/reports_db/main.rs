//! Reports as partners read them, from a real database: what is listed, in which order, and what stays hidden.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used)]
#![expect(
    clippy::disallowed_methods,
    reason = "what a test arranges is no statement of the service"
)]

mod limits;
mod listing;
mod moving;
mod reading;
mod world;
