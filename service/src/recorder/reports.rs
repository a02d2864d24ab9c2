//! Packages for open reports: transactions that take from as many lines as are ready ([`lines`](super::lines)).
//!
//! A round takes what has come for any number of reports, locks those of them that are free, and applies it all in one
//! transaction, whose flush they share. It waits for nobody: a report that somebody else has is left for later, when its line
//! is tried alone and waits for the lock in its turn, or it would never get the lock of a report that many write to.

use std::sync::Arc;
use std::time::Duration;

use partner_api_store::measurements::{self, Lock, ReportOutcome, Target};
use tokio_postgres::error::SqlState;

use super::lines::{Batch, Taken};
use super::queue::{CROWD, GATHER};
use super::{Outcome, RecordError, Shared, WaitingPackage, answer_all, packages, unless_it_panics};
use crate::plausible;

/// Rounds at a time: one, so that a round has all that came during the one before.
pub(super) const ROUNDS: usize = 1;

/// Lines that are tried alone at a time.
pub(super) const ALONE: usize = 2;

/// How long a line rests, at first and at most, when somebody else has its report locked: a line that rests needs no
/// connection, so that reports under lock do not use up those of the others.
const REST: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(200));

/// Applies round after round, until the recorder ends and nothing is ready.
pub(super) async fn run(shared: Arc<Shared>, lock: Lock) {
    while let Some(Taken { batches, twins }) = shared.lines.next(lock).await {
        let is_crowd = batches.iter().map(|batch| batch.packages.len()).sum::<usize>() >= CROWD;
        let work = async {
            match lock {
                Lock::Free => round(&shared, batches).await,
                Lock::InTurn => {
                    for batch in batches {
                        alone(&shared, batch).await;
                    }
                }
            }
        };
        unless_it_panics(work).await;
        // By now what they are twins of is recorded, or refused: they are told so.
        if !twins.is_empty() {
            shared.queue.again(twins);
        }
        if is_crowd {
            tokio::time::sleep(GATHER).await;
        }
    }
}

/// Applies what has come for several reports. What the database refuses is tried again, each line alone: one of them does
/// not keep the others from it.
async fn round(shared: &Shared, batches: Vec<Batch>) {
    let tried: Vec<(&Target, &[WaitingPackage])> =
        batches.iter().map(|batch| (&batch.target, &*batch.packages)).collect();
    match attempt(shared, Lock::Free, &tried).await {
        Ok(outcomes) => {
            for (batch, outcome) in batches.into_iter().zip(outcomes) {
                settle(shared, batch, outcome);
            }
        }
        Err(error) if error.refusal().is_some() => {
            tracing::warn!(%error, reports = batches.len(), "measurements are tried again, each report alone");
            for Batch { line, target, packages } in batches {
                line.put_back(&target, packages);
                line.go_on(Lock::InTurn);
            }
        }
        Err(error) => {
            for batch in batches {
                answer_all(batch.packages, &error);
            }
        }
    }
}

/// Applies what has come for one report; where the database refuses it, each half once more.
async fn alone(shared: &Shared, batch: Batch) {
    let Batch { line, target, packages } = batch;
    let mut rest = vec![packages];
    let mut is_first = true;
    while let Some(mut packages) = rest.pop() {
        let outcome = attempt(shared, Lock::InTurn, &[(&target, &*packages)]).await;
        match outcome.map(|outcomes| outcomes.into_iter().next()) {
            Ok(Some(outcome)) => answer_line(shared, &target, packages, outcome),
            Ok(None) => {}
            // An external id of theirs is taken: the next batch finds out whose. All that came after them goes after them.
            Err(error) if error.refusal() == Some(&SqlState::UNIQUE_VIOLATION) => {
                packages.extend(rest.drain(..).rev().flatten());
                packages.extend(line.drain());
                shared.queue.again(packages);
            }
            Err(error) if error.refusal() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                packages.extend(rest.drain(..).rev().flatten());
                return settle(shared, Batch { line, target, packages }, ReportOutcome::Locked);
            }
            Err(error) if is_first && packages.len() > 1 && error.refusal().is_some() => {
                tracing::warn!(%error, packages = packages.len(), "measurements are tried again in halves");
                let second = packages.split_off(packages.len() / 2);
                rest.extend([second, packages]);
            }
            Err(error) => answer_all(packages, &error),
        }
        is_first = false;
    }
    line.note(false);
}

/// Answers a line's packages and lets it go on; where somebody else has its report, after a rest.
fn settle(shared: &Shared, batch: Batch, outcome: ReportOutcome) {
    let Batch { line, target, packages } = batch;
    if !matches!(outcome, ReportOutcome::Locked) {
        answer_line(shared, &target, packages, outcome);
        line.note(false);
        return;
    }
    line.put_back(&target, packages);
    let locked = line.note(true);
    let rest = (REST.0 * 2_u32.pow(locked.saturating_sub(1).min(8))).min(REST.1);
    tokio::spawn(async move {
        tokio::time::sleep(rest).await;
        line.go_on_after(locked);
    });
}

fn answer_line(shared: &Shared, target: &Target, packages: Vec<WaitingPackage>, outcome: ReportOutcome) {
    match outcome {
        ReportOutcome::Applied(applied) => {
            for (waiting, applied) in packages.into_iter().zip(applied) {
                let id = waiting.package.id;
                let applied = Some((target.inspection_id, applied));
                waiting.answer(Ok(Outcome::Recorded { id, applied }));
            }
        }
        // Whatever they are now, the next batch finds out.
        ReportOutcome::NotOpen | ReportOutcome::Locked => shared.queue.again(packages),
        ReportOutcome::Unreadable(error) => answer_all(packages, &error.into()),
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
