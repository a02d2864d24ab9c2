//! The lines of open reports: which are ready for a transaction, and which somebody has.
//!
//! A line is in one of two places: it waits for its turn, or somebody has it, as a [`TakenLine`]. Only taking makes one, and
//! only its end, whichever way it comes to it, a panic included, gives the line back: so no line is in two transactions at a
//! time, its packages keep their order, and none is left behind.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use partner_api_store::measurements::{Lock, Target};
use tokio::sync::Notify;
use uuid::Uuid;

use super::WaitingPackage;
use super::queue::{LARGEST_BATCH, LARGEST_BYTES};
use super::reports::ALONE;
use super::turns::Turns;

/// The lines of open reports.
#[derive(Clone, Default)]
pub(super) struct Lines(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    free: Notify,
    in_turn: Notify,
}

#[derive(Default)]
struct State {
    lines: HashMap<Uuid, Line>,
    /// Lines for the next round, and lines to be tried alone: a partner with hundreds of open reports has one turn like any
    /// other.
    free: Turns<Uuid>,
    in_turn: Turns<Uuid>,
    is_closed: bool,
}

/// What has come for a report.
#[derive(Default)]
struct Line {
    /// Each with what its report was found by, which may change while others wait.
    waiting: VecDeque<(Target, WaitingPackage)>,
    /// How often in a row somebody else had the report.
    locked: u32,
}

/// A line that somebody has: a transaction, or the rest after one. It goes on when this ends.
pub(super) struct TakenLine {
    lines: Lines,
    report: Uuid,
    next: Lock,
}

impl TakenLine {
    /// Puts back what could not be tried to the end.
    pub fn put_back(&self, target: &Target, packages: Vec<WaitingPackage>) {
        self.with(|line| {
            for waiting in packages.into_iter().rev() {
                line.waiting.push_front((target.clone(), waiting));
            }
        });
    }

    /// Everything that has come for the report meanwhile.
    pub fn drain(&self) -> Vec<WaitingPackage> {
        self.with(|line| line.waiting.drain(..).map(|(_, waiting)| waiting).collect())
    }

    /// Notes whether somebody else had the report; returns how often in a row.
    pub fn note(&self, is_locked: bool) -> u32 {
        self.with(|line| {
            line.locked = if is_locked { line.locked + 1 } else { 0 };
            line.locked
        })
    }

    /// Lets the line go on in the turn of a report that was locked so often in a row. What is locked for a moment is free the
    /// next time; what is locked again is waited for in turn, unless too many lines are, or none of them would get its turn in
    /// time. A partner of whom none is waited for is not too many.
    pub fn go_on_after(self, locked: u32) {
        let is_crowded = self.lines.with(|state| {
            let partner_id = state.lines.get(&self.report).and_then(Line::partner_id);
            state.in_turn.len() >= 2 * ALONE && partner_id.is_some_and(|partner_id| state.in_turn.has(partner_id))
        });
        let next = match locked.is_multiple_of(2) && !is_crowded {
            true => Lock::InTurn,
            false => Lock::Free,
        };
        self.go_on(next);
    }

    /// Lets the line go on, as it does by itself in the next round.
    pub fn go_on(mut self, next: Lock) {
        self.next = next;
    }

    fn with<T>(&self, work: impl FnOnce(&mut Line) -> T) -> T {
        self.lines
            .with(|state| work(state.lines.entry(self.report).or_default()))
    }
}

impl Drop for TakenLine {
    fn drop(&mut self) {
        let is_ready = self.lines.with(|state| {
            let partner_id = state.lines.get(&self.report).and_then(Line::partner_id);
            match partner_id {
                Some(partner_id) => state.ready(self.next).push_back(partner_id, self.report),
                None => drop(state.lines.remove(&self.report)),
            }
            partner_id.is_some()
        });
        if is_ready {
            self.lines.notice(self.next).notify_one();
        }
    }
}

/// What goes into a transaction of a line.
pub(super) struct Batch {
    pub line: TakenLine,
    pub target: Target,
    pub packages: Vec<WaitingPackage>,
}

/// What goes into a transaction.
pub(super) struct Taken {
    pub batches: Vec<Batch>,
    /// Those whose turn is after the others', for they have an external id of one of them.
    pub twins: Vec<WaitingPackage>,
}

