//! Whether this replica should get requests (OPS-7). It is decided from memory: a question that needed the database would
//! hang where the database does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::{Value, json};

use super::sample::Latest;
use crate::admission::Lately;
use crate::directory::{Directory, STALE};

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

/// What it is decided by.
pub(super) struct Readiness {
    directory: Arc<Directory>,
    lately: Lately,
    latest: Arc<Latest>,
    is_stopping: AtomicBool,
}

impl Readiness {
    pub fn new(directory: Arc<Directory>, lately: Lately, latest: Arc<Latest>) -> Self {
        Readiness {
            directory,
            lately,
            latest,
            is_stopping: AtomicBool::new(false),
        }
    }

    /// A stop has begun.
    pub fn stop(&self) {
        self.is_stopping.store(true, Relaxed);
    }

    /// All conditions; the replica is ready if all of them pass.
    pub fn checks(&self) -> [Check; 4] {
        let is_stopping = self.is_stopping.load(Relaxed);
        let age = self.directory.age();
        let failing = self.lately.failing();
        let nonces = self.latest.nonces_left();
        [
            Check::of(
                "serving",
                !is_stopping,
                if is_stopping {
                    "a stop has begun"
                } else {
                    "no stop has begun"
                },
            ),
            Check::of(
                "directory",
                age <= STALE,
                format!(
                    "keys and grants were compared with the database {:.1} s ago; after {} s they are not relied on",
                    age.as_secs_f64(),
                    STALE.as_secs()
                ),
            ),
            Check::of(
                "admission",
                failing.is_none(),
                match failing {
                    None => "the last batch was taken".to_owned(),
                    Some(since) => format!(
                        "the database refused a batch, or did not answer, {:.1} s ago, and has taken none since",
                        since.as_secs_f64()
                    ),
                },
            ),
            Check::of(
                "nonces",
                !nonces.is_zero(),
                format!("the partitions of used nonces last for {} s", nonces.as_secs()),
            ),
        ]
    }

    /// Whether it is ready, and why not.
    pub fn told(&self) -> (bool, Value) {
        let checks = self.checks();
        let is_ready = checks.iter().all(|check| check.passes);
        let checks: serde_json::Map<_, _> = checks
            .into_iter()
            .map(|check| {
                let told = json!({ "passes": check.passes, "detail": check.detail });
                (check.name.to_owned(), told)
            })
            .collect();
        (is_ready, json!({ "ready": is_ready, "checks": checks }))
    }
}
