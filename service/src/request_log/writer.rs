//! The task that writes records to the database in batches.
//!
//! While the database is unavailable, a batch is retried for as long as the queue has room. A batch that the database rejects is
//! retried once and dropped. The time of a row is the database's time minus the record's age by this process's clock. A row
//! therefore always falls into an existing partition, even if the replicas' clocks differ.

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

/// The delay in which records are collected for a batch. A statement for each record would cost more than the rest of the
/// service.
const GATHER_DELAY: Duration = Duration::from_millis(100);

/// The maximum number of records in one statement. With [`GATHER_DELAY`], it limits the load that a flood of rejected requests
/// causes: 20,000 rows a second from each replica. Beyond that, the queue fills up.
const MAX_BATCH: usize = 2_000;

/// The timeout of one attempt, including the wait for its connection.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);

/// The timeout of a statement in the database. It is shorter than [`ATTEMPT_TIMEOUT`], so that an attempt that timed out cannot
/// succeed later.
pub(super) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(1);

/// The pause before a retry.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// The time for which a batch is retried while the database is unavailable. It is longer than a failover takes.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);

/// The delay before dropped records are reported while no other records arrive.
const REPORT_DELAY: Duration = Duration::from_secs(1);
/// The minimum interval between two reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The capacity of the cache of redacted user agents. A handful of user agents sends all requests.
const CACHED_AGENTS: usize = 256;

/// The statement that writes a batch, with a condition.
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
    /// Writes the missing rows of a batch, because the first attempt may have succeeded after all.
    WRITE_MISSING = write!("\nWHERE NOT EXISTS (SELECT FROM request_log l WHERE l.request_id = sent.request_id OFFSET 0)");
    /// Records how many entries were dropped, and why.
    REPORT_DROPS = "\
INSERT INTO request_log_drops (dropped_count, reason)
SELECT dropped, reason FROM unnest($1::bigint[], $2::text[]) AS counts (dropped, reason) WHERE dropped > 0";
}

