//! Records measurements in batches: one statement records all packages that arrived while the previous statement ran.
//!
//! The first step ([`batch`]) finds a package's branch, detects a replay, and records the package as pending if its plate has
//! no open report. A package for an open report joins the queue of that report ([`report_queues`]). The [`workers`] then lock
//! the reports that are free, and record and apply their packages in one transaction.
//!
//! So packages share the flush of a commit, and nothing uncommitted is held while a worker waits for a report's lock. A report
//! that an inspector keeps locked delays only its own packages. Every wait has a deadline by this process's clock, and a
//! connection with unfinished work is closed instead of being reused. If a package has no outcome by its deadline, the outcome
//! is unknown; the partner sends the package again with the same external ID.

mod batch;
mod budget;
mod fair_queue;
mod queue;
mod report_queues;
mod workers;

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

use self::budget::{Budget, Reservation};
use self::queue::Queue;
use self::report_queues::ReportQueues;

/// The timeout of a statement or transaction, including the wait for its connection.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(900);

/// The timeout of a statement in the database. It is shorter than [`ATTEMPT_TIMEOUT`], so that the connection stays usable and
/// each half of the batch can be retried.
const STATEMENT_TIMEOUT: Duration = Duration::from_millis(400);

/// Derives the settings of the recorder's pool, which has one connection for each of its tasks, from the service's `settings`.
pub fn pool_settings(settings: &PoolSettings) -> PoolSettings {
    PoolSettings {
        size: 1 + workers::SHARED_WORKERS + workers::SINGLE_WORKERS,
        statement_timeout: settings.statement_timeout.min(STATEMENT_TIMEOUT),
        ..settings.clone()
    }
}

/// The outcome of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A new record.
    Recorded {
        /// The ID of the measurement.
        id: Uuid,
        /// The report it was applied to, and how; `None` if it is pending.
        applied: Option<(Uuid, Applied)>,
    },
    /// The external ID was recorded before. Nothing changes, except that different bytes are stored with the first package.
    Replayed(Replay),
    /// No active branch among those granted has the code. The caller must not reveal why.
    UnknownBranch,
    /// More than one branch granted has the code.
    AmbiguousBranch,
}

/// Why the outcome of a package is unknown.
#[derive(Clone, Debug, Error)]
pub enum RecordError {
    /// Too many packages of this partner, or of all partners, are unfinished. Nothing was recorded.
    #[error("too many measurements are being recorded")]
    Busy,
    /// The package was not finished by the deadline.
    #[error("the database did not respond in time")]
    Overdue,
    /// The database reported an error.
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
    /// Returns whether a retry may succeed.
    pub fn is_unavailable(&self) -> bool {
        match self {
            RecordError::Busy | RecordError::Overdue => true,
            RecordError::Db(error) => error.is_unavailable(),
        }
    }

    /// See [`DbError::rejection`].
    fn rejection(&self) -> Option<&SqlState> {
        match self {
            RecordError::Db(error) => error.rejection(),
            RecordError::Busy | RecordError::Overdue => None,
        }
    }
}

/// The result of [`Recorder::submit`].
type SubmitResult = Result<Outcome, RecordError>;

/// A package that is not finished yet.
struct WaitingPackage {
    package: Package,
    reply: oneshot::Sender<SubmitResult>,
    deadline: Deadline,
    // Released when the package is finished.
    _reservation: Reservation,
}

impl WaitingPackage {
    fn finish(self, result: SubmitResult) {
        // The request may have ended meanwhile.
        let _ = self.reply.send(result);
    }

    /// Returns whether the request still waits for the result.
    fn is_wanted(&self) -> bool {
        !self.reply.is_closed() && !self.deadline.has_passed()
    }
}

/// The state that the recorder's tasks share.
struct Shared {
    pool: Pool,
    attempt_timeout: Duration,
    queue: Queue,
    report_queues: ReportQueues,
}

/// Records measurements; a process has one. After it is dropped, its tasks finish the packages they have and end.
pub struct Recorder {
    shared: Arc<Shared>,
    budget: Arc<Budget>,
}

impl Recorder {
    /// Starts a recorder. It should have its own `pool` ([`pool_settings`]), so that reads do not wait for its connections.
    /// `attempt_timeout` is the timeout of a statement or transaction: [`ATTEMPT_TIMEOUT`] in a service.
    pub fn start(pool: Pool, attempt_timeout: Duration) -> Self {
        let shared = Arc::new(Shared {
            pool,
            attempt_timeout,
            queue: Queue::default(),
            report_queues: ReportQueues::default(),
        });
        tokio::spawn(batch::run(shared.clone()));
        for (lock, tasks) in [
            (Lock::SkipLocked, workers::SHARED_WORKERS),
            (Lock::Wait, workers::SINGLE_WORKERS),
        ] {
            for _ in 0..tasks {
                tokio::spawn(workers::run(shared.clone(), lock));
            }
        }
        Recorder {
            shared,
            budget: Arc::default(),
        }
    }

