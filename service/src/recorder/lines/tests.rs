use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::oneshot;

use super::*;
use crate::recorder::Answer;
use crate::recorder::queue::tests::waiting;

fn report(number: usize) -> Uuid {
    Uuid::from_u128(number as u128)
}

/// A package of a partner in the line of a report; it is waited for as long as what this returns is there.
#[must_use]
fn add(lines: &Lines, partner: u128, number: usize) -> oneshot::Receiver<Answer> {
    let (waiting, outcome) = waiting(partner, &Uuid::now_v7().to_string());
    let target = Target {
        inspection_id: report(number),
        branch_id: Uuid::nil(),
        plate: String::new(),
    };
    lines.add(target, waiting);
    outcome
}

fn reports(taken: &Taken) -> Vec<Uuid> {
    taken.batches.iter().map(|batch| batch.target.inspection_id).collect()
}

#[tokio::test]
async fn one_partners_hundreds_of_reports_take_no_others_round() {
    let lines = Lines::default();
    let mut outcomes: Vec<_> = (0..5 * LARGEST_BATCH).map(|number| add(&lines, 1, number)).collect();
    outcomes.push(add(&lines, 2, 900));
    outcomes.push(add(&lines, 3, 901));
    let (round, ..) = lines.take(Lock::Free);
    let in_it = reports(&round);
    assert_eq!(in_it.len(), LARGEST_BATCH);
    assert!(
        in_it.contains(&report(900)) && in_it.contains(&report(901)),
        "{in_it:?}"
    );
    // So it is with lines that wait for their reports' locks.
    for batch in round.batches {
        batch.line.put_back(&batch.target, batch.packages);
        batch.line.go_on(Lock::InTurn);
    }
    let alone: Vec<Uuid> = (0..3).flat_map(|_| reports(&lines.take(Lock::InTurn).0)).collect();
    assert!(
        alone.contains(&report(900)) && alone.contains(&report(901)),
        "{alone:?}"
    );
}

#[tokio::test]
async fn where_one_partners_lines_crowd_the_turns_another_ones_still_gets_its_own() {
    let lines = Lines::default();
    let mut outcomes: Vec<_> = (0..2 * ALONE + 1).map(|number| add(&lines, 1, number)).collect();
    let all_are_locked = |taken: Taken| {
        for batch in taken.batches {
            batch.line.put_back(&batch.target, batch.packages);
            batch.line.go_on_after(2);
        }
    };
    all_are_locked(lines.take(Lock::Free).0);
    let one_too_many = lines.take(Lock::Free).0;
    assert_eq!(reports(&one_too_many), [report(2 * ALONE)]);
    outcomes.push(add(&lines, 2, 900));
    all_are_locked(lines.take(Lock::Free).0);
    let alone: Vec<Uuid> = (0..2).flat_map(|_| reports(&lines.take(Lock::InTurn).0)).collect();
    assert!(alone.contains(&report(900)), "{alone:?}");
}

#[tokio::test]
async fn after_a_panic_amid_a_round_each_of_its_lines_goes_on_once() {
    let lines = Lines::default();
    let mut outcomes = vec![add(&lines, 1, 1), add(&lines, 1, 2)];
    let (round, ..) = lines.take(Lock::Free);
    assert_eq!(reports(&round), [report(1), report(2)]);
    outcomes.extend([add(&lines, 1, 1), add(&lines, 1, 2)]);
    let mut elsewhere = Vec::new();
    let settling = catch_unwind(AssertUnwindSafe(|| {
        let mut rest = round.batches.into_iter();
        drop(rest.next());
        // What is settled may be with somebody else by the time of the panic.
        elsewhere.push(lines.take(Lock::Free).0);
        panic!("amid the round");
    }));
    assert!(settling.is_err());
    assert_eq!(reports(&elsewhere[0]), [report(1)]);
    outcomes.push(add(&lines, 1, 1));
    assert_eq!(
        reports(&lines.take(Lock::Free).0),
        [report(2)],
        "and nothing of what somebody has"
    );
    drop(elsewhere);
    assert_eq!(reports(&lines.take(Lock::Free).0), [report(1)]);
    assert!(reports(&lines.take(Lock::Free).0).is_empty());
}

#[tokio::test]
async fn a_line_that_nothing_has_come_for_is_gone() {
    let lines = Lines::default();
    let outcome = add(&lines, 1, 1);
    drop(lines.take(Lock::Free));
    assert!(lines.with(|state| state.lines.is_empty() && state.free.is_empty()));
    // So is one of which nobody waits for anything.
    drop((outcome, add(&lines, 1, 2)));
    assert!(reports(&lines.take(Lock::Free).0).is_empty());
    assert!(lines.with(|state| state.lines.is_empty() && state.free.is_empty()));
}
