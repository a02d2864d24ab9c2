//! Metrics that are read from memory at each scrape.

use std::fmt;
use std::sync::Arc;

use bounded_listener::Watch;
use bounded_listener::tls::Tls;
use deadpool_postgres::Pool;
use partner_api_signing::Environment;
use partner_api_store::directory::Directory;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::instruments::Instruments;
use super::page::Page;
use super::ready::Readiness;
use super::sample::Latest;
use crate::admission::Meter;
use crate::logging;
use crate::recorder::InFlight;
use crate::request_log::RequestLog;

/// The parts of the service that metrics are read from.
pub struct Watched {
    /// The environment of the deployment.
    pub environment: Environment,
    /// The connection pools, by purpose.
    pub pools: Vec<(&'static str, Pool)>,
    /// The instruments of requests.
    pub instruments: Instruments,
    /// Reads the amounts that are in memory.
    pub in_memory: Box<dyn Fn() -> InMemory + Send + Sync>,
    /// The cache of keys and grants.
    pub directory: Arc<Directory>,
    /// The meter of admission.
    pub meter: Meter,
    /// The request log.
    pub request_log: RequestLog,
    /// The connections of partners.
    pub connections: Watch,
    /// The certificate, if the service uses TLS.
    pub tls: Option<Tls>,
}

/// The amounts that the service has in memory.
#[derive(Clone, Copy, Debug)]
pub struct InMemory {
    /// Requests that wait for admission.
    pub admission_waiting: usize,
    /// Bytes of bodies whose signature was not verified yet.
    pub unverified_bytes: usize,
    /// Measurements that are being recorded or applied.
    pub measurements: InFlight,
}

/// Everything that a scrape reads.
pub(super) struct Gauges {
    pub watched: Watched,
    pub readiness: Arc<Readiness>,
    pub latest: Arc<Latest>,
}

impl fmt::Debug for Gauges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gauges").finish_non_exhaustive()
    }
}

impl Collector for Gauges {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let page = &mut Page(encoder);
        self.ready(page)?;
        self.pools(page)?;
        self.queues(page)?;
        self.logs(page)?;
        self.connections(page)?;
        self.certificate(page)?;
        self.sampled(page)
    }
}

impl Gauges {
    fn ready(&self, page: &mut Page<'_>) -> fmt::Result {
        let checks = self.readiness.checks();
        page.gauge(
            "ready",
            "Whether /ready returns 200",
            checks.iter().all(|check| check.passes),
        )?;
        page.gauges(
            "ready_check",
            "Whether a check of /ready passes",
            "check",
            checks.iter().map(|check| (check.name, check.passes)),
        )?;
        let directory = &self.watched.directory;
        page.gauge(
            "directory_age_seconds",
            "Seconds since the keys and grants in memory were last compared with the database",
            directory.age(),
        )?;
        page.gauge("directory_keys", "Active keys", directory.key_count())?;
        page.gauge(
            "unauthenticated_of_one_partner",
            "The largest number of 401 responses to one partner in the last five to ten minutes",
            self.watched.instruments.unauthenticated_of_one_partner(),
        )
    }

    fn pools(&self, page: &mut Page<'_>) -> fmt::Result {
        let pools: Vec<_> = self
            .watched
            .pools
            .iter()
            .map(|(name, pool)| (*name, pool.status()))
            .collect();
        let mut gauges = |name: &str, help: &str, value: fn(&deadpool_postgres::Status) -> usize| {
            let rows = pools.iter().map(|(name, status)| (*name, value(status)));
            page.gauges(name, help, "pool", rows)
        };
        gauges(
            "pool_connections_max",
            "Maximum number of database connections",
            |status| status.max_size,
        )?;
        gauges("pool_connections", "Open database connections", |status| status.size)?;
        gauges("pool_connections_idle", "Idle database connections", |status| {
            status.available
        })?;
        gauges("pool_waiting", "Tasks waiting for a database connection", |status| {
            status.waiting
        })
    }

    fn queues(&self, page: &mut Page<'_>) -> fmt::Result {
        let in_memory = (self.watched.in_memory)();
        page.gauge(
            "admission_waiting",
            "Requests waiting to be admitted, or to be recorded after their response",
            in_memory.admission_waiting,
        )?;
        page.gauge(
            "unverified_body_bytes",
            "Bytes of bodies in memory whose signature has not been verified yet",
            in_memory.unverified_bytes,
        )?;
        let measurements = in_memory.measurements;
        page.gauge(
            "recorder_queued",
            "Measurement packages waiting for a batch",
            measurements.queued,
        )?;
        page.gauge(
            "recorder_reports",
            "Open reports to which measurement packages are being applied",
            measurements.reports,
        )?;
        page.gauge(
            "recorder_bytes",
            "Bytes of measurement packages that are not finished yet",
            measurements.bytes,
        )
    }

