//! Counters and histograms of requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use partner_api_gateway::Record;
use uuid::Uuid;

/// The label of a request without an operation, or a response without an error code.
const NONE: &str = "none";

/// The labels of a response.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResponseLabels {
    operation: &'static str,
    status: u16,
    code: &'static str,
}

/// The labels of a duration. The class separates errors, which are fast and would hide slow successes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabels {
    operation: &'static str,
    class: &'static str,
}

/// The period in which requests that were not authenticated are counted. The number of the last two periods is reported.
const PERIOD: Duration = Duration::from_secs(300);

/// The number of 401 responses to each partner. Labels must not name partners (OPS-6), so only the largest number is reported; the
/// request log has the partner.
#[derive(Debug)]
struct Unauthenticated {
    began: Instant,
    current: HashMap<Uuid, u64>,
    previous: HashMap<Uuid, u64>,
}

impl Unauthenticated {
    fn new(now: Instant) -> Self {
        Self {
            began: now,
            current: HashMap::new(),
            previous: HashMap::new(),
        }
    }

    /// Begins the next period if the current one is over.
    fn advance(&mut self, now: Instant) {
        match now.saturating_duration_since(self.began) {
            passed if passed >= 2 * PERIOD => *self = Self::new(now),
            passed if passed >= PERIOD => {
                self.previous = std::mem::take(&mut self.current);
                self.began = now;
            }
            _ => {}
        }
    }

    fn count(&mut self, partner: Uuid, now: Instant) {
        self.advance(now);
        *self.current.entry(partner).or_default() += 1;
    }

    fn largest(&mut self, now: Instant) -> u64 {
        self.advance(now);
        let partners = self.current.keys().chain(self.previous.keys());
        let of = |counts: &HashMap<Uuid, u64>, partner| counts.get(partner).copied().unwrap_or(0);
        partners
            .map(|partner| of(&self.current, partner) + of(&self.previous, partner))
            .max()
            .unwrap_or(0)
    }
}

/// The instruments; cheap to clone.
#[derive(Clone, Debug)]
pub struct Instruments {
    unauthenticated: Arc<Mutex<Unauthenticated>>,
    requests: Family<ResponseLabels, Counter>,
    durations: Family<DurationLabels, Histogram>,
    connection_wait: Histogram,
    connection_failures: Counter,
}

impl Default for Instruments {
    fn default() -> Self {
        let duration = || {
            Histogram::new([
                0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0,
            ])
        };
        Instruments {
            unauthenticated: Arc::new(Mutex::new(Unauthenticated::new(Instant::now()))),
            requests: Family::default(),
            durations: Family::new_with_constructor(duration),
            connection_wait: Histogram::new([0.000_1, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5]),
            connection_failures: Counter::default(),
        }
    }
}

impl Instruments {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "requests",
            "Completed requests, by operation, status and error code (`none` if there is none)",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "request_duration",
            "Time from a request's head to the start of its response, by operation and status class",
            Unit::Seconds,
            self.durations.clone(),
        );
        registry.register_with_unit(
            "pool_wait",
            "Time that requests waited for a database connection, including failures",
            Unit::Seconds,
            self.connection_wait.clone(),
        );
        registry.register(
            "pool_wait_failures",
            "Requests that timed out waiting for a database connection and got a 503",
            self.connection_failures.clone(),
        );
    }

    /// Records a completed request.
    pub fn record_response(&self, record: &Record) {
        let operation = record.operation.unwrap_or(NONE);
        let labels = ResponseLabels {
            operation,
            status: record.status,
            code: record.code.unwrap_or(NONE),
        };
        self.requests.get_or_create(&labels).inc();
        let labels = DurationLabels {
            operation,
            class: class(record.status),
        };
        self.durations.get_or_create(&labels).observe(record.took.as_secs_f64());
        if let (401, Some(partner)) = (record.status, &record.partner) {
            self.unauthenticated().count(partner.id, Instant::now());
        }
    }

    /// Returns the largest number of 401 responses to one partner in the last five to ten minutes.
    pub fn unauthenticated_of_one_partner(&self) -> u64 {
        self.unauthenticated().largest(Instant::now())
    }

    fn unauthenticated(&self) -> std::sync::MutexGuard<'_, Unauthenticated> {
        self.unauthenticated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a wait for a database connection.
    pub fn waited_for_connection(&self, took: Duration, succeeded: bool) {
        self.connection_wait.observe(took.as_secs_f64());
        if !succeeded {
            self.connection_failures.inc();
        }
    }
}

fn class(status: u16) -> &'static str {
    match status {
        ..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        500.. => "5xx",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unauthenticated_requests_are_counted_for_each_partner_and_forgotten_after_ten_minutes() {
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let mut counts = Unauthenticated::new(began);
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_eq!(counts.largest(began), 0);
        for _ in 0..3 {
            counts.count(one, began);
            counts.count(other, began);
        }
        counts.count(one, after(299));
        assert_eq!(counts.largest(after(299)), 4);
        counts.count(other, after(301));
        counts.count(other, after(302));
        assert_eq!(counts.largest(after(302)), 5);
        assert_eq!(counts.largest(after(602)), 2);
        assert_eq!(counts.largest(after(1300)), 0);
    }
}
