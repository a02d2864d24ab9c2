//! Implausible values are recorded but not applied to the report.

use partner_api::recorder::Outcome;
use partner_api_store::measurements::{Applied, SkipReason};

use super::{MeasurementSetup, OPEN, PLATE, replay_of, skipped};

fn applied(outcome: Outcome) -> Applied {
    match outcome {
        Outcome::Recorded {
            applied: Some((_, applied)),
            ..
        } => applied,
        other => panic!("{other:?}"),
    }
}

/// MEA-7, MEA-17
#[tokio::test]
async fn values_in_newtons_are_recorded_but_skipped_and_a_replay_reports_the_same() {
    let setup = MeasurementSetup::new().await;
    setup.add_point("BRAKE_FRONT_LEFT").await;
    setup.set_bounds("BRAKE_FRONT_LEFT", ["2", "", "1", ""]).await;
    let report = setup.report(PLATE, OPEN, "1 hour", None).await;
    let values = [("BRAKE_FRONT_LEFT", "2850"), ("SLIP_FRONT", "1")];
    let package = setup.package(PLATE, Some("newtons"), &values);
    let outcome = applied(setup.submit(package.clone()).await);
    assert_eq!(outcome.applied, ["SLIP_FRONT"]);
    let implausible = vec![skipped("BRAKE_FRONT_LEFT", SkipReason::Implausible)];
    assert_eq!(outcome.skipped, implausible);
    assert_eq!(replay_of(setup.submit(package).await).skipped, implausible);
    assert_eq!(setup.answers(report).await.keys().collect::<Vec<_>>(), ["SLIP_FRONT"]);
    let sql = "SELECT point_texts::text FROM measurements WHERE external_id = 'newtons'";
    let row = setup.client().await.query_one(sql, &[]).await.unwrap();
    assert!(row.get::<_, String>(0).contains("2850"));
}

/// MEA-17
#[tokio::test]
async fn an_organization_may_narrow_the_plausible_range_which_is_checked_before_thresholds() {
    let setup = MeasurementSetup::new().await;
    setup.add_point("BRAKE_FRONT_LEFT").await;
    setup.report(PLATE, OPEN, "1 hour", None).await;
    let send = async |value| {
        let outcome = applied(
            setup
                .submit(setup.package(PLATE, None, &[("BRAKE_FRONT_LEFT", value)]))
                .await,
        );
        outcome.skipped
    };
    assert_eq!(send("14").await, [skipped("BRAKE_FRONT_LEFT", SkipReason::NoStatus)]);
    let narrow = "INSERT INTO plausible_ranges VALUES ($1, 'BRAKE_FRONT_LEFT', NULL, 12.5)";
    let organization = setup.branch.organization_id;
    setup.client().await.execute(narrow, &[&organization]).await.unwrap();
    assert_eq!(send("14").await, [skipped("BRAKE_FRONT_LEFT", SkipReason::Implausible)]);
    assert_eq!(send("12.5").await, [skipped("BRAKE_FRONT_LEFT", SkipReason::NoStatus)]);
    assert_eq!(send("-1").await, [skipped("BRAKE_FRONT_LEFT", SkipReason::Implausible)]);
}

/// MEA-9, MEA-17
#[tokio::test]
async fn the_ratio_of_an_implausible_power_is_skipped_with_it() {
    let setup = MeasurementSetup::new().await;
    setup.add_point("DYNO_RATIO").await;
    setup.set_bounds("DYNO_RATIO", ["90", "", "80", ""]).await;
    setup.report(PLATE, OPEN, "1 hour", Some("150")).await;
    let outcome = applied(
        setup
            .submit(setup.package(PLATE, None, &[("DYNO_MEASURED_HP", "14650")]))
            .await,
    );
    let both = ["DYNO_MEASURED_HP", "DYNO_RATIO"].map(|code| skipped(code, SkipReason::Implausible));
    assert_eq!((outcome.applied, outcome.skipped), (vec![], both.to_vec()));
}