    /// Records a package, and applies it to the open report of its plate if there is one. Returns after the commit.
    ///
    /// # Errors
    /// After [`RecordError::Busy`] nothing was recorded; after any other error the outcome is unknown. Returns by the `deadline`.
    pub async fn submit(&self, package: Package, deadline: Deadline) -> SubmitResult {
        let reservation = self.budget.reserve(&package).ok_or(RecordError::Busy)?;
        let (reply, result) = oneshot::channel();
        self.shared.queue.push(WaitingPackage {
            package,
            reply,
            deadline,
            _reservation: reservation,
        });
        match deadline.within(result).await {
            Some(Ok(result)) => result,
            // The sender is dropped without a result if the deadline has passed, or after a panic.
            Some(Err(_)) | None => Err(RecordError::Overdue),
        }
    }
}

/// The amounts of unfinished packages.
#[derive(Clone, Copy, Debug, Default)]
pub struct InFlight {
    /// Packages that wait for their first batch.
    pub queued: usize,
    /// Open reports with packages that are being applied.
    pub reports: usize,
    /// Bytes of all unfinished packages.
    pub bytes: usize,
}

impl Recorder {
    /// Returns the current amounts.
    pub fn in_flight(&self) -> InFlight {
        InFlight {
            queued: self.shared.queue.len(),
            reports: self.shared.report_queues.len(),
            bytes: self.budget.in_use(),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.shared.queue.close();
        self.shared.report_queues.close();
    }
}

impl Shared {
    /// Takes a connection for one attempt.
    async fn connect(&self) -> Result<Connection, DbError> {
        Connection::take(&self.pool, self.attempt_timeout).await
    }
}

/// Runs `work` and catches its panic, so that the task continues. The packages of `work` are then dropped, and their requests
/// get a 503 at once.
async fn catch_panics(work: impl Future<Output = ()>) {
    if AssertUnwindSafe(work).catch_unwind().await.is_err() {
        tracing::error!("panicked while recording measurements; their requests get a 503; see the panic logged above");
    }
}

fn packages(batch: &[WaitingPackage]) -> Vec<&Package> {
    batch.iter().map(|waiting| &waiting.package).collect()
}

/// Finishes all packages with the error.
fn finish_all(batch: Vec<WaitingPackage>, error: &RecordError) {
    tracing::warn!(%error, packages = batch.len(), "failed to record measurements");
    for waiting in batch {
        waiting.finish(Err(error.clone()));
    }
}

#[cfg(test)]
mod tests {
    use partner_api_store::pool::{parse_url, pool};
    use tokio::net::TcpListener;

    use super::*;

    /// Returns the state of a recorder whose database accepts connections and never responds.
    pub(super) async fn hung_database() -> (TcpListener, Shared) {
        let database = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("postgresql://u@{}/d", database.local_addr().unwrap());
        let shared = Shared {
            pool: pool(parse_url(&url).unwrap(), &PoolSettings::default()).unwrap(),
            attempt_timeout: Duration::from_millis(50),
            queue: Queue::default(),
            report_queues: ReportQueues::default(),
        };
        (database, shared)
    }

    #[tokio::test]
    async fn a_recorder_reports_its_unfinished_packages_and_closes_its_queue() {
        let (_database, shared) = hung_database().await;
        let shared = Arc::new(shared);
        let recorder = Recorder {
            shared: shared.clone(),
            budget: Arc::default(),
        };
        let submitted = recorder.submit(queue::tests::package(Uuid::nil(), ""), Deadline::begin());
        assert!(submitted.now_or_never().is_none());
        let InFlight { queued, reports, bytes } = recorder.in_flight();
        assert_eq!((queued, reports, bytes), (1, 0, recorder.budget.in_use()));
        drop(recorder);
        drop(shared.queue.take());
        assert_eq!(shared.queue.is_filled().now_or_never(), Some(false));
    }

    #[test]
    fn the_pool_has_a_connection_for_each_task_and_a_short_timeout() {
        let settings = pool_settings(&PoolSettings::default());
        assert_eq!((settings.size, settings.statement_timeout), (4, STATEMENT_TIMEOUT));
    }
}
