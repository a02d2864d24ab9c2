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

use super::queue::{CROWD, GATHER, LARGEST_BATCH, LARGEST_BYTES};
use super::{Outcome, RecordError, Shared, WaitingPackage, answer_all, connect, packages, unless_it_panics};
use crate::db::measurements::{self, Lock, ReportOutcome, Target};

/// Rounds at a time: one, so that a round has all that came during the one before.
pub(super) const ROUNDS: usize = 1;

/// Lines that are tried alone at a time.
pub(super) const ALONE: usize = 2;

/// How long a line rests, at first and at most, when somebody else has its report locked: a line that rests needs no
/// connection, so that reports under lock do not use up those of the others.
const REST: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(200));

/// The lines of open reports, and which of them are ready for a transaction.
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
#[derive(Default)]
struct Line {
    /// Each with what its report was found by, which may change while others wait.
    waiting: VecDeque<(Target, WaitingPackage)>,
    /// Whether a transaction has taken of it, or it rests: then it is in no queue.
    is_taken: bool,
    /// How often in a row somebody else had the report.
    locked: u32,
}

/// What goes into a transaction.
#[derive(Default)]
struct Taken {
    lines: Vec<(Target, Vec<WaitingPackage>)>,
    packages: usize,
    bytes: usize,
    external_ids: HashSet<(Uuid, String)>,
    /// Those whose turn is after the others', for they have an external id of one of them.
    twins: Vec<WaitingPackage>,
}

impl Taken {
    fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.twins.is_empty()
    }

    fn is_full(&self) -> bool {
        self.packages >= LARGEST_BATCH || self.bytes >= LARGEST_BYTES
    }

    /// Takes the next packages of a line that somebody waits for, of one target and each external id once; returns whether
    /// there were any.
    fn take(&mut self, line: &mut Line) -> bool {
        let (mut target, mut batch) = (None, Vec::new());
        while !self.is_full()
            && let Some((next, waiting)) = line.waiting.pop_front()
        {
            if target.as_ref().is_some_and(|target| *target != next) {
                line.waiting.push_front((next, waiting));
                break;
            }
            let package = &waiting.package;
            let is_twin = match &package.external_id {
                _ if !waiting.is_wanted() => continue,
                Some(external_id) => !self.external_ids.insert((package.partner_id, external_id.clone())),
                None => false,
            };
            if is_twin {
                self.twins.push(waiting);
                continue;
            }
            self.packages += 1;
            self.bytes += package.raw.len();
            target = Some(next);
            batch.push(waiting);
        }
        let Some(target) = target else { return false };
        self.lines.push((target, batch));
        true
    }
}

