//! All generated fixtures compile, Dropshot takes their routes, and their types do what the documents say.

// A server would use all of it.
#[allow(dead_code, missing_docs)]
#[path = "../../fixtures/positive/mod.rs"]
mod positive;
#[allow(dead_code, missing_docs)]
#[path = "../../fixtures/round_trip/mod.rs"]
mod round_trip;
mod stub;

mod behaviour;
mod routes;
mod round_trips;