impl Lines {
    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn notice(&self, lock: Lock) -> &Notify {
        match lock {
            Lock::Free => &self.0.free,
            Lock::InTurn => &self.0.in_turn,
        }
    }

    /// How many reports have a line.
    pub fn len(&self) -> usize {
        self.with(|state| state.lines.len())
    }

    /// Adds a package to the line of its report.
    pub fn add(&self, target: Target, waiting: WaitingPackage) {
        let report = target.inspection_id;
        let is_new = self.with(|state| {
            let is_new = !state.lines.contains_key(&report);
            if is_new {
                state.free.push_back(waiting.package.partner_id, report);
            }
            let line = state.lines.entry(report).or_default();
            line.waiting.push_back((target, waiting));
            is_new
        });
        if is_new {
            self.0.free.notify_one();
        }
    }

    /// Lets the tasks end when nothing is ready any more.
    pub fn close(&self) {
        self.with(|state| state.is_closed = true);
        // One permit each is kept for who does not wait yet; who ends passes it on.
        self.0.free.notify_one();
        self.0.in_turn.notify_one();
    }

    /// Waits for lines, and takes of them what goes into a transaction; `None` at the end.
    pub async fn next(&self, lock: Lock) -> Option<Taken> {
        let ready = self.notice(lock);
        loop {
            let (taken, is_more, is_closed) = self.take(lock);
            let is_empty = taken.batches.is_empty() && taken.twins.is_empty();
            if is_more || is_closed && is_empty {
                ready.notify_one();
            }
            if !is_empty {
                return Some(taken);
            }
            if is_closed {
                return None;
            }
            ready.notified().await;
        }
    }

    /// What goes into a transaction now; whether more is ready, and whether this is the end.
    fn take(&self, lock: Lock) -> (Taken, bool, bool) {
        let (taking, is_more, is_closed) = self.with(|state| {
            let taking = state.take(lock);
            (taking, !state.ready(lock).is_empty(), state.is_closed)
        });
        // Not under the lock, which the end of a taken line needs.
        let batches = taking.batches.into_iter().map(|(target, packages)| Batch {
            line: TakenLine {
                lines: self.clone(),
                report: target.inspection_id,
                next: Lock::Free,
            },
            target,
            packages,
        });
        let taken = Taken {
            batches: batches.collect(),
            twins: taking.twins,
        };
        (taken, is_more, is_closed)
    }
}

impl State {
    fn ready(&mut self, lock: Lock) -> &mut Turns<Uuid> {
        match lock {
            Lock::Free => &mut self.free,
            Lock::InTurn => &mut self.in_turn,
        }
    }

    /// What goes into a transaction: of one line, or of as many as make up a batch.
    fn take(&mut self, lock: Lock) -> Taking {
        let mut taking = Taking::default();
        while !taking.is_full()
            && (lock == Lock::Free || taking.batches.is_empty() && taking.twins.is_empty())
            && let Some(report) = self.ready(lock).next()
        {
            let Some(line) = self.lines.get_mut(&report) else {
                continue;
            };
            if !taking.take(line) {
                self.lines.remove(&report);
            }
        }
        taking
    }
}

impl Line {
    /// Whose turn it is when the line's comes: the first one's.
    fn partner_id(&self) -> Option<Uuid> {
        let (_, first) = self.waiting.front()?;
        Some(first.package.partner_id)
    }
}

/// What is being taken.
#[derive(Default)]
struct Taking {
    batches: Vec<(Target, Vec<WaitingPackage>)>,
    packages: usize,
    bytes: usize,
    external_ids: HashSet<(Uuid, String)>,
    twins: Vec<WaitingPackage>,
}

impl Taking {
    fn is_full(&self) -> bool {
        self.packages >= LARGEST_BATCH || self.bytes >= LARGEST_BYTES
    }

    /// Takes the next packages of a line that somebody waits for, of one target and each external id once; returns whether
    /// there were any.
    fn take(&mut self, line: &mut Line) -> bool {
        let (mut target, mut packages) = (None, Vec::new());
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
            packages.push(waiting);
        }
        let Some(target) = target else { return false };
        self.batches.push((target, packages));
        true
    }
}

#[cfg(test)]
mod tests;
