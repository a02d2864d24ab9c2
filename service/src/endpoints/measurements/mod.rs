//! Test-line measurements.

pub mod submit_measurement;
