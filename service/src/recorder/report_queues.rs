//! One queue of packages per open report, and which queues are ready to be processed.
//!
//! A queue is either ready, or checked out by a worker that holds a [`QueueGuard`]. Only a checkout creates a guard, and dropping
//! the guard makes the queue ready again, even after a panic. So no queue is in two transactions at a time, its packages keep
//! their order, and no queue is lost.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use partner_api_store::measurements::{Lock, Target};
use tokio::sync::Notify;
use uuid::Uuid;

use super::WaitingPackage;
use super::fair_queue::FairQueue;
use super::queue::{MAX_BATCH, MAX_BATCH_BYTES};
use super::workers::SINGLE_WORKERS;

/// The queues of open reports.
#[derive(Clone, Default)]
pub(super) struct ReportQueues(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when `State::shared` has a queue.
    shared: Notify,
    /// Notified when `State::single` has a queue.
    single: Notify,
}

#[derive(Default)]
struct State {
    queues: HashMap<Uuid, ReportQueue>,
    /// Reports whose queues are ready for a shared transaction. Partners are served in turn, however many open reports each has.
    shared: FairQueue<Uuid>,
    /// Reports whose queues are ready for a separate transaction.
    single: FairQueue<Uuid>,
    is_closed: bool,
}

/// The packages for one report.
#[derive(Default)]
struct ReportQueue {
    /// Each package with the target (report, branch and plate) that was found for it. A report's branch or plate can change between
    /// two packages.
    waiting: VecDeque<(Target, WaitingPackage)>,
    /// The number of consecutive attempts that found the report locked.
    locked_attempts: u32,
}

/// A queue that is checked out. Dropping it makes the queue ready again, or removes it if it is empty.
pub(super) struct QueueGuard {
    queues: ReportQueues,
    report: Uuid,
    next: Lock,
}

impl QueueGuard {
    /// Puts packages that were not processed back to the front of the queue.
    pub fn put_back(&self, target: &Target, packages: Vec<WaitingPackage>) {
        self.with(|queue| {
            for waiting in packages.into_iter().rev() {
                queue.waiting.push_front((target.clone(), waiting));
            }
        });
    }

    /// Removes and returns the packages that arrived since the checkout.
    pub fn drain(&self) -> Vec<WaitingPackage> {
        self.with(|queue| queue.waiting.drain(..).map(|(_, waiting)| waiting).collect())
    }

    /// Counts an attempt that found the report locked; returns the number of consecutive ones.
    pub fn count_locked_attempt(&self) -> u32 {
        self.with(|queue| {
            queue.locked_attempts += 1;
            queue.locked_attempts
        })
    }

    /// Resets the count of consecutive attempts that found the report locked.
    pub fn reset_locked_attempts(&self) {
        self.with(|queue| queue.locked_attempts = 0);
    }

    /// Makes the queue ready again after `locked_attempts` consecutive attempts that found the report locked. Every second
    /// attempt waits for the lock in its own transaction. If too many queues wait for that already, the attempt shares a
    /// transaction instead, unless the partner has no other queue among them.
    pub fn requeue_locked(self, locked_attempts: u32) {
        let is_single_queue_full = self.queues.with(|state| {
            let partner_id = state.queues.get(&self.report).and_then(ReportQueue::partner_id);
            state.single.len() >= 2 * SINGLE_WORKERS
                && partner_id.is_some_and(|partner_id| state.single.has_partner(partner_id))
        });
        let next = match locked_attempts.is_multiple_of(2) && !is_single_queue_full {
            true => Lock::Wait,
            false => Lock::SkipLocked,
        };
        self.requeue(next);
    }

    /// Makes the queue ready for the given kind of transaction. A guard that is only dropped makes it ready for a shared one.
    pub fn requeue(mut self, next: Lock) {
        self.next = next;
    }

    fn with<T>(&self, work: impl FnOnce(&mut ReportQueue) -> T) -> T {
        self.queues
            .with(|state| work(state.queues.entry(self.report).or_default()))
    }
}

impl Drop for QueueGuard {
    fn drop(&mut self) {
        let is_ready = self.queues.with(|state| {
            let partner_id = state.queues.get(&self.report).and_then(ReportQueue::partner_id);
            match partner_id {
                Some(partner_id) => state.ready(self.next).push_back(partner_id, self.report),
                None => drop(state.queues.remove(&self.report)),
            }
            partner_id.is_some()
        });
        if is_ready {
            self.queues.notify(self.next).notify_one();
        }
    }
}

/// The packages of one report that go into a transaction.
pub(super) struct Batch {
    pub queue: QueueGuard,
    pub target: Target,
    pub packages: Vec<WaitingPackage>,
}

/// The work of one transaction.
pub(super) struct Checkout {
    pub batches: Vec<Batch>,
    /// Packages with the same external ID as a package of the batches. They are processed after it.
    pub duplicates: Vec<WaitingPackage>,
}

