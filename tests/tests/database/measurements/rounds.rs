//! Batches for open reports: one transaction for several reports, with the packages of each report in order.

use futures::future::join_all;
use partner_api::recorder::{Outcome, RecordError};

use super::{MeasurementSetup, OPEN, PLATE};

const VALUE: &[(&str, &str)] = &[("SLIP_FRONT", "1")];

/// Packages that arrive together for several reports are one transaction, unless one of the reports is locked.
#[tokio::test]
async fn packages_for_several_reports_share_a_transaction_and_a_locked_report_delays_no_other() {
    let setup = MeasurementSetup::new().await;
    let plates: Vec<String> = (10..20).map(|number| format!("34ABC{number}")).collect();
    let mut reports = Vec::new();
    for plate in &plates {
        reports.push(setup.report(plate, OPEN, "1 hour", None).await);
    }
    let send_all = || {
        join_all(
            plates
                .iter()
                .map(|plate| setup.recorder.submit(setup.package(plate, None, VALUE))),
        )
    };
    let is_applied =
        |outcome: &Result<Outcome, RecordError>| matches!(outcome, Ok(Outcome::Recorded { applied: Some(_), .. }));
    assert!(send_all().await.iter().all(is_applied));
    let transactions = "SELECT count(DISTINCT xmin::text) FROM measurements";
    assert_eq!(setup.count(transactions).await, 1);
    // Lock an answer without the report's lock, so that the report is free and its answer is not.
    let mut client = setup.client().await;
    let editing = client.transaction().await.unwrap();
    let touch = "UPDATE inspection_form_answers SET note = 'mine' WHERE inspection_form_id IN
                 (SELECT id FROM inspection_forms WHERE inspection_id = $1)";
    assert_eq!(editing.execute(touch, &[&reports[3]]).await.unwrap(), 1);
    let outcomes = send_all().await;
    let applied: Vec<bool> = outcomes.iter().map(is_applied).collect();
    let expected: Vec<bool> = (0..10).map(|number| number != 3).collect();
    assert_eq!(applied, expected);
    assert!(matches!(outcomes[3], Err(RecordError::Overdue)), "{:?}", outcomes[3]);
    editing.rollback().await.unwrap();
}

#[tokio::test]
async fn an_unreadable_report_does_not_delay_the_values_of_others() {
    let setup = MeasurementSetup::new().await;
    let plates: Vec<String> = (10..20).map(|number| format!("34ABC{number}")).collect();
    for (number, plate) in plates.iter().enumerate() {
        // A power that the service cannot calculate with.
        let power = (number == 3).then_some("NaN");
        setup.report(plate, OPEN, "1 hour", power).await;
    }
    let submitted = plates
        .iter()
        .map(|plate| setup.recorder.submit(setup.package(plate, None, VALUE)));
    let outcomes = join_all(submitted).await;
    for (number, outcome) in outcomes.iter().enumerate() {
        match (number, outcome) {
            (3, Err(RecordError::Db(_))) => {}
            (_, Ok(Outcome::Recorded { applied: Some(_), .. })) if number != 3 => {}
            _ => panic!("{number}: {outcome:?}"),
        }
    }
    assert_eq!(setup.count("SELECT count(*) FROM measurements").await, 9);
}

/// MEA-10
#[tokio::test]
async fn of_packages_with_one_external_id_for_several_reports_the_first_is_recorded() {
    let setup = MeasurementSetup::new().await;
    let plates: Vec<String> = (10..20).map(|number| format!("34ABC{number}")).collect();
    for plate in &plates {
        setup.report(plate, OPEN, "1 hour", None).await;
    }
    let submitted = plates
        .iter()
        .map(|plate| setup.recorder.submit(setup.package(plate, Some("M-1"), VALUE)));
    let outcomes: Vec<Outcome> = join_all(submitted).await.into_iter().map(Result::unwrap).collect();
    assert!(
        matches!(outcomes[0], Outcome::Recorded { applied: Some(_), .. }),
        "{:?}",
        outcomes[0]
    );
    for outcome in &outcomes[1..] {
        assert!(
            matches!(outcome, Outcome::Replayed(replay) if replay.plate == plates[0]),
            "{outcome:?}"
        );
    }
    assert_eq!(setup.count("SELECT count(*) FROM inspection_form_answers").await, 1);
}

#[tokio::test]
async fn packages_of_one_report_are_applied_in_the_order_of_their_arrival() {
    let setup = MeasurementSetup::new().await;
    let report = setup.report(PLATE, OPEN, "1 hour", None).await;
    let packages: Vec<_> = (0..150)
        .map(|value: i32| {
            setup.package(
                PLATE,
                None,
                &[("SLIP_FRONT", &format!("{}.{}", value / 10, value % 10))],
            )
        })
        .collect();
    let ids: Vec<String> = packages
        .iter()
        .map(|package| format!("device:{}", package.id))
        .collect();
    let submitted = packages.into_iter().map(|package| setup.recorder.submit(package));
    for outcome in join_all(submitted).await {
        assert!(
            matches!(outcome, Ok(Outcome::Recorded { applied: Some(_), .. })),
            "{outcome:?}"
        );
    }
    let (_, value, writer) = setup.answers(report).await["SLIP_FRONT"].clone();
    assert_eq!((value.to_string(), &writer), ("14.9".to_owned(), &ids[149]));
    // Every replaced value is kept, each once.
    let sql = "SELECT coalesce(written_by, 'device:' || measurement_id) FROM inspection_form_answer_history ORDER BY numeric_value";
    let history = setup.client().await.query(sql, &[]).await.unwrap();
    let history: Vec<String> = history.iter().map(|row| row.get(0)).collect();
    assert_eq!(history, ids[..149]);
}