impl Reports {
    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a package to the line of its report.
    pub fn add(&self, target: Target, waiting: WaitingPackage) {
        let report = target.inspection_id;
        let is_new = self.with(|state| {
            let is_new = !state.lines.contains_key(&report);
            let line = state.lines.entry(report).or_default();
            line.waiting.push_back((target, waiting));
            if is_new {
                state.free.push_back(report);
            }
            is_new
        });
        if is_new {
            self.free.notify_one();
        }
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
    fn put_back(&self, target: &Target, batch: Vec<WaitingPackage>) {
        self.with(|state| {
            let line = state.lines.entry(target.inspection_id).or_default();
            for waiting in batch.into_iter().rev() {
                line.waiting.push_front((target.clone(), waiting));
            }
        });
    }

    /// Everything that has come for a report meanwhile.
    fn drain(&self, report: Uuid) -> Vec<WaitingPackage> {
        self.with(|state| match state.lines.get_mut(&report) {
            Some(line) => line.waiting.drain(..).map(|(_, waiting)| waiting).collect(),
            None => Vec::new(),
        })
    }

    /// Lets a line go on that was taken.
    fn go_on(&self, report: Uuid, next: Lock) {
        let is_ready = self.with(|state| {
            let Some(line) = state.lines.get_mut(&report).filter(|line| line.is_taken) else {
                return false;
            };
            line.is_taken = false;
            if line.waiting.is_empty() {
                state.lines.remove(&report);
                return false;
            }
            state.ready(next).push_back(report);
            true
        });
        if is_ready {
            self.notice(next).notify_one();
        }
    }

    /// The turn of a line whose report was locked so often in a row. What is locked for a moment is free the next time; what
    /// is locked again is waited for in turn, unless too many lines are, or none of them would get its turn in time.
    fn turn_after(&self, locked: u32) -> Lock {
        let is_crowded = self.with(|state| state.in_turn.len() >= 2 * ALONE);
        match locked.is_multiple_of(2) && !is_crowded {
            true => Lock::InTurn,
            false => Lock::Free,
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
        while !taken.is_full()
            && (lock == Lock::Free || taken.is_empty())
            && let Some(report) = self.ready(lock).pop_front()
        {
            let Some(line) = self.lines.get_mut(&report) else {
                continue;
            };
            match taken.take(line) {
                true => line.is_taken = true,
                false => drop(self.lines.remove(&report)),
            }
        }
        taken
    }
}

/// Applies round after round, until the recorder ends and nothing is ready.
pub(super) async fn run(shared: Arc<Shared>, lock: Lock) {
    while let Some(taken) = shared.reports.next(lock).await {
        let is_crowd = taken.packages >= CROWD;
        let Taken { lines, twins, .. } = taken;
        let reports: Vec<Uuid> = lines.iter().map(|(target, _)| target.inspection_id).collect();
        let work = async {
            match lock {
                Lock::Free => round(&shared, lines).await,
                Lock::InTurn => {
                    for (target, batch) in lines {
                        alone(&shared, target, batch).await;
                    }
                }
            }
        };
        if !unless_it_panics(work).await {
            for report in reports {
                shared.reports.go_on(report, Lock::Free);
            }
        }
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
async fn round(shared: &Arc<Shared>, batches: Vec<(Target, Vec<WaitingPackage>)>) {
    match attempt(shared, Lock::Free, &batches).await {
        Ok(outcomes) => {
            for ((target, batch), outcome) in batches.into_iter().zip(outcomes) {
                settle(shared, &target, batch, outcome);
            }
        }
        Err(error) if error.refusal().is_some() => {
            tracing::warn!(%error, reports = batches.len(), "measurements are tried again, each report alone");
            for (target, batch) in batches {
                shared.reports.put_back(&target, batch);
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
async fn alone(shared: &Arc<Shared>, target: Target, batch: Vec<WaitingPackage>) {
    let report = target.inspection_id;
    let mut rest = vec![batch];
    let mut is_first = true;
    while let Some(batch) = rest.pop() {
        let batches = [(target.clone(), batch)];
        let outcome = attempt(shared, Lock::InTurn, &batches).await;
        let [(_, mut batch)] = batches;
        match outcome.map(|outcomes| outcomes.into_iter().next()) {
            Ok(Some(outcome)) => answer_line(shared, &target, batch, outcome),
            Ok(None) => {}
            // An external id of theirs is taken: the next batch finds out whose. All that came after them goes after them.
            Err(error) if error.refusal() == Some(&SqlState::UNIQUE_VIOLATION) => {
                batch.extend(rest.drain(..).rev().flatten());
                batch.extend(shared.reports.drain(report));
                shared.queue.again(batch);
            }
            Err(error) if error.refusal() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                batch.extend(rest.drain(..).rev().flatten());
                return settle(shared, &target, batch, ReportOutcome::Locked);
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
    shared.reports.note(report, false);
    shared.reports.go_on(report, Lock::Free);
}

/// Answers a line's packages and lets it go on; where somebody else has its report, after a rest.
fn settle(shared: &Arc<Shared>, target: &Target, batch: Vec<WaitingPackage>, outcome: ReportOutcome) {
    let report = target.inspection_id;
    if !matches!(outcome, ReportOutcome::Locked) {
        answer_line(shared, target, batch, outcome);
        shared.reports.note(report, false);
        shared.reports.go_on(report, Lock::Free);
        return;
    }
    shared.reports.put_back(target, batch);
    let locked = shared.reports.note(report, true);
    let rest = (REST.0 * 2_u32.pow(locked.saturating_sub(1).min(8))).min(REST.1);
    let shared = shared.clone();
    tokio::spawn(async move {
        tokio::time::sleep(rest).await;
        let next = shared.reports.turn_after(locked);
        shared.reports.go_on(report, next);
    });
}

fn answer_line(shared: &Shared, target: &Target, batch: Vec<WaitingPackage>, outcome: ReportOutcome) {
    match outcome {
        ReportOutcome::Applied(applied) => {
            for (waiting, applied) in batch.into_iter().zip(applied) {
                let id = waiting.package.id;
                let applied = Some((target.inspection_id, applied));
                waiting.answer(Ok(Outcome::Recorded { id, applied }));
            }
        }
        // Whatever they are now, the next batch finds out.
        ReportOutcome::NotOpen | ReportOutcome::Locked => shared.queue.again(batch),
        ReportOutcome::Unreadable(error) => answer_all(batch, &error.into()),
    }
}

async fn attempt(
    shared: &Shared,
    lock: Lock,
    batches: &[(Target, Vec<WaitingPackage>)],
) -> Result<Vec<ReportOutcome>, RecordError> {
    let client = connect(&shared.pool).await?;
    let reports: Vec<measurements::ReportPackages<'_>> = batches
        .iter()
        .map(|(target, batch)| measurements::ReportPackages {
            target,
            packages: packages(batch),
        })
        .collect();
    Ok(measurements::record_applied(&client, lock, &reports).await?)
}
