//! A value that was measured long before its report was created is recorded, but not written to the report.

use chrono::{DateTime, TimeDelta, Utc};
use partner_api::plausible::documented;
use partner_api::recorder::Outcome;
use partner_api_store::measurements::{self, Applied, Package, SkipReason, Skipped};
use partner_api_tests::measurements::measured_at;
use uuid::Uuid;

use super::{MeasurementSetup, OPEN, PLATE, replay_of, skipped};

const MARGIN: TimeDelta = TimeDelta::hours(24);
/// The smallest difference between two times of PostgreSQL.
const MOMENT: TimeDelta = TimeDelta::microseconds(1);

/// A device whose clock has lost the date.
fn without_date() -> [DateTime<Utc>; 2] {
    ["0001-01-01T00:00:00Z", "1970-01-01T00:00:09Z"].map(|time| time.parse().unwrap())
}

fn measured(setup: &MeasurementSetup, at: DateTime<Utc>, points: &[(&str, &str)]) -> Package {
    Package {
        measured_at: Some(at),
        ..setup.package(PLATE, Some(&at.to_rfc3339()), points)
    }
}

async fn created_at(setup: &MeasurementSetup, report: Uuid) -> DateTime<Utc> {
    let sql = "SELECT created_at FROM inspections WHERE id = $1";
    setup.client().await.query_one(sql, &[&report]).await.unwrap().get(0)
}

fn applied(outcome: Outcome) -> Applied {
    match outcome {
        Outcome::Recorded {
            applied: Some((_, applied)),
            ..
        } => applied,
        other => panic!("{other:?}"),
    }
}

fn pending(outcome: Outcome) -> Uuid {
    match outcome {
        Outcome::Recorded { id, applied: None } => id,
        other => panic!("{other:?}"),
    }
}

fn stale(code: &str) -> Vec<Skipped> {
    vec![skipped(code, SkipReason::Stale)]
}

/// The status and the outcomes of a recorded measurement, and whether its time and its bytes are those that were sent.
async fn recorded(setup: &MeasurementSetup, at: DateTime<Utc>) -> (String, Vec<String>, bool) {
    let sql = "SELECT status, point_outcomes, measured_at = $2 AND raw = '{\"as\": \"sent\"}'::bytea
               FROM measurements WHERE external_id = $1";
    let row = setup
        .client()
        .await
        .query_one(sql, &[&at.to_rfc3339(), &at])
        .await
        .unwrap();
    (row.get(0), row.get(1), row.get(2))
}

/// MEA-7
#[tokio::test]
async fn a_value_measured_more_than_24_hours_before_its_report_was_created_is_recorded_but_skipped() {
    let setup = MeasurementSetup::new().await;
    let report = setup.report(PLATE, OPEN, "23 hours", None).await;
    let oldest = created_at(&setup, report).await - MARGIN;
    let [first_year, unix_epoch] = without_date();
    for at in [first_year, unix_epoch, oldest - MOMENT] {
        let package = measured(&setup, at, &[("SLIP_FRONT", "1")]);
        let became = applied(setup.submit(package.clone()).await);
        assert_eq!((became.applied, became.skipped), (vec![], stale("SLIP_FRONT")), "{at}");
        let expected = ("APPLIED".to_owned(), vec!["stale".to_owned()], true);
        assert_eq!(recorded(&setup, at).await, expected, "{at}");
        assert_eq!(
            replay_of(setup.submit(package).await).skipped,
            stale("SLIP_FRONT"),
            "{at}"
        );
    }
    assert!(setup.answers(report).await.is_empty());
    // Just inside the margin.
    let became = applied(setup.submit(measured(&setup, oldest, &[("SLIP_FRONT", "2")])).await);
    assert_eq!(became.applied, ["SLIP_FRONT"]);
    assert_eq!(setup.answers(report).await["SLIP_FRONT"].1.to_string(), "2");
}

