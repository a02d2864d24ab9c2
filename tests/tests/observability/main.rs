//! Metrics, alert rules, readiness and traces.

// A test says what is wrong by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod alerts;
mod metrics;
mod ready;
mod traces;
