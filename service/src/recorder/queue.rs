//! The queue of packages that wait for the next batch. Partners are served in turn.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::WaitingPackage;
use super::fair_queue::FairQueue;

/// The maximum number of packages in a batch. Beyond it, a statement gains little and the first package waits for the last.
pub(super) const MAX_BATCH: usize = 64;

/// The number of raw bytes at which a batch is full.
pub(super) const MAX_BATCH_BYTES: usize = 4 * 1024 * 1024;

/// The number of packages from which a batch indicates high load. After it, the next batch is delayed by [`GATHER_DELAY`] to
/// collect more packages: a flush for every few of them would cost more time than the delay.
pub(super) const BUSY_BATCH: usize = 8;
/// The delay of the next batch under high load.
pub(super) const GATHER_DELAY: Duration = Duration::from_millis(1);

/// The packages that wait for their first batch. The recorder's budget bounds them.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Default)]
struct State {
    waiting: FairQueue<WaitingPackage>,
    is_closed: bool,
}

impl Queue {
    /// Adds a package behind the partner's other packages.
    pub fn push(&self, waiting: WaitingPackage) {
        self.with(|state| state.waiting.push_back(waiting.package.partner_id, waiting));
        self.arrived.notify_one();
    }

    /// Puts packages back before the partners' other packages, in their order.
    pub fn requeue(&self, packages: Vec<WaitingPackage>) {
        self.with(|state| {
            for waiting in packages.into_iter().rev() {
                state.waiting.push_front(waiting.package.partner_id, waiting);
            }
        });
        self.arrived.notify_one();
    }

    /// Returns the number of packages.
    pub fn len(&self) -> usize {
        self.with(|state| state.waiting.len())
    }

    /// Makes [`Queue::is_filled`] return false once the queue is empty.
    pub fn close(&self) {
        self.with(|state| state.is_closed = true);
        self.arrived.notify_one();
    }

    /// Waits until there are packages. Returns false if the queue is closed and empty.
    pub async fn is_filled(&self) -> bool {
        loop {
            let (is_filled, is_closed) = self.with(|state| (!state.waiting.is_empty(), state.is_closed));
            if is_filled || is_closed {
                return is_filled;
            }
            self.arrived.notified().await;
        }
    }

    /// Removes and returns the packages of the next batch, without those that are no longer wanted.
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
        while batch.len() < MAX_BATCH && bytes < MAX_BATCH_BYTES {
            let Some(next) = self.waiting.pop() else {
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
    use crate::recorder::SubmitResult;
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

    pub fn waiting(partner: u128, external_id: &str) -> (WaitingPackage, oneshot::Receiver<SubmitResult>) {
        let (reply, result) = oneshot::channel();
        let package = package(Uuid::from_u128(partner), external_id);
        let reservation = Arc::<Budget>::default().reserve(&package).expect("capacity");
        let waiting = WaitingPackage {
            package,
            reply,
            deadline: Deadline::begin(),
            _reservation: reservation,
        };
        (waiting, result)
    }

    fn names(batch: &[WaitingPackage]) -> Vec<&str> {
        batch
            .iter()
            .filter_map(|waiting| waiting.package.external_id.as_deref())
            .collect()
    }

    #[tokio::test]
    async fn partners_are_served_in_turn_and_each_partners_packages_keep_their_order() {
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
        queue.requeue(batch);
        let batch = queue.take();
        assert_eq!(
            names(&batch),
            ["a1", "b1", "c1", "a2", "b2", "a3", "a4"],
            "before packages that arrived later"
        );
        queue.close();
        assert!(!queue.is_filled().await);
    }

    #[tokio::test]
    async fn a_flood_of_one_partner_does_not_delay_another() {
        let queue = Queue::default();
        let mut outcomes = Vec::new();
        for _ in 0..3 * MAX_BATCH {
            let (waiting, outcome) = waiting(1, "flood");
            queue.push(waiting);
            outcomes.push(outcome);
        }
        let (single, _outcome) = waiting(2, "single");
        queue.push(single);
        assert_eq!(queue.len(), 3 * MAX_BATCH + 1);
        let batch = queue.take();
        assert_eq!(batch.len(), MAX_BATCH);
        assert_eq!(names(&batch)[..3], ["flood", "single", "flood"]);
    }

    #[tokio::test]
    async fn a_batch_is_full_at_its_number_of_bytes() {
        let queue = Queue::default();
        let mut outcomes = Vec::new();
        for name in ["first", "second", "third"] {
            let (mut waiting, outcome) = waiting(1, name);
            waiting.package.raw = vec![0; MAX_BATCH_BYTES / 2].into();
            queue.push(waiting);
            outcomes.push(outcome);
        }
        assert_eq!(names(&queue.take()), ["first", "second"]);
    }

    #[tokio::test]
    async fn a_closed_queue_is_filled_until_its_last_package_is_taken() {
        let queue = Queue::default();
        let (last, _outcome) = waiting(1, "last");
        queue.push(last);
        queue.close();
        assert!(queue.is_filled().await);
        queue.take();
        assert!(!queue.is_filled().await);
    }

    #[tokio::test]
    async fn a_package_that_is_no_longer_wanted_is_not_recorded() {
        let queue = Queue::default();
        let (gone, outcome) = waiting(1, "gone");
        let (here, _outcome) = waiting(1, "here");
        queue.push(gone);
        queue.push(here);
        drop(outcome);
        assert_eq!(names(&queue.take()), ["here"]);
    }
}
