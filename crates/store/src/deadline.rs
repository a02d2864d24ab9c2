//! The deadline for all database waits of a request together.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// The time that a request may wait for the database in total, from the arrival of its body. Including its other work, every
/// request gets its response within 2 s (REQ-12).
pub const DATABASE_WAIT: Duration = Duration::from_millis(1_800);

/// The time at which a request stops waiting for the database.
///
/// It starts when the body of the request has arrived. Admission, the wait for a connection, each statement and the recorder
/// share it: the time that one of them uses is not available to the next. It cannot be extended. An endpoint gets
/// connections only through the caller of the request, which carries the deadline.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// Starts the deadline of a request whose body has just arrived.
    #[must_use]
    pub fn begin() -> Self {
        Deadline(Instant::now() + DATABASE_WAIT)
    }

    /// Starts the deadline of a request that has already `waited` in the listener.
    #[must_use]
    pub fn begin_after(waited: Duration) -> Self {
        Deadline(Instant::now() + DATABASE_WAIT.saturating_sub(waited))
    }

    /// Awaits `wait`, and returns `None` if the deadline passes first.
    pub async fn within<T>(self, wait: impl Future<Output = T>) -> Option<T> {
        timeout_at(self.0, wait).await.ok()
    }

    /// Returns the deadline as an instant.
    pub(crate) fn instant(self) -> Instant {
        self.0
    }

    /// Returns whether the deadline has passed.
    pub fn has_passed(self) -> bool {
        Instant::now() >= self.0
    }
}
