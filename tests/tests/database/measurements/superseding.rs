//! Of two device values the one that was measured later is kept, in whichever order they arrive.

use chrono::TimeDelta;
use partner_api::recorder::Outcome;
use partner_api_store::measurements::{Applied, Package, SkipReason};
use partner_api_tests::measurements::measured_at;
use uuid::Uuid;

use super::{MeasurementSetup, OPEN, PLATE, replay_of, skipped};

/// A package that was measured this many seconds after [`measured_at`].
fn measured(setup: &MeasurementSetup, second: i64, external_id: &str, points: &[(&str, &str)]) -> Package {
    Package {
        measured_at: Some(measured_at() + TimeDelta::seconds(second)),
        ..setup.package(PLATE, Some(external_id), points)
    }
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

async fn value(setup: &MeasurementSetup, report: Uuid, code: &str) -> String {
    setup.answers(report).await[code].1.to_string()
}

/// MEA-8
#[tokio::test]
async fn an_older_value_that_arrives_later_is_recorded_but_skipped() {
    let setup = MeasurementSetup::new().await;
    let report = setup.report(PLATE, OPEN, "1 hour", None).await;
    setup
        .submit(measured(&setup, 10, "newer", &[("SLIP_FRONT", "1")]))
        .await;
    let older = measured(&setup, 9, "older", &[("SLIP_FRONT", "2"), ("DYNO_MEASURED_HP", "90")]);
    let superseded = vec![skipped("SLIP_FRONT", SkipReason::Superseded)];
    let became = applied(setup.submit(older.clone()).await);
    assert_eq!(
        became.applied,
        ["DYNO_MEASURED_HP"],
        "the report had no value of this point"
    );
    assert_eq!(became.skipped, superseded);
    assert_eq!(value(&setup, report, "SLIP_FRONT").await, "1");
    assert_eq!(replay_of(setup.submit(older).await).skipped, superseded);
    let sql = "SELECT status, point_outcomes FROM measurements WHERE external_id = 'older'";
    let row = setup.client().await.query_one(sql, &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "APPLIED");
    assert_eq!(row.get::<_, Vec<&str>>(1), ["superseded", "applied"]);
    // A package without a time counts as measured when it arrives.
    let now = setup.package(PLATE, None, &[("SLIP_FRONT", "3")]);
    assert_eq!(applied(setup.submit(now).await).skipped, []);
    assert_eq!(value(&setup, report, "SLIP_FRONT").await, "3");
}

/// MEA-8
#[tokio::test]
async fn of_values_measured_at_the_same_time_the_later_arrival_is_kept() {
    let setup = MeasurementSetup::new().await;
    let report = setup.report(PLATE, OPEN, "1 hour", None).await;
    for number in ["1", "2", "3"] {
        let became = setup
            .submit(measured(&setup, 10, number, &[("SLIP_FRONT", number)]))
            .await;
        assert_eq!(applied(became).applied, ["SLIP_FRONT"]);
        assert_eq!(value(&setup, report, "SLIP_FRONT").await, number);
    }
}

/// MEA-13
#[tokio::test]
async fn a_pending_measurement_does_not_replace_values_measured_or_received_after_it() {
    let setup = MeasurementSetup::new().await;
    let points = [("SLIP_FRONT", "1")];
    let older = pending(setup.submit(measured(&setup, 9, "older", &points)).await);
    let earlier = pending(setup.submit(measured(&setup, 10, "earlier", &points)).await);
    let newer = pending(setup.submit(measured(&setup, 11, "newer", &points)).await);
    let report = setup.report(PLATE, OPEN, "1 hour", None).await;
    setup
        .submit(measured(&setup, 10, "direct", &[("SLIP_FRONT", "2")]))
        .await;
    let click = async |id| setup.click(id, report).await.unwrap();
    let superseded = vec![skipped("SLIP_FRONT", SkipReason::Superseded)];
    assert_eq!(click(older).await.skipped, superseded);
    assert_eq!(
        click(earlier).await.skipped,
        superseded,
        "measured at the same time, it came first"
    );
    assert_eq!(value(&setup, report, "SLIP_FRONT").await, "2");
    assert_eq!(click(newer).await.applied, ["SLIP_FRONT"]);
    assert_eq!(value(&setup, report, "SLIP_FRONT").await, "1");
}

#[tokio::test]
async fn a_ratio_is_replaced_only_with_the_power_that_it_is_computed_from() {
    let setup = MeasurementSetup::new().await;
    setup.add_point("DYNO_RATIO").await;
    let report = setup.report(PLATE, OPEN, "1 hour", Some("100")).await;
    // At first the ratio has no threshold, and so no value.
    setup
        .submit(measured(&setup, 10, "newer", &[("DYNO_MEASURED_HP", "90")]))
        .await;
    setup.set_bounds("DYNO_RATIO", ["50", "", "", ""]).await;
    let became = setup
        .submit(measured(&setup, 9, "older", &[("DYNO_MEASURED_HP", "80")]))
        .await;
    let both = ["DYNO_MEASURED_HP", "DYNO_RATIO"].map(|code| skipped(code, SkipReason::Superseded));
    assert_eq!(applied(became).skipped, both);
    assert_eq!(setup.answers(report).await.len(), 1);
}

#[tokio::test]
async fn a_value_that_an_inspector_wrote_is_not_a_device_value() {
    let setup = MeasurementSetup::new().await;
    let report = setup.report(PLATE, OPEN, "1 hour", None).await;
    setup
        .submit(measured(&setup, 10, "newer", &[("SLIP_FRONT", "1")]))
        .await;
    for writer in [
        "Ayşe",
        "device: of the inspector's own",
        "device:00000000-0000-0000-0000-000000000000",
    ] {
        let by_hand = "UPDATE inspection_form_answers SET numeric_value = 4, by_device = false, measurement_id = NULL, written_by = $1";
        setup.client().await.execute(by_hand, &[&writer]).await.unwrap();
        let became = setup.submit(measured(&setup, 9, writer, &[("SLIP_FRONT", "2")])).await;
        assert_eq!(applied(became).applied, ["SLIP_FRONT"], "{writer}");
        assert_eq!(value(&setup, report, "SLIP_FRONT").await, "2");
    }
}