/// The writer.
pub(super) struct Writer {
    pool: Pool,
    partitions: Partitioned,
    records: mpsc::Receiver<Record>,
    counts: Arc<Counts>,
    stop: Arc<Notify>,
    /// Drop counts already reported to the database: `dropped_full` and `dropped_unwritten`.
    reported: [u64; 2],
    reported_at: Option<Instant>,
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
            reported: [0; 2],
            reported_at: None,
            is_broken: false,
            agents: HashMap::new(),
        }
    }

    /// Writes until the queue is closed and empty.
    pub async fn run(mut self) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        loop {
            let has_unreported = self.unreported().iter().any(|dropped| *dropped > 0);
            tokio::select! {
                () = self.stop.notified() => self.records.close(),
                received = self.records.recv_many(&mut batch, MAX_BATCH) => if received == 0 {
                    break;
                },
                () = tokio::time::sleep(REPORT_DELAY), if has_unreported => self.report_drops().await,
            }
            if batch.is_empty() {
                continue;
            }
            self.counts.in_batch.store(batch.len() as u64, Relaxed);
            if !self.records.is_closed() {
                // Sleeps instead of receiving, because waking this task costs a request more than queuing the record.
                tokio::select! {
                    () = self.stop.notified() => self.records.close(),
                    () = tokio::time::sleep(GATHER_DELAY) => {}
                }
                while batch.len() < MAX_BATCH
                    && let Ok(record) = self.records.try_recv()
                {
                    batch.push(record);
                }
            }
            let count = batch.len() as u64;
            self.counts.in_batch.store(count, Relaxed);
            // This task must survive a panic; otherwise no record would be written again.
            let outcome = AssertUnwindSafe(self.write(&batch)).catch_unwind().await;
            let counter = match outcome {
                Ok(Ok(())) => &self.counts.written,
                Ok(Err(error)) => {
                    if !self.is_broken {
                        tracing::warn!(%error, "failed to write the request log; its entries are dropped and counted");
                    }
                    self.is_broken = true;
                    &self.counts.dropped_unwritten
                }
                Err(_) => {
                    tracing::error!("panicked while writing the request log; see the panic logged above");
                    &self.counts.dropped_unwritten
                }
            };
            self.counts.in_batch.store(0, Relaxed);
            counter.fetch_add(count, Relaxed);
            batch.clear();
            if !self.is_broken {
                self.report_drops().await;
            }
        }
        self.report_drops().await;
    }

    async fn write(&mut self, batch: &[Record]) -> Result<(), DbError> {
        let began = Instant::now();
        let agents: Vec<Option<Arc<str>>> = batch.iter().map(|record| self.redacted_agent(record)).collect();
        let columns = Columns::of(batch, &agents);
        let mut outcome = self.attempt(WRITE, &columns, began).await;
        let (mut attempts, mut is_prepared) = (1, false);
        while let Err(error) = outcome {
            if is_without_partition(&error) && !is_prepared {
                // This waits for another replica that may be creating the partition.
                self.partitions.prepare(&self.pool).await?;
                is_prepared = true;
            } else {
                let has_room = self.records.capacity() > self.records.max_capacity() / 2 && !self.records.is_closed();
                let may_succeed = error.is_unavailable() && has_room && began.elapsed() < RETRY_TIMEOUT;
                if attempts > 1 && !may_succeed {
                    return Err(error);
                }
                let is_stopping = self.records.is_closed();
                tokio::select! {
                    () = std::future::ready(()), if is_stopping => {}
                    () = self.stop.notified() => self.records.close(),
                    () = tokio::time::sleep(RETRY_PAUSE) => {}
                }
            }
            attempts += 1;
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
        built: Instant,
    ) -> Result<(), DbError> {
        let client = Connection::take(&self.pool, ATTEMPT_TIMEOUT).await?;
        let later = microseconds(built.elapsed());
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

    /// Returns the user agent of a record's client in its redacted form.
    fn redacted_agent(&mut self, record: &Record) -> Option<Arc<str>> {
        let agent = record.agent.as_ref()?;
        if let Some(known) = self.agents.get(agent) {
            return Some(known.clone());
        }
        if self.agents.len() >= CACHED_AGENTS {
            self.agents.clear();
        }
        let redacted: Arc<str> = user_agent::redact(agent).into();
        self.agents.insert(agent.clone(), redacted.clone());
        Some(redacted)
    }

    /// Returns the drop counts not yet reported to the database: `dropped_full` and `dropped_unwritten`.
    fn unreported(&self) -> [i64; 2] {
        let dropped = [&self.counts.dropped_full, &self.counts.dropped_unwritten].map(|count| count.load(Relaxed));
        [0, 1].map(|which| i64::try_from(dropped[which] - self.reported[which]).unwrap_or(i64::MAX))
    }

    /// Reports dropped records to the database, if there are any and the last report is old enough.
    async fn report_drops(&mut self) {
        let dropped = self.unreported();
        let [full, unwritten] = dropped;
        let is_too_soon =
            self.reported_at.is_some_and(|at| at.elapsed() < REPORT_INTERVAL) && !self.records.is_closed();
        if full + unwritten == 0 || is_too_soon {
            return;
        }
        let report = async {
            let client = Connection::take(&self.pool, ATTEMPT_TIMEOUT).await?;
            let reasons = ["queue_full", "not_written"];
            client
                .execute(REPORT_DROPS, &[&dropped.as_slice(), &reasons.as_slice()])
                .await
        };
        match report.await {
            Ok(_) => {
                self.reported_at = Some(Instant::now());
                self.reported[0] += full.unsigned_abs();
                self.reported[1] += unwritten.unsigned_abs();
                tracing::warn!(
                    full,
                    unwritten,
                    "entries of the request log were dropped; see request_log_drops"
                );
            }
            Err(error) => tracing::debug!(%error, "failed to report dropped entries of the request log"),
        }
    }
}

/// Returns whether a row was rejected because its day has no partition: a clock was set, or maintenance failed for days.
fn is_without_partition(error: &DbError) -> bool {
    error.rejection() == Some(&SqlState::CHECK_VIOLATION)
}

/// The columns of a batch.
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
    /// Collects the columns of a batch and its redacted user agents.
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
            columns.reason.push(record.reason.map(Reason::as_str));
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