impl ReportQueues {
    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn notify(&self, lock: Lock) -> &Notify {
        match lock {
            Lock::SkipLocked => &self.0.shared,
            Lock::Wait => &self.0.single,
        }
    }

    /// Returns the number of reports with a queue.
    pub fn len(&self) -> usize {
        self.with(|state| state.queues.len())
    }

    /// Adds a package to the queue of its report.
    pub fn add(&self, target: Target, waiting: WaitingPackage) {
        let report = target.inspection_id;
        let is_new = self.with(|state| {
            let is_new = !state.queues.contains_key(&report);
            if is_new {
                state.shared.push_back(waiting.package.partner_id, report);
            }
            let queue = state.queues.entry(report).or_default();
            queue.waiting.push_back((target, waiting));
            is_new
        });
        if is_new {
            self.0.shared.notify_one();
        }
    }

    /// Makes the workers end once no queue is ready.
    pub fn close(&self) {
        self.with(|state| state.is_closed = true);
        // Each Notify keeps one permit for a worker that does not wait yet; a worker that ends passes it on.
        self.0.shared.notify_one();
        self.0.single.notify_one();
    }

    /// Waits for ready queues and checks out the work of one transaction. Returns `None` after [`close`](Self::close).
    pub async fn next(&self, lock: Lock) -> Option<Checkout> {
        let ready = self.notify(lock);
        loop {
            let (checkout, is_more, is_closed) = self.check_out(lock);
            let is_empty = checkout.batches.is_empty() && checkout.duplicates.is_empty();
            if is_more || is_closed && is_empty {
                ready.notify_one();
            }
            if !is_empty {
                return Some(checkout);
            }
            if is_closed {
                return None;
            }
            ready.notified().await;
        }
    }

    /// Checks out the work of one transaction. Also returns whether more is ready, and whether the queues are closed.
    fn check_out(&self, lock: Lock) -> (Checkout, bool, bool) {
        let (selection, is_more, is_closed) = self.with(|state| {
            let selection = state.select(lock);
            (selection, !state.ready(lock).is_empty(), state.is_closed)
        });
        // Guards are created outside the lock, because dropping one takes it.
        let batches = selection.batches.into_iter().map(|(target, packages)| Batch {
            queue: QueueGuard {
                queues: self.clone(),
                report: target.inspection_id,
                next: Lock::SkipLocked,
            },
            target,
            packages,
        });
        let checkout = Checkout {
            batches: batches.collect(),
            duplicates: selection.duplicates,
        };
        (checkout, is_more, is_closed)
    }
}

impl State {
    fn ready(&mut self, lock: Lock) -> &mut FairQueue<Uuid> {
        match lock {
            Lock::SkipLocked => &mut self.shared,
            Lock::Wait => &mut self.single,
        }
    }

    /// Selects the work of one transaction: from one queue, or from as many as fill a shared transaction.
    fn select(&mut self, lock: Lock) -> Selection {
        let mut selection = Selection::default();
        while !selection.is_full()
            && (lock == Lock::SkipLocked || selection.batches.is_empty() && selection.duplicates.is_empty())
            && let Some(report) = self.ready(lock).pop()
        {
            let Some(queue) = self.queues.get_mut(&report) else {
                continue;
            };
            if !selection.add_from(queue) {
                self.queues.remove(&report);
            }
        }
        selection
    }
}

impl ReportQueue {
    /// Returns the partner of the first package, which decides when the queue is served.
    fn partner_id(&self) -> Option<Uuid> {
        let (_, first) = self.waiting.front()?;
        Some(first.package.partner_id)
    }
}

/// The packages selected for one transaction.
#[derive(Default)]
struct Selection {
    batches: Vec<(Target, Vec<WaitingPackage>)>,
    packages: usize,
    bytes: usize,
    external_ids: HashSet<(Uuid, String)>,
    duplicates: Vec<WaitingPackage>,
}

impl Selection {
    fn is_full(&self) -> bool {
        self.packages >= MAX_BATCH || self.bytes >= MAX_BATCH_BYTES
    }

    /// Adds the next packages of a queue that are still wanted, with one target and without repeated external IDs. Returns
    /// whether there were any.
    fn add_from(&mut self, queue: &mut ReportQueue) -> bool {
        let (mut target, mut packages) = (None, Vec::new());
        while !self.is_full()
            && let Some((next, waiting)) = queue.waiting.pop_front()
        {
            if target.as_ref().is_some_and(|target| *target != next) {
                queue.waiting.push_front((next, waiting));
                break;
            }
            let package = &waiting.package;
            let is_duplicate = match &package.external_id {
                _ if !waiting.is_wanted() => continue,
                Some(external_id) => !self.external_ids.insert((package.partner_id, external_id.clone())),
                None => false,
            };
            if is_duplicate {
                self.duplicates.push(waiting);
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
