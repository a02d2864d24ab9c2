//! The lines of open reports: one transaction at a time for each, with all that has come for it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use super::queue::LARGEST_BATCH;
use super::{Attempt, Outcome, RecordError, Shared, Waiting, answer_all, connect, hand_back, packages, within};
use crate::db::measurements::{self, Applied, RecordApplied, Target};

/// How long a line rests, at first and at most, when somebody else has its report locked: a line that rests needs no
/// connection, so that reports under lock do not use up those of the others.
const REST: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(200));

/// See above.
pub(super) struct Reports {
    lines: Mutex<HashMap<Uuid, VecDeque<Waiting>>>,
    connections: Semaphore,
}

impl Reports {
    /// With this many connections.
    pub fn new(connections: usize) -> Self {
        Reports {
            lines: Mutex::default(),
            connections: Semaphore::new(connections),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<Uuid, VecDeque<Waiting>>) -> T) -> T {
        work(&mut self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The next packages of a line that somebody waits for, each external id once; `None`, and no line any more, when there
    /// are none. With them those whose turn is after theirs, for they have one of their external ids.
    fn take(&self, report: Uuid) -> Option<(Vec<Waiting>, Vec<Waiting>)> {
        self.with(|lines| {
            let line = lines.get_mut(&report)?;
            let (mut batch, mut twins, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
            while batch.len() < LARGEST_BATCH
                && let Some(waiting) = line.pop_front()
            {
                if !waiting.is_wanted() {
                    continue;
                }
                let package = &waiting.package;
                let is_twin = match &package.external_id {
                    Some(external_id) => !seen.insert((package.partner_id, external_id.clone())),
                    None => false,
                };
                if is_twin {
                    twins.push(waiting);
                } else {
                    batch.push(waiting);
                }
            }
            if batch.is_empty() {
                lines.remove(&report);
                return None;
            }
            Some((batch, twins))
        })
    }

    fn put_back(&self, report: Uuid, batch: Vec<Waiting>) {
        self.with(|lines| {
            let line = lines.entry(report).or_default();
            for waiting in batch.into_iter().rev() {
                line.push_front(waiting);
            }
        });
    }
}

/// Adds a package to the line of its report; a line that is new gets a task, which ends with it.
pub(super) fn add(shared: &Arc<Shared>, target: Target, waiting: Waiting) {
    let is_new = shared.reports.with(|lines| match lines.entry(target.inspection_id) {
        Entry::Occupied(mut line) => {
            line.get_mut().push_back(waiting);
            false
        }
        Entry::Vacant(vacant) => {
            vacant.insert(VecDeque::from([waiting]));
            true
        }
    });
    if is_new {
        tokio::spawn(run(shared.clone(), target));
    }
}

async fn run(shared: Arc<Shared>, target: Target) {
    let mut rest = REST.0;
    while let Some((batch, twins)) = shared.reports.take(target.inspection_id) {
        let is_locked = apply(&shared, &target, batch).await;
        // By now what they are twins of is recorded, or refused: they are told so.
        shared.queue.again(twins);
        if is_locked {
            tokio::time::sleep(rest).await;
            rest = (rest * 2).min(REST.1);
        } else {
            rest = REST.0;
        }
    }
}

/// Applies a batch, and answers it; true when the report is locked, and the batch is back in its line.
async fn apply(shared: &Arc<Shared>, target: &Target, batch: Vec<Waiting>) -> bool {
    // Never closed.
    let _connection = shared.reports.connections.acquire().await;
    let mut is_locked = false;
    for (batch, outcome) in (Line { shared, target }).in_halves(batch).await {
        match outcome {
            Ok(Done::Applied(applied)) => {
                for (waiting, applied) in batch.into_iter().zip(applied) {
                    let id = waiting.package.id;
                    let applied = Some((target.inspection_id, applied));
                    waiting.answer(Ok(Outcome::Recorded { id, applied }));
                }
            }
            Ok(Done::LookAgain) => shared.queue.again(batch),
            Ok(Done::Locked) => {
                is_locked = true;
                shared.reports.put_back(target.inspection_id, batch);
            }
            Err(error) => answer_all(batch, &error),
        }
    }
    is_locked
}

/// A report, and what is needed to apply packages to it.
struct Line<'a> {
    shared: &'a Shared,
    target: &'a Target,
}

impl Attempt for Line<'_> {
    type Done = Done;

    async fn attempt(&self, batch: &[Waiting]) -> Result<Done, RecordError> {
        let (client, until) = connect(&self.shared.pool).await?;
        let packages = packages(batch);
        let outcome = within(until, measurements::record_applied(&client, self.target, &packages)).await;
        hand_back(client, &outcome);
        match outcome {
            Ok(RecordApplied::Applied(applied)) => Ok(Done::Applied(applied)),
            // Whatever they are now, the next batch finds out.
            Ok(RecordApplied::NotOpen) => Ok(Done::LookAgain),
            Err(error) => match error.refusal() {
                Some(&SqlState::UNIQUE_VIOLATION) => Ok(Done::LookAgain),
                Some(&SqlState::LOCK_NOT_AVAILABLE) => Ok(Done::Locked),
                _ => Err(error),
            },
        }
    }
}

/// What an attempt came to, when it did not fail.
enum Done {
    Applied(Vec<Applied>),
    /// Nothing was recorded: the report is not open for them, or the external id of one is taken.
    LookAgain,
    /// Nothing was recorded: somebody else has the report.
    Locked,
}
