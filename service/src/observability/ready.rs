//! Readiness of this replica (OPS-7). The checks read memory only, because a query would hang when the database does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use partner_api_store::directory::{Directory, STALE};
use serde_json::{Value, json};

use super::sample::Latest;
use crate::admission::AdmissionHealth;

/// The replica is not ready if the partitions for nonces do not suffice for this time. Startup creates partitions for more than
/// this, so a replica is ready when it starts.
const NONCES_RESERVE: Duration = Duration::from_secs(300);

/// One condition.
pub(super) struct Check {
    pub name: &'static str,
    pub passes: bool,
    detail: String,
}

impl Check {
    fn of(name: &'static str, passes: bool, detail: impl Into<String>) -> Self {
        Check {
            name,
            passes,
            detail: detail.into(),
        }
    }
}

fn nonces_check(left: Duration) -> Check {
    Check::of(
        "nonces",
        left >= NONCES_RESERVE,
        format!(
            "the partitions for nonces are sufficient for {} s; at least {} s are required",
            left.as_secs(),
            NONCES_RESERVE.as_secs()
        ),
    )
}

/// The inputs of the checks.
pub(super) struct Readiness {
    directory: Arc<Directory>,
    health: AdmissionHealth,
    latest: Arc<Latest>,
    is_stopping: AtomicBool,
}

impl Readiness {
    pub fn new(directory: Arc<Directory>, health: AdmissionHealth, latest: Arc<Latest>) -> Self {
        Readiness {
            directory,
            health,
            latest,
            is_stopping: AtomicBool::new(false),
        }
    }

    /// Marks the replica as stopping.
    pub fn stop(&self) {
        self.is_stopping.store(true, Relaxed);
    }

    /// Runs the checks; the replica is ready if all of them pass.
    pub fn checks(&self) -> [Check; 4] {
        let is_stopping = self.is_stopping.load(Relaxed);
        let age = self.directory.age();
        let failing = self.health.failing_for();
        let nonces = self.latest.nonces_left();
        [
            Check::of(
                "serving",
                !is_stopping,
                if is_stopping {
                    "shutting down"
                } else {
                    "not shutting down"
                },
            ),
            Check::of(
                "directory",
                age <= STALE,
                format!(
                    "keys and grants were last compared with the database {:.1} s ago; the limit is {} s",
                    age.as_secs_f64(),
                    STALE.as_secs()
                ),
            ),
            Check::of(
                "admission",
                failing.is_none(),
                match failing {
                    None => "the last batch succeeded".to_owned(),
                    Some(since) => format!(
                        "the database has accepted no batch since a failure {:.1} s ago",
                        since.as_secs_f64()
                    ),
                },
            ),
            nonces_check(nonces),
        ]
    }

    /// Returns whether the replica is ready, and the checks as JSON.
    pub fn report(&self) -> (bool, Value) {
        let checks = self.checks();
        let is_ready = checks.iter().all(|check| check.passes);
        let checks: serde_json::Map<_, _> = checks
            .into_iter()
            .map(|check| {
                let check_json = json!({ "passes": check.passes, "detail": check.detail });
                (check.name.to_owned(), check_json)
            })
            .collect();
        (is_ready, json!({ "ready": is_ready, "checks": checks }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::nonces::{BUCKET, MARGIN};

    /// OPS-7
    #[test]
    fn readiness_fails_before_the_partitions_for_nonces_run_out() {
        assert!(!nonces_check(NONCES_RESERVE - Duration::from_secs(1)).passes);
        assert!(nonces_check(NONCES_RESERVE).passes);
        // A start creates at least the next partition.
        assert!(nonces_check(BUCKET - MARGIN).passes);
    }
}