/// MEA-7, MEA-9
#[tokio::test]
async fn a_value_is_stale_only_if_it_has_a_status_and_before_it_is_superseded() {
    let setup = MeasurementSetup::new().await;
    setup.add_point("DYNO_RATIO").await;
    let report = setup.report(PLATE, OPEN, "1 hour", Some("100")).await;
    let newer = measured(&setup, measured_at(), &[("SLIP_FRONT", "1")]);
    assert_eq!(applied(setup.submit(newer).await).applied, ["SLIP_FRONT"]);
    let [_, unix_epoch] = without_date();
    let values = [
        ("ABS", "1"),
        ("DYNO_MEASURED_HP", "90"),
        ("SLIP_FRONT", "2"),
        ("SUSP_FRONT_LEFT", "70"),
    ];
    let became = applied(setup.submit(measured(&setup, unix_epoch, &values)).await);
    let expected = [
        skipped("ABS", SkipReason::UnknownPoint),
        skipped("DYNO_MEASURED_HP", SkipReason::Stale),
        skipped("SLIP_FRONT", SkipReason::Stale),
        skipped("SUSP_FRONT_LEFT", SkipReason::NoStatus),
        // It has no threshold, but without its power it has no value.
        skipped("DYNO_RATIO", SkipReason::Stale),
    ];
    assert_eq!((became.applied, became.skipped), (vec![], expected.to_vec()));
    let answers = setup.answers(report).await;
    assert_eq!(answers.keys().collect::<Vec<_>>(), ["SLIP_FRONT"]);
    assert_eq!(answers["SLIP_FRONT"].1.to_string(), "1");
}

/// MEA-7, MEA-13
#[tokio::test]
async fn a_stale_pending_measurement_is_shown_and_applied_without_its_values() {
    let setup = MeasurementSetup::new().await;
    let values = [("SLIP_FRONT", "1")];
    let mut lost = Vec::new();
    for at in without_date() {
        lost.push((at, pending(setup.submit(measured(&setup, at, &values)).await)));
    }
    let good = pending(setup.submit(measured(&setup, measured_at(), &values)).await);
    let report = setup.report(PLATE, OPEN, "1 hour", None).await;
    let shown = measurements::pending(&setup.db().await, setup.branch.organization_id, report, documented)
        .await
        .unwrap();
    let previews: Vec<_> = shown
        .iter()
        .map(|one| (one.measured_at, one.points[0].outcome.err()))
        .collect();
    let [first_year, unix_epoch] = without_date();
    let expected = [
        (measured_at(), None),
        (unix_epoch, Some(SkipReason::Stale)),
        (first_year, Some(SkipReason::Stale)),
    ];
    assert_eq!(previews, expected, "the preview says so before the click");
    for (at, id) in lost {
        let became = setup.click(id, report).await.unwrap();
        assert_eq!((became.applied, became.skipped), (vec![], stale("SLIP_FRONT")), "{at}");
        let expected = ("APPLIED".to_owned(), vec!["stale".to_owned()], true);
        assert_eq!(recorded(&setup, at).await, expected, "{at}");
    }
    assert!(setup.answers(report).await.is_empty());
    assert_eq!(setup.click(good, report).await.unwrap().applied, ["SLIP_FRONT"]);
    assert_eq!(setup.answers(report).await["SLIP_FRONT"].1.to_string(), "1");
}

/// MEA-7, MEA-13
#[tokio::test]
async fn a_pending_measurement_is_stale_by_the_report_that_it_is_applied_to_and_not_by_its_age() {
    let setup = MeasurementSetup::new().await;
    let at = Utc::now() - TimeDelta::days(30);
    let id = pending(setup.submit(measured(&setup, at, &[("SLIP_FRONT", "1")])).await);
    let report = setup.report(PLATE, OPEN, "30 days", None).await;
    assert_eq!(setup.click(id, report).await.unwrap().applied, ["SLIP_FRONT"]);
    assert_eq!(setup.answers(report).await["SLIP_FRONT"].1.to_string(), "1");
    let sql = "SELECT point_outcomes FROM measurements WHERE id = $1";
    let row = setup.client().await.query_one(sql, &[&id]).await.unwrap();
    assert_eq!(row.get::<_, Vec<&str>>(0), ["applied"]);
}
