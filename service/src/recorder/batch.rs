//! Batches of whatever has arrived: most packages need no more than this.

use std::sync::Arc;

use super::{Answer, Outcome, RecordError, Shared, Waiting, answer_all, connect, hand_back, packages, within};
use crate::db::measurements::{self, Verdict};

/// Records batch after batch, until the queue is closed and empty. What the database refuses is tried once more, in halves:
/// one package that cannot be recorded does not keep the others from it.
pub(super) async fn run(shared: Arc<Shared>) {
    while let Some(batch) = shared.queue.next().await {
        match attempt(&shared, &batch).await {
            Ok(verdicts) => hand_on(&shared, batch, verdicts),
            Err(error) if batch.len() > 1 && error.refusal().is_some() => {
                tracing::warn!(%error, packages = batch.len(), "measurements are tried again in halves");
                let mut first = batch;
                let second = first.split_off(first.len() / 2);
                for half in [first, second] {
                    match attempt(&shared, &half).await {
                        Ok(verdicts) => hand_on(&shared, half, verdicts),
                        Err(error) => answer_all(half, &error),
                    }
                }
            }
            Err(error) => answer_all(batch, &error),
        }
    }
}

async fn attempt(shared: &Shared, batch: &[Waiting]) -> Result<Vec<Verdict>, RecordError> {
    let (client, until) = connect(&shared.pool).await?;
    let outcome = within(until, measurements::record(&client, &packages(batch))).await;
    hand_back(client, &outcome);
    outcome
}

fn hand_on(shared: &Shared, batch: Vec<Waiting>, verdicts: Vec<Verdict>) {
    let mut again = Vec::new();
    for (waiting, verdict) in batch.into_iter().zip(verdicts) {
        let answer: Answer = Ok(match verdict {
            Verdict::Recorded => Outcome::Recorded {
                id: waiting.package.id,
                applied: None,
            },
            Verdict::Replayed(replay) => Outcome::Replayed(replay),
            Verdict::UnknownBranch => Outcome::UnknownBranch,
            Verdict::AmbiguousBranch => Outcome::AmbiguousBranch,
            Verdict::ForReport(target) => {
                shared.reports.add(target, waiting);
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
