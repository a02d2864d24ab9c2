//! What is read from memory at each scrape.

use std::fmt;
use std::sync::Arc;

use deadpool_postgres::Pool;
use partner_api_signing::Environment;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::page::Page;
use super::ready::Readiness;
use super::sample::Latest;
use crate::admission::Meter;
use crate::context::Context;
use crate::directory::Directory;
use crate::listener::Watch;
use crate::logging;
use crate::request_log::RequestLog;
use crate::tls::Tls;

/// What of a service is looked at.
pub struct Watched {
    /// The deployment's environment.
    pub environment: Environment,
    /// Its connections to the database, by what they are for.
    pub pools: Vec<(&'static str, Pool)>,
    /// What its requests share.
    pub context: Context,
    /// Its keys.
    pub directory: Arc<Directory>,
    /// How its admission fares.
    pub meter: Meter,
    /// What it keeps of requests.
    pub request_log: RequestLog,
    /// Its partners' connections.
    pub connections: Watch,
    /// Its certificate, where TLS is spoken.
    pub tls: Option<Tls>,
}

/// All that a scrape reads.
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
            "Whether /ready answers 200",
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
            "Since the keys and grants in memory were last known to agree with the database",
            directory.age(),
        )?;
        page.gauge("directory_keys", "Keys in force", directory.keys())
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
            "The most connections to the database",
            |status| status.max_size,
        )?;
        gauges("pool_connections", "Open connections to the database", |status| {
            status.size
        })?;
        gauges(
            "pool_connections_idle",
            "Open connections that nobody uses now",
            |status| status.available,
        )?;
        gauges("pool_waiting", "Tasks that wait for a connection now", |status| {
            status.waiting
        })
    }

    fn queues(&self, page: &mut Page<'_>) -> fmt::Result {
        let held = self.watched.context.front_door.held();
        page.gauge(
            "admission_waiting",
            "Requests that wait to be admitted, or to be recorded behind their answers",
            held.admission_waiting,
        )?;
        page.gauge(
            "unverified_body_bytes",
            "Bytes of bodies in memory whose signature was not verified yet",
            held.unverified_bytes,
        )?;
        let measurements = self.watched.context.measurements_under_way();
        page.gauge(
            "recorder_queued",
            "Measurement packages that wait for a batch",
            measurements.queued,
        )?;
        page.gauge(
            "recorder_reports",
            "Open reports that measurement packages are being applied to",
            measurements.reports,
        )?;
        page.gauge(
            "recorder_bytes",
            "Bytes of measurement packages that are not answered yet",
            measurements.bytes,
        )
    }

    fn logs(&self, page: &mut Page<'_>) -> fmt::Result {
        let log = self.watched.request_log.stats();
        page.gauge(
            "request_log_queued",
            "Entries of the request log that wait to be written",
            log.queued,
        )?;
        page.counter(
            "request_log_written",
            "Entries of the request log that were written",
            log.written,
        )?;
        page.counters(
            "request_log_dropped",
            "Entries of the request log that were dropped, by why",
            "why",
            [("queue_full", log.dropped_full), ("not_written", log.dropped_unwritten)],
        )?;
        page.counter(
            "log_dropped_lines",
            "Lines of the process's log that were dropped, for nobody read it for too long",
            logging::dropped_lines(),
        )
    }

    fn connections(&self, page: &mut Page<'_>) -> fmt::Result {
        let tally = self.watched.connections.tally();
        page.gauge("connections", "Open connections of partners", tally.connections)?;
        page.gauge(
            "detached_requests",
            "Requests that are being finished although their clients have gone",
            tally.detached,
        )?;
        page.counter("connections_accepted", "Connections taken in", tally.accepted)?;
        page.counters(
            "connections_cut",
            "Connections closed by this side other than after an answer, by why",
            "why",
            [
                ("refused", tally.refused),
                ("gave_way", tally.gave_way),
                ("no_request", tally.no_request),
                ("handshake_failed", tally.handshake_failed),
                ("slow_head", tally.slow_head),
                ("idle", tally.idle),
                ("stalled", tally.stalled),
            ],
        )?;
        page.counter(
            "accept_failures",
            "Connections that the operating system could not hand over",
            tally.accept_failed,
        )?;
        page.counter(
            "abandoned_requests",
            "Requests dropped unfinished: their clients had gone, and too many such were running",
            tally.abandoned,
        )
    }

    fn certificate(&self, page: &mut Page<'_>) -> fmt::Result {
        let Some(tls) = &self.watched.tls else {
            return Ok(());
        };
        page.gauge(
            "tls_certificate_end_timestamp_seconds",
            "When the certificate in force ends, in Unix time",
            tls.validity().ends.timestamp(),
        )?;
        page.gauge(
            "tls_certificate_refused",
            "Whether what is in the certificate's files now cannot be used, so that the one before stays in force",
            tls.complaint().is_some(),
        )
    }

    fn sampled(&self, page: &mut Page<'_>) -> fmt::Result {
        page.gauge(
            "sample_age_seconds",
            "The age of what the database was last asked for these metrics, or since the start when it never answered",
            self.latest.age(),
        )?;
        let Some(sample) = self.latest.get() else {
            return Ok(());
        };
        page.gauge(
            "pending_measurements",
            "Measurement packages that wait for an inspector; 100000 are that many or more",
            sample.pending,
        )?;
        page.gauge(
            "pending_measurements_oldest_seconds",
            "The age of the oldest of them that was looked at; none is 0",
            sample.pending_oldest,
        )?;
        page.gauge(
            "nonce_rows",
            "Rows of used nonces, as the database's statistics have it",
            sample.nonce_rows,
        )?;
        page.gauges(
            "partitions_ahead",
            "Partitions that are made ahead of the present one; -1 is none for the present",
            "table",
            sample.partitions_ahead.iter().copied(),
        )?;
        page.gauge(
            "renderings_due",
            "Reports whose PDF is to be rendered now; 10000 are that many or more",
            sample.renderings_due,
        )?;
        page.gauge(
            "renderings_oldest_due_seconds",
            "For how long the first of them has been due; none is 0",
            sample.renderings_oldest,
        )?;
        page.gauge(
            "replicas",
            "Replicas that said of late that they serve",
            sample.replicas,
        )
    }
}
