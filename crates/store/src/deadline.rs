//! How long a request may wait for the database: all its waits together, not each.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// What a request's waits for the database may take together, from the arrival of its body on: with what else a request
/// takes, every answer is there within 2 s (REQ-12).
pub const DATABASE_WAIT: Duration = Duration::from_millis(1_800);

/// When a request stops waiting for the database.
///
/// It begins when the request's body has arrived and moves along with the request: admission, a connection, a statement and
/// the recorder all end their waits by it, so that what one of them took the next no longer has. Nobody can ask for a longer
/// one, and an endpoint has no other: it gets a connection, or a measurement recorded, from the
/// service's context for its caller alone, who carries it.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// That of a request whose body has arrived just now.
    #[must_use]
    pub fn begin() -> Self {
        Deadline(Instant::now() + DATABASE_WAIT)
    }

    /// What `wait` comes to; `None` when the deadline comes first.
    pub async fn within<T>(self, wait: impl Future<Output = T>) -> Option<T> {
        timeout_at(self.0, wait).await.ok()
    }

    /// The moment itself.
    pub(crate) fn instant(self) -> Instant {
        self.0
    }

    /// Whether nobody waits any more.
    pub fn has_passed(self) -> bool {
        Instant::now() >= self.0
    }
}
