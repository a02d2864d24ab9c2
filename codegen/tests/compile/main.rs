//! All generated fixtures compile, Dropshot takes their routes, and their types do what the documents say.

#![allow(clippy::unwrap_used)]

// A server would use all of it.
#[rustfmt::skip]
#[allow(dead_code, missing_docs, unused_imports)]
#[path = "../../fixtures/defects/mod.rs"]
mod defects;
#[rustfmt::skip]
#[allow(dead_code, missing_docs, unused_imports)]
#[path = "../../fixtures/positive/mod.rs"]
mod positive;
#[rustfmt::skip]
#[allow(dead_code, missing_docs, unused_imports)]
#[path = "../../fixtures/round_trip/mod.rs"]
mod round_trip;
mod stub;

mod answers;
mod any_of;
mod behaviour;
mod clients;
mod errors;
mod joined;
mod lists;
mod meeting_names;
mod moved_aside;
mod newer;
mod of_defects;
mod over_http;
mod round_trips;
mod routes;
mod rules;
mod unions;
