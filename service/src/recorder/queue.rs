//! What waits for the next batch: each partner's packages in their order, partners in turns.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::WaitingPackage;
use super::turns::Turns;

/// The most packages in a batch: beyond it a statement gains little and its first package waits for the last.
pub(super) const LARGEST_BATCH: usize = 64;

/// Raw bytes after which nothing more is put into a batch.
pub(super) const LARGEST_BYTES: usize = 4 * 1024 * 1024;

/// The size of a batch from which on more packages are surely under way; the next batch waits for them: a flush for each
/// handful of a crowd would cost all of them more than that moment.
pub(super) const CROWD: usize = 8;
/// How long it waits for them.
pub(super) const GATHER: Duration = Duration::from_millis(1);

/// Packages that no statement has looked at yet. Bounded by the budget of the recorder.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Default)]
struct State {
    turns: Turns<WaitingPackage>,
    is_closed: bool,
}

impl Queue {
    /// Adds a package at the end of its partner's.
    pub fn push(&self, waiting: WaitingPackage) {
        self.with(|state| state.turns.push_back(waiting.package.partner_id, waiting));
        self.arrived.notify_one();
    }

    /// Adds packages that had their turn before, in their order, in front.
    pub fn again(&self, again: Vec<WaitingPackage>) {
        self.with(|state| {
            for waiting in again.into_iter().rev() {
                state.turns.push_front(waiting.package.partner_id, waiting);
            }
        });
        self.arrived.notify_one();
    }

    /// How many packages wait.
    pub fn len(&self) -> usize {
        self.with(|state| state.turns.len())
    }

    /// Lets [`Queue::is_filled`] end when nothing waits any more.
    pub fn close(&self) {
        self.with(|state| state.is_closed = true);
        self.arrived.notify_one();
    }

    /// Waits until there are packages; false at the end.
    pub async fn is_filled(&self) -> bool {
        loop {
            let (is_filled, is_closed) = self.with(|state| (!state.turns.is_empty(), state.is_closed));
            if is_filled || is_closed {
                return is_filled;
            }
            self.arrived.notified().await;
        }
    }

    /// Takes as many packages as go into a batch, without those that nobody waits for.
    pub fn take(&self) -> Vec<WaitingPackage> {
        self.with(State::take)
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn take(&mut self) -> Vec<WaitingPackage> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < LARGEST_BATCH && bytes < LARGEST_BYTES {
            let Some(next) = self.turns.next() else {
                break;
            };
            if next.is_wanted() {
                bytes += next.package.raw.len();
                batch.push(next);
            }
        }
        batch
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use partner_api_domain::plate::Plate;
    use partner_api_store::deadline::Deadline;
    use partner_api_store::measurements::Package;
    use tokio::sync::oneshot;
    use uuid::Uuid;

    use super::*;
    use crate::recorder::Answer;
    use crate::recorder::budget::Budget;

    pub fn package(partner_id: Uuid, external_id: &str) -> Package {
        Package {
            id: Uuid::now_v7(),
            partner_id,
            key_id: String::new(),
            branch_code: String::new(),
            plate: Plate::parse("34 ABC 123").expect("a plate"),
            external_id: Some(external_id.to_owned()),
            device_serial: None,
            measured_at: None,
            raw: bytes::Bytes::new(),
            points: vec![],
        }
    }

    pub fn waiting(partner: u128, external_id: &str) -> (WaitingPackage, oneshot::Receiver<Answer>) {
        let (answer, outcome) = oneshot::channel();
        let package = package(Uuid::from_u128(partner), external_id);
        let held = Arc::<Budget>::default().hold(&package).expect("room");
        let waiting = WaitingPackage {
            package,
            answer,
            deadline: Deadline::begin(),
            _held: held,
        };
        (waiting, outcome)
    }

    fn names(batch: &[WaitingPackage]) -> Vec<&str> {
        batch
            .iter()
            .filter_map(|waiting| waiting.package.external_id.as_deref())
            .collect()
    }

    #[tokio::test]
    async fn partners_take_turns_and_each_ones_packages_keep_their_order() {
        let queue = Queue::default();
        let mut outcomes = Vec::new();
        for (partner, name) in [(1, "a1"), (1, "a2"), (1, "a3"), (2, "b1"), (3, "c1"), (2, "b2")] {
            let (waiting, outcome) = waiting(partner, name);
            queue.push(waiting);
            outcomes.push(outcome);
        }
        let batch = queue.take();
        assert_eq!(names(&batch), ["a1", "b1", "c1", "a2", "b2", "a3"]);
        let (late, _outcome) = waiting(1, "a4");
        queue.push(late);
        queue.again(batch);
        let batch = queue.take();
        assert_eq!(
            names(&batch),
            ["a1", "b1", "c1", "a2", "b2", "a3", "a4"],
            "in front of what came later"
        );
        queue.close();
        assert!(!queue.is_filled().await);
    }

    #[tokio::test]
    async fn one_partners_flood_takes_no_others_turn() {
        let queue = Queue::default();
        let mut outcomes = Vec::new();
        for _ in 0..3 * LARGEST_BATCH {
            let (waiting, outcome) = waiting(1, "flood");
            queue.push(waiting);
            outcomes.push(outcome);
        }
        let (single, _outcome) = waiting(2, "single");
        queue.push(single);
        let batch = queue.take();
        assert_eq!(batch.len(), LARGEST_BATCH);
        assert_eq!(names(&batch)[..3], ["flood", "single", "flood"]);
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_not_recorded() {
        let queue = Queue::default();
        let (gone, outcome) = waiting(1, "gone");
        let (here, _outcome) = waiting(1, "here");
        queue.push(gone);
        queue.push(here);
        drop(outcome);
        assert_eq!(names(&queue.take()), ["here"]);
    }
}
