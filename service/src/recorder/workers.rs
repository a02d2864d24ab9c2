//! Workers that apply packages to open reports, with transactions that take from as many [queues](super::report_queues) as are
//! ready.
//!
//! A shared transaction locks the reports that are free, applies their packages, and commits once for all of them. It never
//! waits for a lock: a report that is locked by others is retried later. Every second retry waits for the lock in its own
//! transaction, because a report with many writers might never be found free.

use std::sync::Arc;
use std::time::Duration;

use partner_api_store::measurements::{self, Lock, ReportOutcome, Target};
use tokio_postgres::error::SqlState;

use super::queue::{BUSY_BATCH, GATHER_DELAY};
use super::report_queues::{Batch, Checkout};
use super::{Outcome, RecordError, Shared, WaitingPackage, catch_panics, finish_all, packages};
use crate::plausible;

/// Workers for shared transactions. With one, each transaction has all the packages that arrived during the previous one.
pub(super) const SHARED_WORKERS: usize = 1;

/// Workers for transactions with a single report.
pub(super) const SINGLE_WORKERS: usize = 2;

/// The first and the longest backoff for a locked report. A queue in backoff uses no connection, so locked reports do not use up
/// the connections of the others.
const LOCK_BACKOFF: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(200));

/// Processes ready queues until the recorder is closed and none is ready.
pub(super) async fn run(shared: Arc<Shared>, lock: Lock) {
    while let Some(Checkout { batches, duplicates }) = shared.report_queues.next(lock).await {
        let is_busy = batches.iter().map(|batch| batch.packages.len()).sum::<usize>() >= BUSY_BATCH;
        let work = async {
            match lock {
                Lock::SkipLocked => apply_together(&shared, batches).await,
                Lock::Wait => {
                    for batch in batches {
                        apply_single(&shared, batch).await;
                    }
                }
            }
        };
        catch_panics(work).await;
        // The packages with the same external IDs are recorded or rejected now, so the next batch finds them.
        if !duplicates.is_empty() {
            shared.queue.requeue(duplicates);
        }
        if is_busy {
            tokio::time::sleep(GATHER_DELAY).await;
        }
    }
}

/// Applies the packages of several reports in one transaction. If the database rejects it, each report is retried in its own
/// transaction, so that one report cannot fail the others.
async fn apply_together(shared: &Shared, batches: Vec<Batch>) {
    let reports: Vec<(&Target, &[WaitingPackage])> =
        batches.iter().map(|batch| (&batch.target, &*batch.packages)).collect();
    match attempt(shared, Lock::SkipLocked, &reports).await {
        Ok(outcomes) => {
            for (batch, outcome) in batches.into_iter().zip(outcomes) {
                finish_batch(shared, batch, outcome);
            }
        }
        Err(error) if error.rejection().is_some() => {
            tracing::warn!(%error, reports = batches.len(), "failed to apply measurements; retrying each report separately");
            for Batch {
                queue,
                target,
                packages,
            } in batches
            {
                queue.put_back(&target, packages);
                queue.requeue(Lock::Wait);
            }
        }
        Err(error) => {
            for batch in batches {
                finish_all(batch.packages, &error);
            }
        }
    }
}

/// Applies the packages of one report. If the database rejects them, each half is retried once.
async fn apply_single(shared: &Shared, batch: Batch) {
    let Batch {
        queue,
        target,
        packages,
    } = batch;
    let mut rest = vec![packages];
    let mut is_first = true;
    while let Some(mut packages) = rest.pop() {
        let outcome = attempt(shared, Lock::Wait, &[(&target, &*packages)]).await;
        match outcome.map(|outcomes| outcomes.into_iter().next()) {
            Ok(Some(outcome)) => finish_packages(shared, &target, packages, outcome),
            Ok(None) => {}
            // One of the external IDs was recorded meanwhile; the next batch finds the earlier package. All later packages
            // follow, to keep their order.
            Err(error) if error.rejection() == Some(&SqlState::UNIQUE_VIOLATION) => {
                packages.extend(rest.drain(..).rev().flatten());
                packages.extend(queue.drain());
                shared.queue.requeue(packages);
            }
            Err(error) if error.rejection() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                packages.extend(rest.drain(..).rev().flatten());
                let batch = Batch {
                    queue,
                    target,
                    packages,
                };
                return finish_batch(shared, batch, ReportOutcome::Locked);
            }
            Err(error) if is_first && packages.len() > 1 && error.rejection().is_some() => {
                tracing::warn!(%error, packages = packages.len(), "failed to apply measurements; retrying in halves");
                let second = packages.split_off(packages.len() / 2);
                rest.extend([second, packages]);
            }
            Err(error) => finish_all(packages, &error),
        }
        is_first = false;
    }
    queue.reset_locked_attempts();
}

