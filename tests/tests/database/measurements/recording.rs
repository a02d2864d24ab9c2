//! Concurrent recording: races between replicas, locked reports, hung backends, and rejected rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::join_all;
use partner_api::recorder::{Outcome, RecordError};
use partner_api_store::measurements::{Package, Status};
use partner_api_tests::suspended_processes::SuspendedProcesses;
use partner_api_tests::wait::in_time;
use uuid::Uuid;

use super::{MeasurementSetup, OPEN, PLATE, Recorder};

const VALUE: &[(&str, &str)] = &[("SLIP_FRONT", "1")];

/// The maximum time to an outcome (REQ-12).
const BOUND: Duration = Duration::from_secs(2);

#[tokio::test]
async fn locked_reports_delay_only_their_own_packages() {
    let setup = MeasurementSetup::new().await;
    // More packages than the recorder has connections.
    let mut locked = Vec::new();
    for number in 10..20 {
        let plate = format!("34ABC{number}");
        setup.report(&plate, OPEN, "1 hour", None).await;
        locked.push(plate);
    }
    let free = setup.report(PLATE, OPEN, "1 hour", None).await;
    let mut inspector = setup.client().await;
    let editing = inspector.transaction().await.unwrap();
    let lock = "SELECT FROM inspections WHERE plate <> $1 FOR UPDATE";
    editing.execute(lock, &[&PLATE]).await.unwrap();
    let mut delayed = locked
        .iter()
        .map(|plate| setup.recorder.submit(setup.package(plate, None, VALUE)).boxed())
        .collect::<Vec<_>>();
    // Polled until one of them waits for its lock.
    let at_the_lock = async {
        let all = join_all(&mut delayed);
        tokio::select! {
            outcomes = all => panic!("{outcomes:?}"),
            () = setup.until_lock_wait() => {}
        }
    };
    at_the_lock.await;
    for _ in 0..5 {
        let waiting = setup.submit(setup.package("06Z99", None, VALUE)).await;
        assert!(matches!(waiting, Outcome::Recorded { applied: None, .. }));
        let (_, applied) = setup.send(PLATE, VALUE).await;
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
async fn a_package_for_a_report_that_stays_locked_gets_a_response_in_time_and_is_recorded_once() {
    in_time(BOUND, async || {
        let setup = MeasurementSetup::new().await;
        setup.report(PLATE, OPEN, "1 hour", None).await;
        let mut inspector = setup.client().await;
        let editing = inspector.transaction().await.unwrap();
        editing
            .execute("SELECT FROM inspections FOR UPDATE", &[])
            .await
            .unwrap();
        let began = Instant::now();
        let outcome = setup.recorder.submit(setup.package(PLATE, Some("M-1"), VALUE)).await;
        let took = began.elapsed();
        assert!(matches!(outcome, Err(RecordError::Overdue)), "{outcome:?}");
        assert_eq!(setup.count("SELECT count(*) FROM measurements").await, 0);
        editing.rollback().await.unwrap();
        // The last attempt may have been waiting for the lock; then the package was recorded after the response.
        match setup.submit(setup.package(PLATE, Some("M-1"), VALUE)).await {
            Outcome::Recorded { applied: Some(_), .. } => {}
            Outcome::Replayed(replay) if replay.status == Status::Applied => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(
            setup
                .count("SELECT count(*) FROM measurements WHERE status = 'APPLIED'")
                .await,
            1
        );
        assert_eq!(
            setup.count("SELECT count(*) FROM inspection_form_answer_history").await,
            0
        );
        took
    })
    .await;
}

/// REQ-12
#[tokio::test]
async fn a_hung_backend_is_abandoned_within_two_seconds_and_the_recorder_continues() {
    in_time(BOUND, async || {
        let setup = MeasurementSetup::new().await;
        let report = setup.report(PLATE, OPEN, "1 hour", None).await;
        setup.submit(setup.package("06Z99", None, VALUE)).await;
        let mut took = Duration::ZERO;
        for (external_id, plate) in [("waits", "06Z99"), ("applied", PLATE)] {
            let stopped =
                SuspendedProcesses::sessions(&**setup.client().await, "application_name = 'partner-api'").await;
            let began = Instant::now();
            let outcome = setup
                .recorder
                .submit(setup.package(plate, Some(external_id), VALUE))
                .await;
            took = took.max(began.elapsed());
            assert!(matches!(&outcome, Err(error) if error.is_unavailable()), "{outcome:?}");
            // The backend still hangs.
            let other = setup.submit(setup.package(plate, None, VALUE)).await;
            assert!(matches!(other, Outcome::Recorded { .. }), "{other:?}");
            drop(stopped);
            // The resumed backend must not have recorded the package a second time.
            setup.submit(setup.package(plate, Some(external_id), VALUE)).await;
            let sql = format!("SELECT count(*) FROM measurements WHERE external_id = '{external_id}'");
            assert_eq!(setup.count(&sql).await, 1);
        }
        assert_eq!(setup.answers(report).await.len(), 1);
        took
    })
    .await;
}

#[tokio::test]
async fn a_package_that_the_database_rejects_fails_at_most_half_a_batch() {
    let setup = MeasurementSetup::new().await;
    let mut packages: Vec<Package> = (0..10).map(|_| setup.package(PLATE, None, VALUE)).collect();
    // A value that the checks of the contract reject.
    packages[9].key_id = "no\0text".into();
    let outcomes = join_all(packages.into_iter().map(|package| setup.recorder.submit(package))).await;
    let recorded: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(recorded, [[true; 5], [false; 5]].concat());
    assert!(!outcomes[9].as_ref().unwrap_err().is_unavailable());
    assert_eq!(setup.count("SELECT count(*) FROM measurements").await, 5);
}

#[tokio::test]
async fn a_package_that_cannot_be_applied_fails_at_most_half_the_packages_of_its_report() {
    let setup = MeasurementSetup::new().await;
    setup.report(PLATE, OPEN, "1 hour", None).await;
    let mut packages: Vec<Package> = (0..10).map(|_| setup.package(PLATE, None, VALUE)).collect();
    // Only the transaction of the report inserts rows, and has this one rejected.
    packages[9].device_serial = Some("rejected".into());
    let reject = "ALTER TABLE measurements ADD CHECK (device_serial <> 'rejected')";
    setup.client().await.batch_execute(reject).await.unwrap();
    let outcomes = join_all(packages.into_iter().map(|package| setup.recorder.submit(package))).await;
    let recorded: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(recorded, [[true; 5], [false; 5]].concat());
    assert!(!outcomes[9].as_ref().unwrap_err().is_unavailable());
    assert_eq!(setup.count("SELECT count(*) FROM measurements").await, 5);
}

/// SVC-3
#[tokio::test(flavor = "multi_thread")]
async fn mixed_traffic_over_two_replicas_records_each_package_once() {
    let setup = MeasurementSetup::new().await;
    let client = setup.client().await;
    let mut partners = vec![setup.partner];
    for name in ["second maker", "third maker"] {
        let partner = setup.partner(name).await;
        setup.grant(partner, setup.branch.organization_id).await;
        partners.push(partner);
    }
    let plates: Vec<String> = (10..18).map(|number| format!("34ABC{number}")).collect();
    for plate in &plates[..4] {
        setup.report(plate, OPEN, "1 hour", None).await;
    }
    let replicas = [setup.another_recorder(), setup.another_recorder()];
    // Each external ID is sent three times: twice with the same bytes, once with others, in any order.
    let mut packages = Vec::new();
    for number in 0..360_usize {
        let external_id = format!("M-{}", number % 120);
        let value = (number % 240).to_string();
        let values = [("SLIP_FRONT", value.as_str()), ("DYNO_MEASURED_HP", value.as_str())];
        packages.push(Package {
            partner_id: partners[number % 3],
            raw: format!("{external_id} {value}").into(),
            ..setup.package(&plates[number % 8], Some(&external_id), &values)
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
        // One report goes to review while values arrive, and others are locked for a moment.
        let client = setup.client().await;
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
    // Each record was reported as new once, unless that response was late.
    assert!(
        (120 - unanswered.into_inner().min(120)..=120).contains(&recorded),
        "{recorded}"
    );
    assert_eq!(setup.count("SELECT count(*) FROM measurements").await, 120);
    let rows = client
        .query(
            "SELECT raw FROM measurements UNION ALL SELECT raw FROM measurement_mismatches",
            &[],
        )
        .await
        .unwrap();
    let bytes: Vec<Vec<u8>> = rows.iter().map(|row| row.get(0)).collect();
    let sent: BTreeSet<Vec<u8>> = packages.iter().map(|package| package.raw.to_vec()).collect();
    assert_eq!(bytes.len(), sent.len(), "identical bytes are kept once");
    assert_eq!(bytes.into_iter().collect::<BTreeSet<_>>(), sent);
    // Each applied value is in its report or in the history, exactly once.
    let values = "SELECT (SELECT count(*) FROM inspection_form_answers) +
                         (SELECT count(*) FROM inspection_form_answer_history) -
                         (SELECT coalesce(sum(cardinality(array_positions(point_outcomes, 'applied'))), 0)::bigint
                          FROM measurements)";
    assert_eq!(setup.count(values).await, 0);
    assert!(
        setup
            .count("SELECT count(*) FROM measurements WHERE status = 'APPLIED'")
            .await
            > 30
    );
}

#[tokio::test]
async fn a_partner_key_or_branch_with_measurements_cannot_be_deleted() {
    let setup = MeasurementSetup::new().await;
    setup.send(PLATE, &[("SLIP_FRONT", "1")]).await;
    let client = setup.client().await;
    client.execute("DELETE FROM grants", &[]).await.unwrap();
    for lose in [
        "DELETE FROM branches",
        "UPDATE branches SET id = gen_random_uuid()",
        "DELETE FROM api_keys",
        "DELETE FROM partners",
        "UPDATE api_keys SET key_id = 'third' WHERE key_id = 'first'",
    ] {
        let rejected = client.execute(lose, &[]).await.unwrap_err();
        assert_eq!(
            rejected.code().map(|code| code.code()),
            Some("23503"),
            "{lose}: {rejected:?}"
        );
    }
    // Columns other than the ID may change.
    for keep in [
        "UPDATE api_keys SET key_id = key_id, rate_limit = 7 WHERE key_id = 'first'",
        "UPDATE branches SET id = id, name = 'İzmir'",
    ] {
        assert_eq!(client.execute(keep, &[]).await.unwrap(), 1, "{keep}");
    }
}
