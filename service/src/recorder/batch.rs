//! Batches of whatever has arrived: most packages need no more than this.

use std::sync::Arc;

use super::{
    Answer, Attempt, Outcome, RecordError, Shared, Waiting, answer_all, connect, hand_back, packages, reports, within,
};
use crate::db::measurements::{self, Verdict};

/// Records batch after batch, until the queue is closed and empty.
pub(super) async fn run(shared: Arc<Shared>) {
    while let Some(batch) = shared.queue.next().await {
        for (batch, outcome) in shared.in_halves(batch).await {
            match outcome {
                Ok(verdicts) => hand_on(&shared, batch, verdicts),
                Err(error) => answer_all(batch, &error),
            }
        }
    }
}

impl Attempt for Shared {
    type Done = Vec<Verdict>;

    async fn attempt(&self, batch: &[Waiting]) -> Result<Vec<Verdict>, RecordError> {
        let (client, until) = connect(&self.pool).await?;
        let outcome = within(until, measurements::record(&client, &packages(batch))).await;
        hand_back(client, &outcome);
        outcome
    }
}

fn hand_on(shared: &Arc<Shared>, batch: Vec<Waiting>, verdicts: Vec<Verdict>) {
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
                reports::add(shared, target, waiting);
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
