//! How admission fares: for metrics, and for whether this replica is ready.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// How long a failure is held against the database at least, where nothing but this replica's own small writes says that it
/// is over: longer than proxies take from one look to the next.
const HELD_AGAINST: Duration = Duration::from_secs(10);

const TAKEN: &str = "taken";
const FAILED: &str = "failed";

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

/// What batches are measured by.
#[derive(Clone, Debug)]
pub struct Meter {
    requests: Histogram,
    took: Histogram,
    outcomes: Family<Outcome, Counter>,
    lately: Lately,
}

impl Default for Meter {
    fn default() -> Self {
        Meter {
            requests: Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0]),
            took: Histogram::new([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0]),
            outcomes: Family::default(),
            lately: Lately::default(),
        }
    }
}

impl Meter {
    /// Makes the metrics known.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "admission_batch_requests",
            "Requests that were admitted by one statement",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "admission_batch_duration",
            "How long admitting a batch took, with its second attempt",
            Unit::Seconds,
            self.took.clone(),
        );
        // A series that begins at 1 shows no increase.
        for outcome in [TAKEN, FAILED] {
            drop(self.outcomes.get_or_create(&Outcome { outcome }));
        }
        registry.register(
            "admission_batches",
            "Batches of requests for admission: taken by the database, at least in part, or failed",
            self.outcomes.clone(),
        );
    }

    /// Whether the database admits.
    pub fn lately(&self) -> &Lately {
        &self.lately
    }

    /// Tells of a batch of so many requests; `any` of it was taken, or none.
    pub(super) fn batch(&self, requests: usize, took: Duration, any: bool) {
        self.requests.observe(requests as f64);
        self.took.observe(took.as_secs_f64());
        let outcome = if any { TAKEN } else { FAILED };
        self.outcomes.get_or_create(&Outcome { outcome }).inc();
        *self.lately.failed_at() = (!any).then(Instant::now);
    }
}

/// Whether the database admits, as far as that was tried lately.
///
/// A replica that is not ready gets no requests by which it could find out that all is well again. So its own small writes,
/// which go through the same connections, count as well, some time after the failure.
#[derive(Clone, Debug, Default)]
pub struct Lately(Arc<Mutex<Option<Instant>>>);

impl Lately {
    /// How long ago a batch failed of which nothing was taken, if the database has taken nothing since.
    pub fn failing(&self) -> Option<Duration> {
        self.failed_at().map(|at| at.elapsed())
    }

    /// The database took something else that was written.
    pub fn wrote(&self) {
        self.wrote_at(Instant::now());
    }

    fn wrote_at(&self, now: Instant) {
        let mut failed_at = self.failed_at();
        if failed_at.is_some_and(|at| now.saturating_duration_since(at) >= HELD_AGAINST) {
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
    fn a_failed_batch_is_forgotten_by_the_next_one_and_by_other_writes_only_after_a_while() {
        let meter = Meter::default();
        let lately = meter.lately();
        assert_eq!(lately.failing(), None);
        meter.batch(3, Duration::ZERO, false);
        assert!(lately.failing().is_some());
        meter.batch(3, Duration::ZERO, true);
        assert_eq!(lately.failing(), None);

        meter.batch(3, Duration::ZERO, false);
        lately.wrote();
        assert!(lately.failing().is_some());
        lately.wrote_at(Instant::now() + HELD_AGAINST);
        assert_eq!(lately.failing(), None);
    }
}
