//! What devices have sent for a plate.

pub mod apply_measurement;
pub mod discard_measurement;
pub mod watch_reports;
