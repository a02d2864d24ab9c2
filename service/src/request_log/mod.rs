//! The request log: a row for each request, for operators (SVC-5, SVC-8).
//!
//! After its response, a request puts its [`Record`] into a bounded queue. A task writes the queued records over its own
//! connections ([`writer`]). A full queue or an unavailable database never delays a request: records that cannot be queued or
//! written are dropped and counted, and the counts are written when the database is available again.

mod find;
mod partitions;
mod writer;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

pub use find::{Cursor, Drops, Entry, FOLLOW_DELAY, Filter, drops, find, follow, list};
pub use partitions::partitions;
pub use partner_api_gateway::Reason;

use partner_api_gateway::Record;
use partner_api_store::pool::PoolSettings;
use writer::Writer;

/// The capacity of the queue in records: some megabytes. Records that do not fit are dropped.
const QUEUE: usize = 10_000;

/// The interval of partition maintenance.
const MAINTENANCE: Duration = Duration::from_secs(300);

/// The counts of a log since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Records that wait to be written.
    pub queued: u64,
    /// Records that were written.
    pub written: u64,
    /// Records that were dropped because the queue was full.
    pub dropped_full: u64,
    /// Records that were dropped because the database did not accept them.
    pub dropped_unwritten: u64,
}

/// The counters that the writer and the requests share.
#[derive(Debug, Default)]
struct Counts {
    /// Records in the writer's current batch.
    in_batch: AtomicU64,
    written: AtomicU64,
    dropped_full: AtomicU64,
    dropped_unwritten: AtomicU64,
}

/// Derives the settings of the log's pool from the service's `settings`: one connection for writing, one for maintenance.
pub fn pool_settings(settings: &PoolSettings) -> PoolSettings {
    PoolSettings {
        size: 2,
        statement_timeout: settings.statement_timeout.min(writer::STATEMENT_TIMEOUT),
        // A crash of the database may lose the last rows. In return, their commits do not compete with those of requests.
        synchronous_commit: false,
        ..settings.clone()
    }
}

/// The request log of a process; cheap to clone.
#[derive(Clone, Debug)]
pub struct RequestLog(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    queue: mpsc::Sender<Record>,
    counts: Arc<Counts>,
    stop: Arc<Notify>,
    writer: Mutex<Option<JoinHandle<()>>>,
    maintenance: JoinHandle<()>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.maintenance.abort();
    }
}

impl RequestLog {
    /// Returns a log that drops every record.
    pub fn off() -> Self {
        RequestLog(None)
    }

    /// Starts a log that keeps its rows for `days`. It should have its own `pool` ([`pool_settings`]). The writer ends when the
    /// last clone is dropped, or with [`stop`](Self::stop).
    pub fn start(pool: Pool, days: u32) -> Self {
        let (queue, records) = mpsc::channel(QUEUE);
        let (counts, stop) = (Arc::<Counts>::default(), Arc::<Notify>::default());
        let partitions = partitions(days);
        let writer = Writer::new(pool.clone(), partitions.clone(), records, counts.clone(), stop.clone());
        RequestLog(Some(Arc::new(Shared {
            queue,
            counts,
            stop,
            writer: Mutex::new(Some(tokio::spawn(writer.run()))),
            maintenance: tokio::spawn(partitions::maintain_forever(partitions, pool, MAINTENANCE)),
        })))
    }

    /// Queues a record, or counts it as dropped. Never blocks.
    pub(crate) fn push(&self, record: Record) {
        let Some(shared) = &self.0 else { return };
        if shared.queue.try_send(record).is_err() {
            shared.counts.dropped_full.fetch_add(1, Relaxed);
        }
    }

    /// Returns the counts.
    pub fn stats(&self) -> Stats {
        let Some(shared) = &self.0 else {
            return Stats::default();
        };
        let waiting = shared.queue.max_capacity() - shared.queue.capacity();
        Stats {
            queued: waiting as u64 + shared.counts.in_batch.load(Relaxed),
            written: shared.counts.written.load(Relaxed),
            dropped_full: shared.counts.dropped_full.load(Relaxed),
            dropped_unwritten: shared.counts.dropped_unwritten.load(Relaxed),
        }
    }

    /// Writes the queued records, for up to `timeout`. Records that are pushed from now on are dropped.
    pub async fn stop(&self, timeout: Duration) {
        let Some(shared) = &self.0 else { return };
        shared.maintenance.abort();
        shared.stop.notify_one();
        let writer = shared.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut writer) = writer else { return };
        if tokio::time::timeout(timeout, &mut writer).await.is_err() {
            writer.abort();
            let lost = self.stats().queued;
            tracing::warn!(
                lost,
                "failed to write the last entries of the request log in time; they are lost"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use partner_api_store::pool;
    use uuid::Uuid;

    use super::*;

    fn record() -> Record {
        Record {
            request_id: Uuid::now_v7(),
            arrived: Instant::now(),
            took: Duration::from_millis(1),
            method: "GET",
            route: "/*",
            operation: None,
            status: 404,
            code: None,
            reason: Some(Reason::NoSuchPath),
            key_id: None,
            partner: None,
            address: [192, 0, 2, 1].into(),
            agent: None,
            received_bytes: 0,
            sent_bytes: None,
        }
    }

    /// SVC-5
    #[tokio::test]
    async fn the_queue_is_bounded_and_records_that_do_not_fit_are_counted() {
        // Nothing listens on this port.
        let unreachable = pool::parse_url("postgresql://nobody@127.0.0.1:1/none").unwrap();
        let settings = pool_settings(&PoolSettings::default());
        let log = RequestLog::start(pool::pool(unreachable, &settings).unwrap(), 90);
        // There is no await point at which the writer could run.
        for _ in 0..QUEUE + 17 {
            log.push(record());
        }
        let full = Stats {
            queued: QUEUE as u64,
            dropped_full: 17,
            ..Stats::default()
        };
        assert_eq!(log.stats(), full);
        // The writer stops waiting for the database and counts the queued records as dropped.
        log.stop(Duration::from_secs(30)).await;
        let Stats {
            queued,
            written,
            dropped_full,
            dropped_unwritten,
        } = log.stats();
        assert_eq!((queued, written, dropped_full), (0, 0, 17));
        assert_eq!(dropped_unwritten, QUEUE as u64);
        log.push(record());
        assert_eq!(log.stats().dropped_full, 18);
        assert_eq!(RequestLog::off().stats(), Stats::default());
    }
}
