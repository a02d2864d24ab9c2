//! Batches of whatever has arrived: most packages need no more than this.

use partner_api_store::DbError;
use partner_api_store::measurements::{self, Verdict};
use std::sync::Arc;

use super::queue::{CROWD, GATHER};
use super::{Answer, Outcome, RecordError, Shared, WaitingPackage, answer_all, packages, unless_it_panics};

/// Records batch after batch, until the queue is closed and empty. What the database refuses is tried once more, in halves:
/// one package that cannot be recorded does not keep the others from it.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut is_crowd = false;
    while shared.queue.is_filled().await {
        if is_crowd {
            tokio::time::sleep(GATHER).await;
        }
        let batch = shared.queue.take();
        is_crowd = batch.len() >= CROWD;
        if !batch.is_empty() {
            unless_it_panics(record(&shared, batch)).await;
        }
    }
}

async fn record(shared: &Shared, batch: Vec<WaitingPackage>) {
    match attempt(shared, &batch).await {
        Ok(verdicts) => hand_on(shared, batch, verdicts),
        Err(error) if batch.len() > 1 && error.refusal().is_some() => {
            tracing::warn!(%error, packages = batch.len(), "measurements are tried again in halves");
            let mut first = batch;
            let second = first.split_off(first.len() / 2);
            for half in [first, second] {
                match attempt(shared, &half).await {
                    Ok(verdicts) => hand_on(shared, half, verdicts),
                    Err(error) => answer_all(half, &error),
                }
            }
        }
        Err(error) => answer_all(batch, &error),
    }
}

async fn attempt(shared: &Shared, batch: &[WaitingPackage]) -> Result<Vec<Result<Verdict, DbError>>, RecordError> {
    let client = shared.connect().await?;
    Ok(measurements::record(&client, &packages(batch)).await?)
}

fn hand_on(shared: &Shared, batch: Vec<WaitingPackage>, verdicts: Vec<Result<Verdict, DbError>>) {
    let mut again = Vec::new();
    for (waiting, verdict) in batch.into_iter().zip(verdicts) {
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(error) => {
                answer_all(vec![waiting], &error.into());
                continue;
            }
        };
        let answer: Answer = Ok(match verdict {
            Verdict::Recorded => Outcome::Recorded {
                id: waiting.package.id,
                applied: None,
            },
            Verdict::Replayed(replay) => Outcome::Replayed(replay),
            Verdict::UnknownBranch => Outcome::UnknownBranch,
            Verdict::AmbiguousBranch => Outcome::AmbiguousBranch,
            Verdict::ForReport(target) => {
                shared.lines.add(target, waiting);
                continue;
            }
            Verdict::Overtaken => {
                again.push(waiting);
                continue;
            }
        });
        waiting.answer(answer);
    }
    if !again.is_empty() {
        shared.queue.again(again);
    }
}
