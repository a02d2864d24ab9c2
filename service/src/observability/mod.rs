//! Monitoring of a replica: `/live`, `/ready` and `/metrics` on the internal listener (OPS-6).
//!
//! Nothing here waits for the database: a scrape reads memory only. Values that need a query are sampled every 30 s
//! ([`sample`]) and published with their age. The values of labels are a fixed set: never a key, a partner or a path.

mod gauges;
mod instruments;
mod internal;
mod page;
mod process;
mod ready;
mod sample;

pub use gauges::{InMemory, Watched};
pub use instruments::Instruments;
pub use internal::{Internal, STOP_TIMEOUT, limits, start};
