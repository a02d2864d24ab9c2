//! Many at once: races between replicas, locks of others, hung backends, and what the database refuses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::join_all;
use partner_api::db::measurements::{Package, Status};
use partner_api::recorder::{Outcome, RecordError};
use partner_api_tests::stopped::Stopped;
use partner_api_tests::wait::in_time;
use uuid::Uuid;

use crate::world::{OPEN, PLATE, Recorder, World, grant, partner};

const VALUE: &[(&str, &str)] = &[("SLIP_FRONT", "1")];

/// Every answer is there within it (REQ-12).
const ANSWERED: Duration = Duration::from_secs(2);

/// MEA-10, SVC-3
#[tokio::test(flavor = "multi_thread")]
async fn of_100_at_once_with_one_external_id_over_two_replicas_one_is_recorded() {
    let world = World::new().await;
    let report = world.report(PLATE, OPEN, "1 hour", None).await;
    let replicas = [world.another_recorder(), world.another_recorder()];
    for (plate, applied) in [("06Z99", 0), (PLATE, 1)] {
        let packages = (0..100).map(|_| world.package(plate, Some(plate), VALUE));
        let submitted = packages
            .enumerate()
            .map(|(number, package)| replicas[number % 2].submit(package));
        let outcomes: Vec<Outcome> = join_all(submitted).await.into_iter().map(Result::unwrap).collect();
        let recorded = |outcome: &Outcome| match outcome {
            Outcome::Recorded { id, .. } => Some(*id),
            _ => None,
        };
        let ids: Vec<Uuid> = outcomes.iter().filter_map(recorded).collect();
        assert_eq!(ids.len(), 1, "{plate}");
        let replays = outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Outcome::Replayed(replay) if replay.id == ids[0] && replay.same_raw));
        assert_eq!(replays.count(), 99, "{plate}");
        assert_eq!(world.answers(report).await.len(), applied, "{plate}");
    }
    assert_eq!(world.count("SELECT count(*) FROM measurements").await, 2);
    assert_eq!(
        world.count("SELECT count(*) FROM inspection_form_answer_history").await,
        0
    );
}

