//! Writes what has gathered, batch after batch.
//!
//! A batch that the database cannot take just now is tried again for as long as the queue has room; one that it refuses is
//! tried once more and dropped. Rows get the database's time, less their age by this process's clock: whatever the clocks of
//! replicas say, a row is where its partition is.

use std::collections::HashMap;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use deadpool_postgres::Pool;
use futures::FutureExt;
use partner_api_domain::user_agent;
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::partitions::Partitioned;
use partner_api_store::statement;
use partner_api_store::statement::Statement;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use super::{Counts, Reason, Record};

/// How long records gather before they are written: a statement for each would cost more than all else.
const GATHER: Duration = Duration::from_millis(100);

/// The most records in one statement. With [`GATHER`] it is what a flood of refusals can have of the database at most: 20,000
/// rows a second from each replica, and beyond that the queue is full.
const LARGEST_BATCH: usize = 2_000;

/// How long one attempt may take, the wait for its connection included.
const ATTEMPT: Duration = Duration::from_secs(2);

/// How long the database works on one: sooner than [`ATTEMPT`], so that what was given up does not happen later.
pub(super) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(1);

/// The pause before an attempt is repeated.
const PAUSE: Duration = Duration::from_millis(500);

/// How long a batch is tried again while the database is out of reach: longer than a failover takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// How soon drops are told of when nothing else is to be written, and how often at most.
const TELL: Duration = Duration::from_secs(1);
const TELL_AGAIN: Duration = Duration::from_secs(10);

/// What clients call themselves, cleaned: a handful of them sends all requests.
const AGENTS: usize = 256;

/// The statement that writes, with a condition.
macro_rules! write {
    ($condition:literal) => {
        concat!(
            "\
INSERT INTO request_log (arrived_at, request_id, partner_id, duration_us, received_bytes, sent_bytes, status, address, method, route,
    operation, code, reason, key_id, user_agent)
SELECT now() - age_us * interval '1 microsecond', request_id, partner_id, duration_us, received_bytes, sent_bytes, status, address,
    method, route, operation, code, reason, key_id, user_agent
FROM unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[], $6::bigint[], $7::smallint[], $8::inet[],
    $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[])
    AS sent (age_us, request_id, partner_id, duration_us, received_bytes, sent_bytes, status, address, method, route, operation,
        code, reason, key_id, user_agent)",
            $condition
        )
    };
}

statement! {
    /// Writes a batch.
    WRITE = write!("");
    /// Writes what of a batch is not there: the first attempt may have come to its end after all.
    WRITE_MISSING = write!("\nWHERE NOT EXISTS (SELECT FROM request_log l WHERE l.request_id = sent.request_id OFFSET 0)");
    /// Tells how many rows are missing, and why.
    TELL_DROPS = "\
INSERT INTO request_log_drops (dropped_count, reason)
SELECT dropped, reason FROM unnest($1::bigint[], $2::text[]) AS told (dropped, reason) WHERE dropped > 0";
}

/// The task that writes.
pub(super) struct Writer {
    pool: Pool,
    partitions: Partitioned,
    records: mpsc::Receiver<Record>,
    counts: Arc<Counts>,
    stop: Arc<Notify>,
    /// What of the counts of drops, full and unwritten, the database has been told.
    told: [u64; 2],
    told_at: Option<Instant>,
    /// Whether the last batch was dropped.
    is_broken: bool,
    agents: HashMap<Arc<str>, Arc<str>>,
}

impl Writer {
    pub fn new(
        pool: Pool,
        partitions: Partitioned,
        records: mpsc::Receiver<Record>,
        counts: Arc<Counts>,
        stop: Arc<Notify>,
    ) -> Self {
        Writer {
            pool,
            partitions,
            records,
            counts,
            stop,
            told: [0; 2],
            told_at: None,
            is_broken: false,
            agents: HashMap::new(),
        }
    }

