//! Packages for open reports: a line for each report, and transactions that take from as many lines as are ready.
//!
//! A round takes what has come for any number of reports, locks those of them that are free, and applies it all in one
//! transaction, whose flush they share. It waits for nobody: a report that somebody else has is left for later, when its line
//! is tried alone and waits for the lock in its turn, or it would never get the lock of a report that many write to. A line
//! is in one round at a time, so its packages keep their order.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use super::queue::LARGEST_BATCH;
use super::{Outcome, RecordError, Shared, Waiting, answer_all, connect, hand_back, within};
use crate::db::measurements::{self, Applied, LineOutcome, Lock, Target};

/// Rounds at a time: one, so that a round has all that came during the one before.
pub(super) const ROUNDS: usize = 1;

/// Lines that are tried alone at a time.
pub(super) const ALONE: usize = 2;

/// How long a line rests, at first and at most, when somebody else has its report locked: a line that rests needs no
/// connection, so that reports under lock do not use up those of the others.
const REST: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(200));

/// See above.
#[derive(Default)]
pub(super) struct Reports {
    state: Mutex<State>,
    free: Notify,
    in_turn: Notify,
}

#[derive(Default)]
struct State {
    lines: HashMap<Uuid, Line>,
    /// Lines for the next round, and lines to be tried alone, the first one in front.
    free: VecDeque<Uuid>,
    in_turn: VecDeque<Uuid>,
    is_closed: bool,
}

/// What has come for a report.
struct Line {
    target: Target,
    waiting: VecDeque<Waiting>,
    /// How often in a row somebody else had the report.
    locked: u32,
}

/// What goes into a transaction.
#[derive(Default)]
struct Taken {
    lines: Vec<(Target, Vec<Waiting>)>,
    external_ids: HashSet<(Uuid, String)>,
    /// Those whose turn is after the others', for they have an external id of one of them.
    twins: Vec<Waiting>,
}

impl Taken {
    fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.twins.is_empty()
    }

    /// The next packages of a line that somebody waits for, each external id once.
    fn take(&mut self, line: &mut Line, room: usize) -> usize {
        let mut batch = Vec::new();
        while batch.len() < room
            && let Some(waiting) = line.waiting.pop_front()
        {
            let package = &waiting.package;
            let is_twin = match &package.external_id {
                _ if !waiting.is_wanted() => continue,
                Some(external_id) => !self.external_ids.insert((package.partner_id, external_id.clone())),
                None => false,
            };
            if is_twin {
                self.twins.push(waiting);
            } else {
                batch.push(waiting);
            }
        }
        let taken = batch.len();
        if taken > 0 {
            self.lines.push((line.target.clone(), batch));
        }
        taken
    }
}

impl Reports {
    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a package to the line of its report.
    pub fn add(&self, target: Target, waiting: Waiting) {
        let id = target.inspection_id;
        self.with(|state| match state.lines.get_mut(&id) {
            Some(line) => line.waiting.push_back(waiting),
            None => {
                let waiting = VecDeque::from([waiting]);
                let locked = 0;
                state.lines.insert(
                    id,
                    Line {
                        target,
                        waiting,
                        locked,
                    },
                );
                state.free.push_back(id);
                self.free.notify_one();
            }
        });
    }

    /// Lets the tasks end when nothing is ready any more.
    pub fn close(&self) {
        self.with(|state| state.is_closed = true);
        // One permit each is kept for who does not wait yet; who ends passes it on.
        self.free.notify_one();
        self.in_turn.notify_one();
    }

    /// Waits for lines, and takes of them what goes into a transaction; `None` at the end.
    async fn next(&self, lock: Lock) -> Option<Taken> {
        let ready = self.notice(lock);
        loop {
            let (taken, is_more, is_closed) = self.with(|state| {
                let taken = state.take(lock);
                (taken, !state.ready(lock).is_empty(), state.is_closed)
            });
            if is_more || is_closed && taken.is_empty() {
                ready.notify_one();
            }
            if !taken.is_empty() {
                return Some(taken);
            }
            if is_closed {
                return None;
            }
            ready.notified().await;
        }
    }

