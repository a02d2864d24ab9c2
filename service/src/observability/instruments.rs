//! What is counted and timed while requests are answered.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::request_log::Record;

/// What stands where a request has no operation, or an answer no code.
const NONE: &str = "none";

/// An answer, by what the document declares of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    operation: &'static str,
    status: u16,
    code: &'static str,
}

/// A class of an operation's answers. Refusals are quick: with them, slow answers would not be seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Class {
    operation: &'static str,
    class: &'static str,
}

/// What is measured on the way; cheap to clone.
#[derive(Clone, Debug)]
pub struct Instruments {
    requests: Family<Answer, Counter>,
    durations: Family<Class, Histogram>,
    connection_wait: Histogram,
    connections_refused: Counter,
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
            connections_refused: Counter::default(),
        }
    }
}

impl Instruments {
    /// Makes the metrics known.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "requests",
            "Requests that were answered, by operation, status and error code; `none` where there is none",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "request_duration",
            "From a request's head to its answer's beginning, by operation and class of status",
            Unit::Seconds,
            self.durations.clone(),
        );
        registry.register_with_unit(
            "pool_wait",
            "How long requests waited for a database connection, in vain included",
            Unit::Seconds,
            self.connection_wait.clone(),
        );
        registry.register(
            "pool_wait_failures",
            "Requests that waited for a database connection in vain, and were answered 503",
            self.connections_refused.clone(),
        );
    }

    /// A request has its answer.
    pub fn answered(&self, record: &Record) {
        let operation = record.operation.unwrap_or(NONE);
        let answer = Answer {
            operation,
            status: record.status,
            code: record.code.unwrap_or(NONE),
        };
        self.requests.get_or_create(&answer).inc();
        let class = Class {
            operation,
            class: class(record.status),
        };
        self.durations.get_or_create(&class).observe(record.took.as_secs_f64());
    }

    /// A request has waited for a connection, and has one or not.
    pub fn waited_for_connection(&self, took: Duration, has_one: bool) {
        self.connection_wait.observe(took.as_secs_f64());
        if !has_one {
            self.connections_refused.inc();
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