    fn logs(&self, page: &mut Page<'_>) -> fmt::Result {
        let log = self.watched.request_log.stats();
        page.gauge(
            "request_log_queued",
            "Request log entries waiting to be written",
            log.queued,
        )?;
        page.counter("request_log_written", "Request log entries written", log.written)?;
        page.counters(
            "request_log_dropped",
            "Request log entries dropped, by reason",
            "reason",
            [("queue_full", log.dropped_full), ("not_written", log.dropped_unwritten)],
        )?;
        page.counter(
            "log_dropped_lines",
            "Lines of the process's log dropped because its reader was too slow",
            logging::dropped_lines(),
        )
    }

    fn connections(&self, page: &mut Page<'_>) -> fmt::Result {
        let metrics = self.watched.connections.metrics();
        page.gauge("connections", "Open connections from partners", metrics.connections)?;
        page.gauge(
            "detached_requests",
            "Running requests whose clients have disconnected",
            metrics.detached,
        )?;
        page.gauge(
            "waiting_requests",
            "Requests that wait because too many of all addresses are running",
            metrics.waiting,
        )?;
        page.counter("connections_accepted", "Accepted connections", metrics.accepted)?;
        page.counters(
            "connections_cut",
            "Connections closed by the server other than after a response, by reason",
            "reason",
            [
                ("rejected", metrics.rejected),
                ("evicted", metrics.evicted),
                ("no_request", metrics.no_request),
                ("handshake_failed", metrics.handshake_failed),
                ("slow_head", metrics.slow_head),
                ("idle", metrics.idle),
                ("stalled", metrics.stalled),
                ("unread", metrics.unread),
            ],
        )?;
        page.counter(
            "accept_failures",
            "Connections that the operating system failed to accept",
            metrics.accept_failed,
        )?;
        page.counter(
            "abandoned_requests",
            "Requests dropped unfinished because their clients had disconnected and too many such requests were running",
            metrics.abandoned,
        )?;
        page.counter(
            "late_requests",
            "Requests that waited for one second because too many of all addresses were running",
            metrics.late,
        )
    }

    fn certificate(&self, page: &mut Page<'_>) -> fmt::Result {
        let Some(tls) = &self.watched.tls else {
            return Ok(());
        };
        page.gauge(
            "tls_certificate_expiry_timestamp_seconds",
            "Expiry time of the current certificate, in Unix time",
            tls.validity().ends.timestamp(),
        )?;
        page.gauge(
            "tls_certificate_rejected",
            "Whether the current certificate files cannot be used, so that the previous certificate stays active",
            tls.rejection().is_some(),
        )
    }

    fn sampled(&self, page: &mut Page<'_>) -> fmt::Result {
        page.gauge(
            "sample_age_seconds",
            "Age of the last sample of the database's metrics, or time since the start if there is none",
            self.latest.age(),
        )?;
        let Some(sample) = self.latest.get() else {
            return Ok(());
        };
        page.gauge(
            "pending_measurements",
            "Pending measurement packages; 100000 means that many or more",
            sample.pending,
        )?;
        page.gauge(
            "pending_measurements_oldest_seconds",
            "Age of the oldest sampled pending measurement; 0 if there is none",
            sample.pending_oldest,
        )?;
        page.gauge(
            "nonce_rows",
            "Rows of used nonces, estimated from the database's statistics",
            sample.nonce_rows,
        )?;
        page.gauges(
            "partitions_ahead",
            "Partitions created in advance; -1 means that even the current one is missing",
            "table",
            sample.partitions_ahead.iter().copied(),
        )?;
        page.gauges(
            "partitions_expired",
            "Partitions past their retention that were not dropped yet, because a transaction uses them",
            "table",
            sample.partitions_expired.iter().copied(),
        )?;
        page.gauge(
            "database_clock_ahead_seconds",
            "Seconds by which the database's clock is ahead of this machine's",
            sample.database_clock_ahead,
        )?;
        page.gauge(
            "partners_silent",
            "Enabled partners with an active key that sent requests in the last two weeks, but none in the last two days",
            sample.partners_silent,
        )?;
        page.gauge(
            "backup_verified_age_seconds",
            "Time since `partner-api backup verify` last succeeded; infinity if it never did",
            sample.backup_verified_age,
        )?;
        page.gauge(
            "renderings_due",
            "Reports whose PDF is due for rendering; 10000 means that many or more",
            sample.renderings_due,
        )?;
        page.gauge(
            "renderings_oldest_due_seconds",
            "Time since the oldest of them became due; 0 if there is none",
            sample.renderings_oldest,
        )?;
        page.gauge("replicas", "Replicas with a recent heartbeat", sample.replicas)
    }
}
