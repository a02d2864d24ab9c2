//! The request log: what became of each request, for whoever runs the service (SVC-5, SVC-8).
//!
//! A request leaves its [`Record`] behind its answer, in a queue that is bounded; a task writes what has gathered there, over
//! connections of its own ([`writer`]). A log that is full, broken or out of reach costs a request nothing: what cannot be
//! kept is dropped and counted, and the count is written when the log can be written again.

mod find;
mod partitions;
mod writer;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

pub use find::{Cursor, Drops, Entry, FOLLOWS_BEHIND, Filter, drops, find, follow, list};
pub use partitions::partitions;
pub use partner_api_gateway::Reason;

use partner_api_gateway::Record;
use partner_api_store::pool::PoolSettings;
use writer::Writer;

/// Records that may wait to be written, some megabytes; more are dropped.
const QUEUE: usize = 10_000;

/// How often partitions are looked after.
const MAINTENANCE: Duration = Duration::from_secs(300);

/// What a log has done since its process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Records that wait to be written.
    pub queued: u64,
    /// Records that were written.
    pub written: u64,
    /// Records that were dropped because too many waited.
    pub dropped_full: u64,
    /// Records that were dropped because the database did not take them.
    pub dropped_unwritten: u64,
}

/// What the writer and the requests count.
#[derive(Debug, Default)]
struct Counts {
    /// Taken from the queue, and not yet written or dropped.
    at_hand: AtomicU64,
    written: AtomicU64,
    full: AtomicU64,
    unwritten: AtomicU64,
}

/// The connections that a log works with, as one pool's are `settings`: one to write, one to look after partitions.
pub fn pool_settings(settings: &PoolSettings) -> PoolSettings {
    PoolSettings {
        size: 2,
        statement_timeout: settings.statement_timeout.min(writer::STATEMENT_TIMEOUT),
        // Nothing here is evidence: a crash of the database may take the last moment's rows with it, and no request's commit
        // shares the disk with theirs.
        synchronous_commit: false,
        ..settings.clone()
    }
}

/// The log of a process; cheap to clone.
#[derive(Clone, Debug)]
pub struct RequestLog(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    queue: mpsc::Sender<Record>,
    counts: Arc<Counts>,
    stop: Arc<Notify>,
    writer: Mutex<Option<JoinHandle<()>>>,
    keeper: JoinHandle<()>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl RequestLog {
    /// A log that keeps nothing.
    pub fn off() -> Self {
        RequestLog(None)
    }

    /// Starts writing through `pool`, which should be this one's own ([`pool_settings`]), and keeping so many `days`. The
    /// writer ends with the last of these, or is [stopped](Self::stop).
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
            keeper: tokio::spawn(partitions::keep(partitions, pool, MAINTENANCE)),
        })))
    }

    /// Takes a record, or counts it as dropped. Waits for nothing.
    pub(crate) fn push(&self, record: Record) {
        let Some(shared) = &self.0 else { return };
        if shared.queue.try_send(record).is_err() {
            shared.counts.full.fetch_add(1, Relaxed);
        }
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        let Some(shared) = &self.0 else {
            return Stats::default();
        };
        let waiting = shared.queue.max_capacity() - shared.queue.capacity();
        Stats {
            queued: waiting as u64 + shared.counts.at_hand.load(Relaxed),
            written: shared.counts.written.load(Relaxed),
            dropped_full: shared.counts.full.load(Relaxed),
            dropped_unwritten: shared.counts.unwritten.load(Relaxed),
        }
    }

    /// Writes what waits, for so long at most; what is pushed from now on is dropped.
    pub async fn stop(&self, within: Duration) {
        let Some(shared) = &self.0 else { return };
        shared.keeper.abort();
        shared.stop.notify_one();
        let writer = shared.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut writer) = writer else { return };
        if tokio::time::timeout(within, &mut writer).await.is_err() {
            writer.abort();
            let lost = self.stats().queued;
            tracing::warn!(
                lost,
                "the request log could not be written in time; its last entries are lost"
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
    async fn the_queue_has_a_bound_and_what_finds_no_room_is_counted() {
        // Nobody listens there.
        let nowhere = pool::parse_url("postgresql://nobody@127.0.0.1:1/none").unwrap();
        let settings = pool_settings(&PoolSettings::default());
        let log = RequestLog::start(pool::pool(nowhere, &settings).unwrap(), 90);
        // Without a pause in which the writer could take any.
        for _ in 0..QUEUE + 17 {
            log.push(record());
        }
        let full = Stats {
            queued: QUEUE as u64,
            dropped_full: 17,
            ..Stats::default()
        };
        assert_eq!(log.stats(), full);
        // The database is given up, and with it what waits: nothing is left, and nothing forgotten.
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
