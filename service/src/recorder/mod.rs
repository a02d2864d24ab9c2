//! Records measurements: what arrives while a statement runs is recorded by the next one, all of it together.
//!
//! A package first goes into a batch with whatever else has arrived ([`batch`]), which finds its branch, answers it if it
//! was recorded before, and records it if it waits for a report. Only a package for an open report goes on, into the line
//! of that report ([`reports`]): a transaction locks as many reports as are free, and applies all that has come for them
//! meanwhile.
//!
//! So the flush of a commit is shared, and nothing uncommitted is held while a report's lock is waited for: a report that an
//! inspector keeps locked delays its own packages alone. Every wait ends by this process's clock; a connection that was
//! given up is closed and never used again. What is unanswered by then is unknown: the partner sends it again, with the
//! same external id.

mod batch;
mod budget;
mod lines;
mod queue;
mod reports;
mod turns;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
use futures::FutureExt;
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::deadline::Deadline;
use partner_api_store::measurements::{Applied, Lock, Package, Replay};
use partner_api_store::pool::PoolSettings;
use thiserror::Error;
use tokio::sync::oneshot;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use self::budget::{Budget, Held};
use self::lines::Lines;
use self::queue::Queue;

/// The longest that a statement, or a transaction, and the wait for its connection may take together.
pub const ATTEMPT_WITHIN: Duration = Duration::from_millis(900);

/// How long the database waits for a lock, or works, before it refuses on its own: sooner than [`ATTEMPT_WITHIN`], so that
/// the connection stays, and each half of a batch is tried once more.
const STATEMENT_TIMEOUT: Duration = Duration::from_millis(400);

/// The connections that a recorder works with, one for each of its tasks, as one pool's are `settings`.
pub fn pool_settings(settings: &PoolSettings) -> PoolSettings {
    PoolSettings {
        size: 1 + reports::ROUNDS + reports::ALONE,
        statement_timeout: settings.statement_timeout.min(STATEMENT_TIMEOUT),
        ..settings.clone()
    }
}

/// What became of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A new record.
    Recorded {
        /// Its id.
        id: Uuid,
        /// The report it was applied to, and how; `None`: it waits.
        applied: Option<(Uuid, Applied)>,
    },
    /// The external id was recorded before; nothing has changed, but that other bytes are kept beside it.
    Replayed(Replay),
    /// No active branch among those granted has the code; why not, the caller must not tell.
    UnknownBranch,
    /// More than one branch granted has the code.
    AmbiguousBranch,
}

/// Why it is not known what became of a package.
#[derive(Clone, Debug, Error)]
pub enum RecordError {
    /// Too much of this partner's, or of all of them, is under way; nothing was recorded.
    #[error("too many measurements are under way")]
    Busy,
    /// No answer in time.
    #[error("the database did not answer in time")]
    Overdue,
    /// What the database said.
    #[error(transparent)]
    Db(Arc<DbError>),
}

impl From<DbError> for RecordError {
    fn from(error: DbError) -> Self {
        match error {
            DbError::TimedOut => RecordError::Overdue,
            error => RecordError::Db(Arc::new(error)),
        }
    }
}

impl RecordError {
    /// Whether the same package, sent again, may fare better.
    pub fn is_unavailable(&self) -> bool {
        match self {
            RecordError::Busy | RecordError::Overdue => true,
            RecordError::Db(error) => error.is_unavailable(),
        }
    }

    /// As [`DbError::refusal`].
    fn refusal(&self) -> Option<&SqlState> {
        match self {
            RecordError::Db(error) => error.refusal(),
            RecordError::Busy | RecordError::Overdue => None,
        }
    }
}

type Answer = Result<Outcome, RecordError>;

/// A package on its way.
struct WaitingPackage {
    package: Package,
    answer: oneshot::Sender<Answer>,
    deadline: Deadline,
    // Given back with the answer.
    _held: Held,
}

