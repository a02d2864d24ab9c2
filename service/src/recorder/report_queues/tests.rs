use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::oneshot;

use super::*;
use crate::recorder::SubmitResult;
use crate::recorder::queue::tests::waiting;

fn report(number: usize) -> Uuid {
    Uuid::from_u128(number as u128)
}

/// Adds a partner's package to the queue of a report. The package is wanted until the returned receiver is dropped.
#[must_use]
fn add(queues: &ReportQueues, partner: u128, number: usize) -> oneshot::Receiver<SubmitResult> {
    let (waiting, outcome) = waiting(partner, &Uuid::now_v7().to_string());
    let target = Target {
        inspection_id: report(number),
        organization_id: Uuid::nil(),
        branch_id: Uuid::nil(),
        plate: String::new(),
    };
    queues.add(target, waiting);
    outcome
}

fn reports(checkout: &Checkout) -> Vec<Uuid> {
    checkout
        .batches
        .iter()
        .map(|batch| batch.target.inspection_id)
        .collect()
}

#[tokio::test]
async fn a_partner_with_hundreds_of_reports_does_not_delay_other_partners() {
    let queues = ReportQueues::default();
    let mut outcomes: Vec<_> = (0..5 * MAX_BATCH).map(|number| add(&queues, 1, number)).collect();
    outcomes.push(add(&queues, 2, 900));
    outcomes.push(add(&queues, 3, 901));
    let (shared, ..) = queues.check_out(Lock::SkipLocked);
    let selected = reports(&shared);
    assert_eq!(selected.len(), MAX_BATCH);
    assert!(
        selected.contains(&report(900)) && selected.contains(&report(901)),
        "{selected:?}"
    );
    // The same holds for queues that wait for the locks of their reports.
    for batch in shared.batches {
        batch.queue.put_back(&batch.target, batch.packages);
        batch.queue.requeue(Lock::Wait);
    }
    let single: Vec<Uuid> = (0..3).flat_map(|_| reports(&queues.check_out(Lock::Wait).0)).collect();
    assert_eq!(single.len(), 3, "a separate transaction has one report");
    assert!(
        single.contains(&report(900)) && single.contains(&report(901)),
        "{single:?}"
    );
}

#[tokio::test]
async fn a_partner_with_many_locked_reports_does_not_keep_another_from_waiting_for_a_lock() {
    let queues = ReportQueues::default();
    let mut outcomes: Vec<_> = (0..2 * SINGLE_WORKERS + 1)
        .map(|number| add(&queues, 1, number))
        .collect();
    let find_all_locked = |checkout: Checkout| {
        for batch in checkout.batches {
            batch.queue.put_back(&batch.target, batch.packages);
            batch.queue.requeue_locked(2);
        }
    };
    find_all_locked(queues.check_out(Lock::SkipLocked).0);
    let beyond_the_limit = queues.check_out(Lock::SkipLocked).0;
    assert_eq!(reports(&beyond_the_limit), [report(2 * SINGLE_WORKERS)]);
    outcomes.push(add(&queues, 2, 900));
    find_all_locked(queues.check_out(Lock::SkipLocked).0);
    let single: Vec<Uuid> = (0..2).flat_map(|_| reports(&queues.check_out(Lock::Wait).0)).collect();
    assert!(single.contains(&report(900)), "{single:?}");
}

#[tokio::test]
async fn after_a_panic_during_a_transaction_each_of_its_queues_is_ready_once() {
    let queues = ReportQueues::default();
    let mut outcomes = vec![add(&queues, 1, 1), add(&queues, 1, 2)];
    let (shared, ..) = queues.check_out(Lock::SkipLocked);
    assert_eq!(reports(&shared), [report(1), report(2)]);
    outcomes.extend([add(&queues, 1, 1), add(&queues, 1, 2)]);
    let mut elsewhere = Vec::new();
    let finishing = catch_unwind(AssertUnwindSafe(|| {
        let mut rest = shared.batches.into_iter();
        drop(rest.next());
        // A queue that is ready again may be checked out by another worker before the panic.
        elsewhere.push(queues.check_out(Lock::SkipLocked).0);
        panic!("during the transaction");
    }));
    assert!(finishing.is_err());
    assert_eq!(reports(&elsewhere[0]), [report(1)]);
    outcomes.push(add(&queues, 1, 1));
    assert_eq!(
        reports(&queues.check_out(Lock::SkipLocked).0),
        [report(2)],
        "without the queue that is checked out"
    );
    drop(elsewhere);
    assert_eq!(reports(&queues.check_out(Lock::SkipLocked).0), [report(1)]);
    assert!(reports(&queues.check_out(Lock::SkipLocked).0).is_empty());
}

#[tokio::test]
async fn an_empty_queue_is_removed() {
    let queues = ReportQueues::default();
    let outcome = add(&queues, 1, 1);
    drop(queues.check_out(Lock::SkipLocked));
    assert!(queues.with(|state| state.queues.is_empty() && state.shared.is_empty()));
    // A queue is also removed if none of its packages is wanted any more.
    drop((outcome, add(&queues, 1, 2)));
    assert!(reports(&queues.check_out(Lock::SkipLocked).0).is_empty());
    assert!(queues.with(|state| state.queues.is_empty() && state.shared.is_empty()));
}

#[tokio::test]
async fn a_batch_has_packages_for_one_target_up_to_a_number_of_bytes() {
    let queues = ReportQueues::default();
    let mut outcomes = Vec::new();
    for (plate, size) in [
        ("a", 1),
        ("b", MAX_BATCH_BYTES / 2),
        ("b", MAX_BATCH_BYTES / 2),
        ("b", 1),
    ] {
        let (mut waiting, outcome) = waiting(1, &Uuid::now_v7().to_string());
        waiting.package.raw = vec![0; size].into();
        let target = Target {
            inspection_id: report(1),
            organization_id: Uuid::nil(),
            branch_id: Uuid::nil(),
            plate: plate.to_owned(),
        };
        queues.add(target, waiting);
        outcomes.push(outcome);
    }
    assert_eq!(queues.len(), 1);
    let sizes = || {
        queues
            .check_out(Lock::SkipLocked)
            .0
            .batches
            .iter()
            .map(|batch| batch.packages.len())
            .collect::<Vec<_>>()
    };
    assert_eq!([sizes(), sizes(), sizes()], [[1], [2], [1]]);
    assert_eq!(queues.len(), 0);
}

#[tokio::test]
async fn a_queue_counts_its_attempts_and_hands_over_what_arrived_since_its_checkout() {
    let queues = ReportQueues::default();
    let _outcome = add(&queues, 1, 1);
    let (checkout, ..) = queues.check_out(Lock::SkipLocked);
    let _later = add(&queues, 1, 1);
    let queue = &checkout.batches[0].queue;
    assert_eq!((queue.count_locked_attempt(), queue.count_locked_attempt()), (1, 2));
    queue.reset_locked_attempts();
    assert_eq!(queue.count_locked_attempt(), 1);
    assert_eq!((queue.drain().len(), queue.drain().len()), (1, 0));
}

#[tokio::test]
async fn after_the_queues_are_closed_the_workers_end_with_the_last_queue() {
    let queues = ReportQueues::default();
    let _outcome = add(&queues, 1, 1);
    let workers = async {
        tokio::join!(queues.next(Lock::Wait), queues.next(Lock::Wait));
    };
    tokio::join!(workers, async { queues.close() });
    assert_eq!(
        queues.next(Lock::SkipLocked).await.map(|checkout| reports(&checkout)),
        Some(vec![report(1)])
    );
    assert!(queues.next(Lock::SkipLocked).await.is_none());
}
