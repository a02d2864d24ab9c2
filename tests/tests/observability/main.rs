//! Metrics, alert rules, readiness and traces.

// Tests report failures by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod alerts;
mod causes;
mod metrics;
mod ready;
mod traces;