    /// Writes until the queue is closed and empty.
    pub async fn run(mut self) {
        let mut batch = Vec::with_capacity(LARGEST_BATCH);
        loop {
            let untold = self.untold().iter().any(|dropped| *dropped > 0);
            tokio::select! {
                () = self.stop.notified() => self.records.close(),
                taken = self.records.recv_many(&mut batch, LARGEST_BATCH) => if taken == 0 {
                    break;
                },
                () = tokio::time::sleep(TELL), if untold => self.tell().await,
            }
            if batch.is_empty() {
                continue;
            }
            self.counts.at_hand.store(batch.len() as u64, Relaxed);
            if !self.records.is_closed() {
                // Nobody waits at the queue meanwhile: a record that wakes this task costs its request more than the record.
                tokio::select! {
                    () = self.stop.notified() => self.records.close(),
                    () = tokio::time::sleep(GATHER) => {}
                }
                while batch.len() < LARGEST_BATCH
                    && let Ok(record) = self.records.try_recv()
                {
                    batch.push(record);
                }
            }
            let count = batch.len() as u64;
            self.counts.at_hand.store(count, Relaxed);
            // Without this task nothing would ever be written again.
            let outcome = AssertUnwindSafe(self.write(&batch)).catch_unwind().await;
            let counter = match outcome {
                Ok(Ok(())) => &self.counts.written,
                Ok(Err(error)) => {
                    if !self.is_broken {
                        tracing::warn!(%error, "the request log cannot be written: its entries are dropped and counted");
                    }
                    self.is_broken = true;
                    &self.counts.unwritten
                }
                Err(_) => {
                    tracing::error!("writing the request log panicked; the panic is in the log before this line");
                    &self.counts.unwritten
                }
            };
            self.counts.at_hand.store(0, Relaxed);
            counter.fetch_add(count, Relaxed);
            batch.clear();
            if !self.is_broken {
                self.tell().await;
            }
        }
        self.tell().await;
    }