/// Finishes a batch's packages and makes its queue ready again; if the report is locked, after a backoff.
fn finish_batch(shared: &Shared, batch: Batch, outcome: ReportOutcome) {
    let Batch {
        queue,
        target,
        packages,
    } = batch;
    if !matches!(outcome, ReportOutcome::Locked) {
        finish_packages(shared, &target, packages, outcome);
        queue.reset_locked_attempts();
        return;
    }
    queue.put_back(&target, packages);
    let locked_attempts = queue.count_locked_attempt();
    let backoff = (LOCK_BACKOFF.0 * 2_u32.pow(locked_attempts.saturating_sub(1).min(8))).min(LOCK_BACKOFF.1);
    tokio::spawn(async move {
        tokio::time::sleep(backoff).await;
        queue.requeue_locked(locked_attempts);
    });
}

fn finish_packages(shared: &Shared, target: &Target, packages: Vec<WaitingPackage>, outcome: ReportOutcome) {
    match outcome {
        ReportOutcome::Applied(applied) => {
            for (waiting, applied) in packages.into_iter().zip(applied) {
                let id = waiting.package.id;
                let applied = Some((target.inspection_id, applied));
                waiting.finish(Ok(Outcome::Recorded { id, applied }));
            }
        }
        // The next batch finds the report that is open now, if any.
        ReportOutcome::NotOpen | ReportOutcome::Locked => shared.queue.requeue(packages),
        ReportOutcome::Unreadable(error) => finish_all(packages, &error.into()),
    }
}

async fn attempt(
    shared: &Shared,
    lock: Lock,
    batches: &[(&Target, &[WaitingPackage])],
) -> Result<Vec<ReportOutcome>, RecordError> {
    let client = shared.connect().await?;
    let reports: Vec<measurements::ReportPackages<'_>> = batches
        .iter()
        .map(|(target, waiting)| measurements::ReportPackages {
            target,
            packages: packages(waiting),
        })
        .collect();
    Ok(measurements::record_applied(&client, lock, &reports, plausible::documented).await?)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use uuid::Uuid;

    use super::super::queue::tests::waiting;
    use super::super::tests::hung_database;
    use super::*;

    fn target() -> Target {
        Target {
            inspection_id: Uuid::nil(),
            organization_id: Uuid::nil(),
            branch_id: Uuid::nil(),
            plate: String::new(),
        }
    }

    #[tokio::test]
    async fn a_shared_transaction_without_a_response_is_not_retried() {
        let (_database, shared) = hung_database().await;
        let (package, mut outcome) = waiting(1, "first");
        shared.report_queues.add(target(), package);
        let checkout = shared.report_queues.next(Lock::SkipLocked).await.unwrap();
        apply_together(&shared, checkout.batches).await;
        assert!(outcome.try_recv().unwrap().unwrap_err().is_unavailable());
    }

    #[tokio::test]
    async fn a_separate_transaction_without_a_response_is_not_retried() {
        let (database, shared) = hung_database().await;
        let mut outcomes = Vec::new();
        for external_id in ["first", "second"] {
            let (package, outcome) = waiting(1, external_id);
            shared.report_queues.add(target(), package);
            outcomes.push(outcome);
        }
        let checkout = shared.report_queues.next(Lock::SkipLocked).await.unwrap();
        for batch in checkout.batches {
            apply_single(&shared, batch).await;
        }
        for outcome in &mut outcomes {
            assert!(outcome.try_recv().unwrap().unwrap_err().is_unavailable());
        }
        let connections = (0..3).filter(|_| database.accept().now_or_never().is_some()).count();
        assert!(connections < 2, "{connections} attempts");
        assert_eq!((shared.queue.len(), shared.report_queues.len()), (0, 0));
    }
}
