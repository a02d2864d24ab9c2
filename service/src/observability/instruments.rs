//! Counters and histograms of requests.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use partner_api_gateway::Record;

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

/// The instruments; cheap to clone.
#[derive(Clone, Debug)]
pub struct Instruments {
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
