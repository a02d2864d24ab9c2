//! The first step: records packages in batches of everything that has arrived. Most packages are done after it.

use partner_api_store::DbError;
use partner_api_store::measurements::{self, Verdict};
use std::sync::Arc;

use super::queue::{BUSY_BATCH, GATHER_DELAY};
use super::{Outcome, RecordError, Shared, SubmitResult, WaitingPackage, catch_panics, finish_all, packages};

/// Records batches until the queue is closed and empty. If the database rejects a batch, each half is retried once, so that one
/// bad package does not fail all the others.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut is_busy = false;
    while shared.queue.is_filled().await {
        if is_busy {
            tokio::time::sleep(GATHER_DELAY).await;
        }
        let batch = shared.queue.take();
        is_busy = batch.len() >= BUSY_BATCH;
        if !batch.is_empty() {
            catch_panics(record(&shared, batch)).await;
        }
    }
}

async fn record(shared: &Shared, batch: Vec<WaitingPackage>) {
    match attempt(shared, &batch).await {
        Ok(verdicts) => dispatch(shared, batch, verdicts),
        Err(error) if batch.len() > 1 && error.rejection().is_some() => {
            tracing::warn!(%error, packages = batch.len(), "failed to record measurements; retrying in halves");
            let mut first = batch;
            let second = first.split_off(first.len() / 2);
            for half in [first, second] {
                match attempt(shared, &half).await {
                    Ok(verdicts) => dispatch(shared, half, verdicts),
                    Err(error) => finish_all(half, &error),
                }
            }
        }
        Err(error) => finish_all(batch, &error),
    }
}

async fn attempt(shared: &Shared, batch: &[WaitingPackage]) -> Result<Vec<Result<Verdict, DbError>>, RecordError> {
    let client = shared.connect().await?;
    Ok(measurements::record(&client, &packages(batch)).await?)
}

/// Finishes the packages that are done, adds those for open reports to their reports' queues, and requeues the rest.
fn dispatch(shared: &Shared, batch: Vec<WaitingPackage>, verdicts: Vec<Result<Verdict, DbError>>) {
    let mut retries = Vec::new();
    for (waiting, verdict) in batch.into_iter().zip(verdicts) {
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(error) => {
                finish_all(vec![waiting], &error.into());
                continue;
            }
        };
        let result: SubmitResult = Ok(match verdict {
            Verdict::Recorded => Outcome::Recorded {
                id: waiting.package.id,
                applied: None,
            },
            Verdict::Replayed(replay) => Outcome::Replayed(replay),
            Verdict::UnknownBranch => Outcome::UnknownBranch,
            Verdict::AmbiguousBranch => Outcome::AmbiguousBranch,
            Verdict::ForReport(target) => {
                shared.report_queues.add(target, waiting);
                continue;
            }
            Verdict::InProgress => {
                retries.push(waiting);
                continue;
            }
        });
        waiting.finish(result);
    }
    if !retries.is_empty() {
        shared.queue.requeue(retries);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::super::queue::tests::waiting;
    use super::super::tests::hung_database;
    use super::*;

    #[tokio::test]
    async fn a_batch_without_a_response_is_not_retried() {
        let (database, shared) = hung_database().await;
        let (first, mut outcome) = waiting(1, "first");
        let (second, _outcome) = waiting(1, "second");
        record(&shared, vec![first, second]).await;
        assert!(outcome.try_recv().unwrap().unwrap_err().is_unavailable());
        let connections = (0..3).filter(|_| database.accept().now_or_never().is_some()).count();
        assert!(connections < 2, "{connections} attempts");
    }

    #[tokio::test]
    async fn a_package_that_another_statement_is_recording_is_requeued() {
        let (_database, shared) = hung_database().await;
        let (package, _outcome) = waiting(1, "twice");
        dispatch(&shared, vec![package], vec![Ok(Verdict::InProgress)]);
        assert_eq!(shared.queue.len(), 1);
    }
}
