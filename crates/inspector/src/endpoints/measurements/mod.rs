//! Operations on pending measurements, and the event stream.

pub mod apply_measurement;
pub mod discard_measurement;
pub mod undo_measurement;
pub mod watch_reports;
