//! What an operator's machines see of a replica: `/live`, `/ready` and `/metrics`, on a listener of their own (OPS-6).
//!
//! Nothing here waits for the database: what a scrape tells is in memory. What only a query knows is looked up every half
//! minute ([`sample`]), and its age is told with it. Labels have the values of a table in the program: never a key, a partner
//! or a path.

mod gauges;
mod instruments;
mod internal;
mod page;
mod process;
mod ready;
mod sample;

pub use gauges::Watched;
pub use instruments::Instruments;
pub use internal::{Elsewhere, Internal, limits, start};