    async fn write(&mut self, batch: &[Record]) -> Result<(), DbError> {
        let began = Instant::now();
        let agents: Vec<Option<Arc<str>>> = batch.iter().map(|record| self.cleaned(record)).collect();
        let columns = Columns::of(batch, &agents);
        let mut outcome = self.attempt(WRITE, &columns, began).await;
        let (mut tries, mut is_prepared) = (1, false);
        while let Err(error) = outcome {
            if is_without_partition(&error) && !is_prepared {
                // Another replica may be making it: this waits for it.
                self.partitions.prepare(&self.pool).await?;
                is_prepared = true;
            } else {
                let has_room = self.records.capacity() > self.records.max_capacity() / 2 && !self.records.is_closed();
                let may_help = error.is_unavailable() && has_room && began.elapsed() < PATIENCE;
                if tries > 1 && !may_help {
                    return Err(error);
                }
                let is_stopping = self.records.is_closed();
                tokio::select! {
                    () = std::future::ready(()), if is_stopping => {}
                    () = self.stop.notified() => self.records.close(),
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
            tries += 1;
            outcome = self.attempt(WRITE_MISSING, &columns, began).await;
        }
        if self.is_broken {
            tracing::info!("the request log can be written again");
        }
        self.is_broken = false;
        Ok(())
    }

    async fn attempt(
        &self,
        statement: &'static Statement,
        columns: &Columns<'_>,
        made: Instant,
    ) -> Result<(), DbError> {
        let client = Connection::take(&self.pool, ATTEMPT).await?;
        let later = microseconds(made.elapsed());
        let ages: Vec<i64> = columns.age_us.iter().map(|age| age.saturating_add(later)).collect();
        let Columns {
            age_us: _,
            request_id,
            partner_id,
            took_us,
            received_bytes,
            sent_bytes,
            status,
            address,
            method,
            route,
            operation,
            code,
            reason,
            key_id,
            user_agent,
        } = columns;
        client
            .execute(
                statement,
                &[
                    &ages,
                    request_id,
                    partner_id,
                    took_us,
                    received_bytes,
                    sent_bytes,
                    status,
                    address,
                    method,
                    route,
                    operation,
                    code,
                    reason,
                    key_id,
                    user_agent,
                ],
            )
            .await?;
        Ok(())
    }

    /// What a record's client calls itself, as it is kept.
    fn cleaned(&mut self, record: &Record) -> Option<Arc<str>> {
        let agent = record.agent.as_ref()?;
        if let Some(known) = self.agents.get(agent) {
            return Some(known.clone());
        }
        if self.agents.len() >= AGENTS {
            self.agents.clear();
        }
        let kept: Arc<str> = user_agent::kept(agent).into();
        self.agents.insert(agent.clone(), kept.clone());
        Some(kept)
    }

    /// Drops that the database has not been told of: full, and unwritten.
    fn untold(&self) -> [i64; 2] {
        let dropped = [&self.counts.full, &self.counts.unwritten].map(|count| count.load(Relaxed));
        [0, 1].map(|which| i64::try_from(dropped[which] - self.told[which]).unwrap_or(i64::MAX))
    }

    /// Tells the database of drops, if it can be told.
    async fn tell(&mut self) {
        let dropped = self.untold();
        let [full, unwritten] = dropped;
        let is_soon = self.told_at.is_some_and(|at| at.elapsed() < TELL_AGAIN) && !self.records.is_closed();
        if full + unwritten == 0 || is_soon {
            return;
        }
        let telling = async {
            let client = Connection::take(&self.pool, ATTEMPT).await?;
            let why = ["queue_full", "not_written"];
            client
                .execute(TELL_DROPS, &[&dropped.as_slice(), &why.as_slice()])
                .await
        };
        match telling.await {
            Ok(_) => {
                self.told_at = Some(Instant::now());
                self.told[0] += full.unsigned_abs();
                self.told[1] += unwritten.unsigned_abs();
                tracing::warn!(
                    full,
                    unwritten,
                    "entries of the request log were dropped; see request_log_drops"
                );
            }
            Err(error) => tracing::debug!(%error, "drops of the request log could not be told yet"),
        }
    }
}

/// Whether a row was refused because its day has no partition: a clock stepped, or nobody looked after them for days.
fn is_without_partition(error: &DbError) -> bool {
    error.refusal() == Some(&SqlState::CHECK_VIOLATION)
}

/// A batch as the columns of its rows.
struct Columns<'r> {
    age_us: Vec<i64>,
    request_id: Vec<Uuid>,
    partner_id: Vec<Option<Uuid>>,
    took_us: Vec<i64>,
    received_bytes: Vec<i64>,
    sent_bytes: Vec<Option<i64>>,
    status: Vec<i16>,
    address: Vec<IpAddr>,
    method: Vec<&'static str>,
    route: Vec<&'static str>,
    operation: Vec<Option<&'static str>>,
    code: Vec<Option<&'static str>>,
    reason: Vec<Option<&'static str>>,
    key_id: Vec<Option<&'r str>>,
    user_agent: Vec<Option<&'r str>>,
}

impl<'r> Columns<'r> {
    /// Those of a batch, whose agents are cleaned already.
    fn of(batch: &'r [Record], agents: &'r [Option<Arc<str>>]) -> Self {
        let column = || Vec::with_capacity(batch.len());
        let mut columns = Columns {
            age_us: column(),
            request_id: Vec::with_capacity(batch.len()),
            partner_id: Vec::with_capacity(batch.len()),
            took_us: column(),
            received_bytes: column(),
            sent_bytes: Vec::with_capacity(batch.len()),
            status: Vec::with_capacity(batch.len()),
            address: Vec::with_capacity(batch.len()),
            method: Vec::with_capacity(batch.len()),
            route: Vec::with_capacity(batch.len()),
            operation: Vec::with_capacity(batch.len()),
            code: Vec::with_capacity(batch.len()),
            reason: Vec::with_capacity(batch.len()),
            key_id: Vec::with_capacity(batch.len()),
            user_agent: agents.iter().map(Option::as_deref).collect(),
        };
        for record in batch {
            columns.age_us.push(microseconds(record.arrived.elapsed()));
            columns.request_id.push(record.request_id);
            columns
                .partner_id
                .push(record.partner.as_ref().map(|partner| partner.id));
            columns.took_us.push(microseconds(record.took));
            columns.received_bytes.push(bytes(record.received_bytes));
            columns.sent_bytes.push(record.sent_bytes.map(bytes));
            columns.status.push(i16::try_from(record.status).unwrap_or(i16::MAX));
            columns.address.push(record.address);
            columns.method.push(record.method);
            columns.route.push(record.route);
            columns.operation.push(record.operation);
            columns.code.push(record.code);
            columns.reason.push(record.reason.map(Reason::word));
            columns.key_id.push(record.key_id.as_deref());
        }
        columns
    }
}

fn microseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn bytes(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