#[tokio::test]
async fn reports_that_others_keep_locked_delay_their_own_packages_alone() {
    let world = World::new().await;
    // More than the recorder has connections.
    let mut locked = Vec::new();
    for number in 10..20 {
        let plate = format!("34ABC{number}");
        world.report(&plate, OPEN, "1 hour", None).await;
        locked.push(plate);
    }
    let free = world.report(PLATE, OPEN, "1 hour", None).await;
    let mut inspector = world.client().await;
    let editing = inspector.transaction().await.unwrap();
    let lock = "SELECT FROM inspections WHERE plate <> $1 FOR UPDATE";
    editing.execute(lock, &[&PLATE]).await.unwrap();
    let mut delayed = locked
        .iter()
        .map(|plate| world.recorder.submit(world.package(plate, None, VALUE)).boxed())
        .collect::<Vec<_>>();
    // Polled until one of them is at its lock.
    let at_the_lock = async {
        let all = join_all(&mut delayed);
        tokio::select! {
            outcomes = all => panic!("{outcomes:?}"),
            () = world.until_someone_waits() => {}
        }
    };
    at_the_lock.await;
    for _ in 0..5 {
        let waiting = world.submit(world.package("06Z99", None, VALUE)).await;
        assert!(matches!(waiting, Outcome::Recorded { applied: None, .. }));
        let (_, applied) = world.send(PLATE, VALUE).await;
        assert_eq!(applied.map(|(report, _)| report), Some(free));
    }
    for one in &mut delayed {
        assert!(one.now_or_never().is_none(), "the inspector has the report");
    }
    editing.rollback().await.unwrap();
    for outcome in join_all(delayed).await {
        assert!(
            matches!(outcome, Ok(Outcome::Recorded { applied: Some(_), .. })),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn a_report_that_stays_locked_is_answered_in_time_and_its_package_sent_again_is_there_once() {
    in_time(ANSWERED, async || {
        let world = World::new().await;
        world.report(PLATE, OPEN, "1 hour", None).await;
        let mut inspector = world.client().await;
        let editing = inspector.transaction().await.unwrap();
        editing
            .execute("SELECT FROM inspections FOR UPDATE", &[])
            .await
            .unwrap();
        let began = Instant::now();
        let outcome = world.recorder.submit(world.package(PLATE, Some("M-1"), VALUE)).await;
        let took = began.elapsed();
        assert!(matches!(outcome, Err(RecordError::Overdue)), "{outcome:?}");
        assert_eq!(world.count("SELECT count(*) FROM measurements").await, 0);
        editing.rollback().await.unwrap();
        // The last attempt may just have been at the lock: then it was recorded behind the answer.
        match world.submit(world.package(PLATE, Some("M-1"), VALUE)).await {
            Outcome::Recorded { applied: Some(_), .. } => {}
            Outcome::Replayed(replay) if replay.status == Status::Applied => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(
            world
                .count("SELECT count(*) FROM measurements WHERE status = 'APPLIED'")
                .await,
            1
        );
        assert_eq!(
            world.count("SELECT count(*) FROM inspection_form_answer_history").await,
            0
        );
        took
    })
    .await;
}

/// REQ-12
#[tokio::test]
async fn a_hung_backend_is_given_up_within_two_seconds_and_the_recorder_goes_on() {
    in_time(ANSWERED, async || {
        let world = World::new().await;
        let report = world.report(PLATE, OPEN, "1 hour", None).await;
        world.submit(world.package("06Z99", None, VALUE)).await;
        let mut took = Duration::ZERO;
        for (external_id, plate) in [("waits", "06Z99"), ("applied", PLATE)] {
            let stopped = Stopped::sessions(&**world.client().await, "application_name = 'partner-api'").await;
            let began = Instant::now();
            let outcome = world
                .recorder
                .submit(world.package(plate, Some(external_id), VALUE))
                .await;
            took = took.max(began.elapsed());
            assert!(matches!(&outcome, Err(error) if error.is_unavailable()), "{outcome:?}");
            // While it still hangs.
            let other = world.submit(world.package(plate, None, VALUE)).await;
            assert!(matches!(other, Outcome::Recorded { .. }), "{other:?}");
            drop(stopped);
            // What the backend did when it woke, it did once.
            world.submit(world.package(plate, Some(external_id), VALUE)).await;
            let sql = format!("SELECT count(*) FROM measurements WHERE external_id = '{external_id}'");
            assert_eq!(world.count(&sql).await, 1);
        }
        assert_eq!(world.answers(report).await.len(), 1);
        took
    })
    .await;
}

#[tokio::test]
async fn a_package_that_the_database_refuses_keeps_half_a_batch_from_being_recorded_at_most() {
    let world = World::new().await;
    let mut packages: Vec<Package> = (0..10).map(|_| world.package(PLATE, None, VALUE)).collect();
    // What the contract's own checks never let through.
    packages[9].key_id = "no\0text".into();
    let outcomes = join_all(packages.into_iter().map(|package| world.recorder.submit(package))).await;
    let recorded: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(recorded, [[true; 5], [false; 5]].concat());
    assert!(!outcomes[9].as_ref().unwrap_err().is_unavailable());
    assert_eq!(world.count("SELECT count(*) FROM measurements").await, 5);
}

/// SVC-3
#[tokio::test(flavor = "multi_thread")]
async fn a_mixed_storm_over_two_replicas_loses_nothing_and_doubles_nothing() {
    let world = World::new().await;
    let client = world.client().await;
    let mut partners = vec![world.partner];
    for name in ["second maker", "third maker"] {
        let partner = partner(&client, name).await;
        grant(&client, partner, world.branch.organization_id).await;
        partners.push(partner);
    }
    let plates: Vec<String> = (10..18).map(|number| format!("34ABC{number}")).collect();
    for plate in &plates[..4] {
        world.report(plate, OPEN, "1 hour", None).await;
    }
    let replicas = [world.another_recorder(), world.another_recorder()];
    // Each external id three times: twice the same bytes, once others, wherever they arrive first.
    let mut packages = Vec::new();
    for number in 0..360_usize {
        let external_id = format!("M-{}", number % 120);
        let value = (number % 240).to_string();
        let values = [("SLIP_FRONT", value.as_str()), ("DYNO_MEASURED_HP", value.as_str())];
        packages.push(Package {
            partner_id: partners[number % 3],
            raw: format!("{external_id} {value}").into(),
            ..world.package(&plates[number % 8], Some(&external_id), &values)
        });
    }
    let unanswered = AtomicUsize::new(0);
    let submit = async |number: usize, package: &Package| -> Outcome {
        let recorder: &Recorder = &replicas[number % 2];
        loop {
            let mut package = package.clone();
            package.id = Uuid::now_v7();
            match recorder.submit(package).await {
                Ok(outcome) => return outcome,
                Err(error) => {
                    assert!(error.is_unavailable(), "{error}");
                    unanswered.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    };
    let inspectors = async {
        // One report goes to review while values come, and others are held for a moment.
        let client = world.client().await;
        let publish = "UPDATE inspections SET status = 'IN_REVIEW' WHERE plate = $1";
        client.execute(publish, &[&plates[0]]).await.unwrap();
        for plate in &plates[1..4] {
            let hold = format!("SELECT pg_sleep(0.05) FROM inspections WHERE plate = '{plate}' FOR UPDATE");
            client.batch_execute(&hold).await.unwrap();
        }
    };
    let submitted = packages
        .iter()
        .enumerate()
        .map(|(number, package)| submit(number, package));
    let (outcomes, ()) = futures::join!(join_all(submitted), inspectors);

    let mut records: BTreeMap<(Uuid, &str), Uuid> = BTreeMap::new();
    let mut recorded = 0;
    for (package, outcome) in packages.iter().zip(&outcomes) {
        let id = match outcome {
            Outcome::Recorded { id, .. } => {
                recorded += 1;
                *id
            }
            Outcome::Replayed(replay) => replay.id,
            other => panic!("{other:?}"),
        };
        let key = (package.partner_id, package.external_id.as_deref().unwrap());
        assert_eq!(*records.entry(key).or_insert(id), id, "one id, one record");
    }
    assert_eq!(records.len(), 120);
    // Each record was told once that it is new, unless that answer was late.
    assert!(
        (120 - unanswered.into_inner().min(120)..=120).contains(&recorded),
        "{recorded}"
    );
    assert_eq!(world.count("SELECT count(*) FROM measurements").await, 120);
    let kept = client
        .query(
            "SELECT raw FROM measurements UNION ALL SELECT raw FROM measurement_mismatches",
            &[],
        )
        .await
        .unwrap();
    let bytes: Vec<Vec<u8>> = kept.iter().map(|row| row.get(0)).collect();
    let sent: BTreeSet<Vec<u8>> = packages.iter().map(|package| package.raw.to_vec()).collect();
    assert_eq!(bytes.len(), sent.len(), "the very same bytes are kept once");
    assert_eq!(bytes.into_iter().collect::<BTreeSet<_>>(), sent);
    // Each applied value is in its report or in the history, once.
    let values = "SELECT (SELECT count(*) FROM inspection_form_answers) +
                         (SELECT count(*) FROM inspection_form_answer_history) -
                         (SELECT coalesce(sum(cardinality(array_positions(point_outcomes, 'applied'))), 0)::bigint
                          FROM measurements)";
    assert_eq!(world.count(values).await, 0);
    assert!(
        world
            .count("SELECT count(*) FROM measurements WHERE status = 'APPLIED'")
            .await
            > 30
    );
}