impl WaitingPackage {
    fn answer(self, answer: Answer) {
        // Who no longer waits needs no answer.
        let _ = self.answer.send(answer);
    }

    /// Whether anybody still waits for it.
    fn is_wanted(&self) -> bool {
        !self.answer.is_closed() && !self.deadline.has_passed()
    }
}

/// What the tasks of a recorder share.
struct Shared {
    pool: Pool,
    attempt_within: Duration,
    queue: Queue,
    lines: Lines,
}

/// Records measurements; one for a process. Its tasks end with it, after what they have at hand.
pub struct Recorder {
    shared: Arc<Shared>,
    budget: Arc<Budget>,
}

impl Recorder {
    /// Starts recording through `pool`, which should be this one's own ([`pool_settings`]): a read must not wait behind it.
    /// A statement, or a transaction, is given up after `attempt_within`: [`ATTEMPT_WITHIN`] in a service.
    pub fn start(pool: Pool, attempt_within: Duration) -> Self {
        let shared = Arc::new(Shared {
            pool,
            attempt_within,
            queue: Queue::default(),
            lines: Lines::default(),
        });
        tokio::spawn(batch::run(shared.clone()));
        for (lock, tasks) in [(Lock::Free, reports::ROUNDS), (Lock::InTurn, reports::ALONE)] {
            for _ in 0..tasks {
                tokio::spawn(reports::run(shared.clone(), lock));
            }
        }
        Recorder {
            shared,
            budget: Arc::default(),
        }
    }

    /// Records a package, and applies it to the open report of its plate if there is one. What is answered is durable.
    ///
    /// # Errors
    /// No later than at the `deadline`. After [`RecordError::Busy`] nothing was recorded; after any other the outcome is unknown.
    pub async fn submit(&self, package: Package, deadline: Deadline) -> Answer {
        let held = self.budget.hold(&package).ok_or(RecordError::Busy)?;
        let (answer, outcome) = oneshot::channel();
        self.shared.queue.push(WaitingPackage {
            package,
            answer,
            deadline,
            _held: held,
        });
        match deadline.within(outcome).await {
            Some(Ok(answer)) => answer,
            // Dropped unanswered where it was seen to be overdue.
            Some(Err(_)) | None => Err(RecordError::Overdue),
        }
    }
}

/// What a recorder has in memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnderWay {
    /// Packages that no statement has looked at yet.
    pub queued: usize,
    /// Open reports with packages that are being applied.
    pub reports: usize,
    /// Bytes of all packages that are not answered yet.
    pub bytes: usize,
}

impl Recorder {
    /// What is under way.
    pub fn under_way(&self) -> UnderWay {
        UnderWay {
            queued: self.shared.queue.len(),
            reports: self.shared.lines.len(),
            bytes: self.budget.taken(),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.shared.queue.close();
        self.shared.lines.close();
    }
}

impl Shared {
    /// A connection for one attempt.
    async fn connect(&self) -> Result<Connection, DbError> {
        Connection::take(&self.pool, self.attempt_within).await
    }
}

/// Does a piece of the work of a task that must go on whatever becomes of it. Where it panics, what it had at hand is
/// dropped unanswered, which its callers are told at once.
async fn unless_it_panics(work: impl Future<Output = ()>) {
    if AssertUnwindSafe(work).catch_unwind().await.is_err() {
        tracing::error!(
            "recording measurements panicked; their callers are answered 503, and the panic is in the log before this line"
        );
    }
}

fn packages(batch: &[WaitingPackage]) -> Vec<&Package> {
    batch.iter().map(|waiting| &waiting.package).collect()
}

/// Tells all of a batch what went wrong.
fn answer_all(batch: Vec<WaitingPackage>, error: &RecordError) {
    tracing::warn!(%error, packages = batch.len(), "measurements could not be recorded");
    for waiting in batch {
        waiting.answer(Err(error.clone()));
    }
}
