//! The listener's clock.

use std::time::Duration;

use tokio::time::Instant;

/// A clock that counts microseconds since the listener's start, which fit into an atomic. It never returns 0, which means "none".
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

impl Clock {
    /// Returns a clock that starts now.
    pub fn start() -> Self {
        Clock(Instant::now())
    }

    /// Returns the current time.
    pub fn now(self) -> u64 {
        micros(self.0.elapsed()) + 1
    }

    /// Converts a time of this clock to an `Instant`.
    pub fn at(self, time: u64) -> Instant {
        self.0 + Duration::from_micros(time - 1)
    }
}

/// Converts a duration to microseconds. A duration that does not fit becomes a practically infinite one.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX / 4)
}