    fn notice(&self, lock: Lock) -> &Notify {
        match lock {
            Lock::Free => &self.free,
            Lock::InTurn => &self.in_turn,
        }
    }

    /// Puts back what was taken and could not be tried to the end.
    fn put_back(&self, report: Uuid, batch: Vec<Waiting>) {
        self.with(|state| {
            if let Some(line) = state.lines.get_mut(&report) {
                for waiting in batch.into_iter().rev() {
                    line.waiting.push_front(waiting);
                }
            }
        });
    }

    /// Lets a line go on after a round.
    fn go_on(&self, report: Uuid, next: Lock) {
        let is_ready = self.with(|state| {
            let is_done = state.lines.get(&report).is_none_or(|line| line.waiting.is_empty());
            if is_done {
                state.lines.remove(&report);
            } else {
                state.ready(next).push_back(report);
            }
            !is_done
        });
        if is_ready {
            self.notice(next).notify_one();
        }
    }

    /// Notes whether somebody else had the report; returns how often in a row.
    fn note(&self, report: Uuid, is_locked: bool) -> u32 {
        self.with(|state| match state.lines.get_mut(&report) {
            Some(line) => {
                line.locked = if is_locked { line.locked + 1 } else { 0 };
                line.locked
            }
            None => 0,
        })
    }
}

impl State {
    fn ready(&mut self, lock: Lock) -> &mut VecDeque<Uuid> {
        match lock {
            Lock::Free => &mut self.free,
            Lock::InTurn => &mut self.in_turn,
        }
    }

    /// What goes into a transaction: of one line, or of as many as make up a batch.
    fn take(&mut self, lock: Lock) -> Taken {
        let mut taken = Taken::default();
        let mut room = LARGEST_BATCH;
        while room > 0
            && (lock == Lock::Free || taken.is_empty())
            && let Some(report) = self.ready(lock).pop_front()
        {
            let Some(line) = self.lines.get_mut(&report) else {
                continue;
            };
            match taken.take(line, room) {
                0 => drop(self.lines.remove(&report)),
                some => room -= some,
            }
        }
        taken
    }
}

/// Applies round after round, until the recorder ends and nothing is ready.
pub(super) async fn run(shared: Arc<Shared>, lock: Lock) {
    while let Some(Taken { lines, twins, .. }) = shared.reports.next(lock).await {
        match lock {
            Lock::Free => round(&shared, lines).await,
            Lock::InTurn => {
                for (target, batch) in lines {
                    alone(&shared, target, batch).await;
                }
            }
        }
        // By now what they are twins of is recorded, or refused: they are told so.
        if !twins.is_empty() {
            shared.queue.again(twins);
        }
    }
}

/// Applies what has come for several reports. What the database refuses is tried again, each line alone: one of them does
/// not keep the others from it.
async fn round(shared: &Arc<Shared>, batches: Vec<(Target, Vec<Waiting>)>) {
    match attempt(shared, Lock::Free, &batches).await {
        Ok(outcomes) => {
            for ((target, batch), outcome) in batches.into_iter().zip(outcomes) {
                settle(shared, &target, batch, outcome);
            }
        }
        Err(error) if is_taken(&error) => {
            for (target, batch) in batches {
                shared.queue.again(batch);
                shared.reports.go_on(target.inspection_id, Lock::Free);
            }
        }
        Err(error) if error.refusal().is_some() => {
            tracing::warn!(%error, reports = batches.len(), "measurements are tried again, each report alone");
            for (target, batch) in batches {
                shared.reports.put_back(target.inspection_id, batch);
                shared.reports.go_on(target.inspection_id, Lock::InTurn);
            }
        }
        Err(error) => {
            for (target, batch) in batches {
                answer_all(batch, &error);
                shared.reports.go_on(target.inspection_id, Lock::Free);
            }
        }
    }
}

