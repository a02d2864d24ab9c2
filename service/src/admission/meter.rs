//! Metrics of admission, and its health for the readiness check.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// The time after the last failed batch from which a write of the replica itself ends the failure, too. It is longer than the
/// interval of a proxy's health checks.
const FAILURE_HOLD: Duration = Duration::from_secs(10);

/// The outcome of a batch, the better ones last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    /// The database recorded no request, or it is unknown whether it did.
    Failed,
    /// The database's clock is too far behind.
    ClockBehind,
    /// The database recorded at least a part.
    Succeeded,
}

impl Outcome {
    const ALL: [Outcome; 3] = [Outcome::Succeeded, Outcome::ClockBehind, Outcome::Failed];

    fn label(self) -> Labels {
        Labels {
            outcome: match self {
                Outcome::Failed => "failed",
                Outcome::ClockBehind => "clock_behind",
                Outcome::Succeeded => "succeeded",
            },
        }
    }
}

/// The labels of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    outcome: &'static str,
}

/// The instruments of batches, and the health of admission; cheap to clone.
#[derive(Clone, Debug)]
pub struct Meter {
    requests: Histogram,
    took: Histogram,
    outcomes: Family<Labels, Counter>,
    health: AdmissionHealth,
}

impl Default for Meter {
    fn default() -> Self {
        Meter {
            requests: Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0]),
            took: Histogram::new([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0]),
            outcomes: Family::default(),
            health: AdmissionHealth::default(),
        }
    }
}

impl Meter {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "admission_batch_requests",
            "Requests admitted by one statement",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "admission_batch_duration",
            "Time to admit a batch, including its second attempt",
            Unit::Seconds,
            self.took.clone(),
        );
        // Created with the value 0, because a counter that first appears with the value 1 shows no increase.
        for outcome in Outcome::ALL {
            drop(self.outcomes.get_or_create(&outcome.label()));
        }
        registry.register(
            "admission_batches",
            "Batches of requests for admission, by outcome; a batch succeeds if the database records any part of it",
            self.outcomes.clone(),
        );
    }

    /// Returns the health of admission.
    pub fn health(&self) -> &AdmissionHealth {
        &self.health
    }

    /// Records a batch.
    pub(super) fn record_batch(&self, requests: usize, took: Duration, outcome: Outcome) {
        self.requests.observe(requests as f64);
        self.took.observe(took.as_secs_f64());
        self.outcomes.get_or_create(&outcome.label()).inc();
        *self.health.failed_at() = (outcome != Outcome::Succeeded).then(Instant::now);
    }
}

/// Whether admission works, judged by the last batch. Cheap to clone.
///
/// A replica that is not ready gets no requests, and therefore has no batch that could succeed. So a heartbeat, which uses the same
/// connections, also ends a failure, but not before `FAILURE_HOLD` has passed.
#[derive(Clone, Debug, Default)]
pub struct AdmissionHealth(Arc<Mutex<Option<Instant>>>);

impl AdmissionHealth {
    /// Returns the time since the last batch failed, or `None` if the database has recorded anything since.
    pub fn failing_for(&self) -> Option<Duration> {
        self.failed_at().map(|at| at.elapsed())
    }

    /// Records that the database accepted a write other than a batch.
    pub fn record_write(&self) {
        self.record_write_at(Instant::now());
    }

    fn record_write_at(&self, now: Instant) {
        let mut failed_at = self.failed_at();
        if failed_at.is_some_and(|at| now.saturating_duration_since(at) >= FAILURE_HOLD) {
            *failed_at = None;
        }
    }

    fn failed_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_ends_with_the_next_batch_or_with_another_write_after_a_while() {
        let meter = Meter::default();
        let health = meter.health();
        assert_eq!(health.failing_for(), None);
        meter.record_batch(3, Duration::ZERO, Outcome::Failed);
        assert!(health.failing_for().is_some());
        meter.record_batch(3, Duration::ZERO, Outcome::Succeeded);
        assert_eq!(health.failing_for(), None);

        meter.record_batch(3, Duration::ZERO, Outcome::ClockBehind);
        health.record_write();
        assert!(health.failing_for().is_some());
        health.record_write_at(Instant::now() + FAILURE_HOLD);
        assert_eq!(health.failing_for(), None);
        *health.failed_at() = Instant::now().checked_sub(FAILURE_HOLD);
        assert!(health.failing_for().is_some());
        health.record_write();
        assert_eq!(health.failing_for(), None);
    }
}