/// Applies what has come for one report; where the database refuses it, each half once more.
async fn alone(shared: &Arc<Shared>, target: Target, batch: Vec<Waiting>) {
    let mut rest = vec![batch];
    let mut is_first = true;
    while let Some(batch) = rest.pop() {
        let batches = [(target.clone(), batch)];
        let outcome = attempt(shared, Lock::InTurn, &batches).await;
        let [(_, mut batch)] = batches;
        match outcome {
            Ok(outcomes) => {
                if let Some(outcome) = outcomes.into_iter().next() {
                    answer_line(shared, &target, batch, outcome);
                }
            }
            Err(error) if is_taken(&error) => shared.queue.again(batch),
            Err(error) if error.refusal() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                for half in rest.drain(..).rev() {
                    batch.extend(half);
                }
                return settle(shared, &target, batch, LineOutcome::Locked);
            }
            Err(error) if is_first && batch.len() > 1 && error.refusal().is_some() => {
                tracing::warn!(%error, packages = batch.len(), "measurements are tried again in halves");
                let second = batch.split_off(batch.len() / 2);
                rest.extend([second, batch]);
            }
            Err(error) => answer_all(batch, &error),
        }
        is_first = false;
    }
    shared.reports.note(target.inspection_id, false);
    shared.reports.go_on(target.inspection_id, Lock::Free);
}

/// Answers a line's packages, and lets it go on.
fn settle(shared: &Arc<Shared>, target: &Target, batch: Vec<Waiting>, outcome: LineOutcome) {
    let report = target.inspection_id;
    if outcome != LineOutcome::Locked {
        answer_line(shared, target, batch, outcome);
        shared.reports.note(report, false);
        shared.reports.go_on(report, Lock::Free);
        return;
    }
    shared.reports.put_back(report, batch);
    let locked = shared.reports.note(report, true);
    let rest = (REST.0 * 2_u32.pow(locked.saturating_sub(1).min(8))).min(REST.1);
    // What is locked for a moment is free the next time; what is locked again and again is waited for in turn.
    let next = if locked.is_multiple_of(2) {
        Lock::InTurn
    } else {
        Lock::Free
    };
    let shared = shared.clone();
    tokio::spawn(async move {
        tokio::time::sleep(rest).await;
        shared.reports.go_on(report, next);
    });
}

fn answer_line(shared: &Shared, target: &Target, batch: Vec<Waiting>, outcome: LineOutcome) {
    match outcome {
        LineOutcome::Applied(applied) => answer_applied(target, batch, applied),
        // Whatever they are now, the next batch finds out.
        LineOutcome::NotOpen | LineOutcome::Locked => shared.queue.again(batch),
    }
}

fn answer_applied(target: &Target, batch: Vec<Waiting>, applied: Vec<Applied>) {
    for (waiting, applied) in batch.into_iter().zip(applied) {
        let id = waiting.package.id;
        let applied = Some((target.inspection_id, applied));
        waiting.answer(Ok(Outcome::Recorded { id, applied }));
    }
}

async fn attempt(
    shared: &Shared,
    lock: Lock,
    batches: &[(Target, Vec<Waiting>)],
) -> Result<Vec<LineOutcome>, RecordError> {
    let (client, until) = connect(&shared.pool).await?;
    let lines: Vec<measurements::Line<'_>> = batches
        .iter()
        .map(|(target, batch)| measurements::Line {
            target,
            packages: super::packages(batch),
        })
        .collect();
    let outcome = within(until, measurements::record_applied(&client, lock, &lines)).await;
    hand_back(client, &outcome);
    outcome
}

/// Whether an external id of theirs is taken: the next batch finds out whose.
fn is_taken(error: &RecordError) -> bool {
    error.refusal() == Some(&SqlState::UNIQUE_VIOLATION)
}
