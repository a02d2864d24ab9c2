//! The values that are applied to a report, and their status.

use partner_api::recorder::Outcome;
use partner_api_store::measurements::{Applied, SkipReason};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::{MeasurementSetup, OPEN, PLATE, replay_of, skipped};

/// MEA-7
#[tokio::test]
async fn values_are_applied_to_the_open_report_with_their_status_and_others_are_skipped() {
    let setup = MeasurementSetup::new().await;
    let report = setup.report(PLATE, OPEN, "1 hour", None).await;
    let sent = [("ABS", "1"), ("SLIP_FRONT", "-6.50"), ("SUSP_FRONT_LEFT", "70")];
    let (id, applied) = setup.send(PLATE, &sent).await;
    let expected = Applied {
        applied: vec!["SLIP_FRONT".into()],
        skipped: vec![
            skipped("ABS", SkipReason::UnknownPoint),
            skipped("SUSP_FRONT_LEFT", SkipReason::NoStatus),
        ],
    };
    assert_eq!(applied, Some((report, expected)));
    let answers = setup.answers(report).await;
    let writer = format!("device:{id}");
    assert_eq!(
        answers.into_iter().collect::<Vec<_>>(),
        [(
            "SLIP_FRONT".to_string(),
            ("BORDERLINE".to_string(), Decimal::new(-65, 1), writer)
        )]
    );
    let row = setup
        .client()
        .await
        .query_one(
            "SELECT status, inspection_id, raw, raw_sha256 = sha256(raw), settled_by FROM measurements",
            &[],
        )
        .await
        .unwrap();
    assert_eq!((row.get(0), row.get(1)), ("APPLIED", Some(report)));
    assert_eq!(
        (row.get(2), row.get(3)),
        (&b"{\"as\": \"sent\"}"[..], true),
        "the raw package is kept"
    );
    assert_eq!(row.get::<_, Option<&str>>(4), None);
    let sql = "SELECT p.code || ' ' || p.value_text || ' ' || p.outcome FROM measurements,
               unnest(point_codes, point_texts, point_outcomes) WITH ORDINALITY AS p (code, value_text, outcome, place)
               ORDER BY place";
    let points: Vec<String> = setup
        .client()
        .await
        .query(sql, &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(
        points,
        [
            "ABS 1 unknown_point",
            "SLIP_FRONT -6.50 applied",
            "SUSP_FRONT_LEFT 70 no_status"
        ]
    );
}

/// MEA-12
#[tokio::test]
async fn thresholds_apply_to_negative_values_too() {
    let setup = MeasurementSetup::new().await;
    let report = setup.report(PLATE, OPEN, "1 hour", None).await;
    let table = [
        ("-7.01", "OUT_OF_LIMIT"),
        ("-7", "BORDERLINE"),
        ("-5", "GOOD"),
        ("0", "GOOD"),
        ("5.0", "GOOD"),
        ("5.000000000000001", "BORDERLINE"),
        ("7.1", "OUT_OF_LIMIT"),
    ];
    for (value, status) in table {
        setup.send(PLATE, &[("SLIP_FRONT", value)]).await;
        let answers = setup.answers(report).await;
        let (code, written, _) = &answers["SLIP_FRONT"];
        assert_eq!((code.as_str(), written.to_string().as_str()), (status, value));
    }
}

/// MEA-9
#[tokio::test]
async fn the_power_ratio_is_computed_if_the_factory_power_is_registered() {
    let setup = MeasurementSetup::new().await;
    let hp = [("DYNO_MEASURED_HP", "146.5")];
    let codes = |applied: Option<(Uuid, Applied)>| applied.map(|(_, applied)| (applied.applied, applied.skipped));
    let measured = vec!["DYNO_MEASURED_HP".to_string()];

    // The template has no such point, so it is left out and not reported.
    let registered = setup.report(PLATE, OPEN, "2 hours", Some("150")).await;
    assert_eq!(codes(setup.send(PLATE, &hp).await.1), Some((measured.clone(), vec![])));

    // The template has the point, but there is no threshold. A replay reports the same.
    setup.add_point("DYNO_RATIO").await;
    let no_status = vec![skipped("DYNO_RATIO", SkipReason::NoStatus)];
    let package = setup.package(PLATE, Some("ratio"), &hp);
    assert!(matches!(setup.submit(package.clone()).await,
                     Outcome::Recorded { applied: Some((_, applied)), .. } if applied.skipped == no_status));
    assert_eq!(replay_of(setup.submit(package).await).skipped, no_status);

    setup.set_bounds("DYNO_RATIO", ["90", "", "80", ""]).await;
    let both = vec!["DYNO_MEASURED_HP".to_string(), "DYNO_RATIO".to_string()];
    assert_eq!(codes(setup.send(PLATE, &hp).await.1), Some((both.clone(), vec![])));
    let (status, value, writer) = setup.answers(registered).await["DYNO_RATIO"].clone();
    assert_eq!((status.as_str(), value.to_string().as_str()), ("GOOD", "97.67"));
    assert!(writer.starts_with("device:"));

    // A ratio that a device sends is an unknown point, and the ratio is computed; the sent value stays in the record.
    let sent = [("DYNO_MEASURED_HP", "146.5"), ("DYNO_RATIO", "12")];
    let unknown = vec![skipped("DYNO_RATIO", SkipReason::UnknownPoint)];
    let (id, applied) = setup.send(PLATE, &sent).await;
    assert_eq!(codes(applied), Some((both, unknown)));
    assert_eq!(setup.answers(registered).await["DYNO_RATIO"].1.to_string(), "97.67");
    let sql = "SELECT p.value_text, p.outcome FROM measurements,
               unnest(point_codes, point_texts, point_outcomes) AS p (code, value_text, outcome)
               WHERE id = $1 AND p.code = 'DYNO_RATIO'";
    let row = setup.client().await.query_one(sql, &[&id]).await.unwrap();
    assert_eq!((row.get(0), row.get(1)), ("12", "unknown_point"));

    // Without a registered factory power there is no ratio.
    setup.report("06Z99", OPEN, "1 hour", None).await;
    assert_eq!(codes(setup.send("06Z99", &hp).await.1), Some((measured, vec![])));
}

#[tokio::test]
async fn an_overwritten_value_is_kept_with_its_author_and_the_note_stays() {
    let setup = MeasurementSetup::new().await;
    let report = setup.report(PLATE, OPEN, "1 hour", None).await;
    let (first, _) = setup.send(PLATE, &[("SLIP_FRONT", "1.5")]).await;
    let client = setup.client().await;
    client
        .execute("UPDATE inspection_form_answers SET note = 'checked by hand'", &[])
        .await
        .unwrap();
    let (second, _) = setup.send(PLATE, &[("SLIP_FRONT", "-9")]).await;
    let (status, value, writer) = setup.answers(report).await["SLIP_FRONT"].clone();
    assert_eq!(
        (status.as_str(), value, writer),
        ("OUT_OF_LIMIT", Decimal::from(-9), format!("device:{second}"))
    );
    let sql = "SELECT h.status_code, h.numeric_value, coalesce(h.written_by, 'device:' || h.measurement_id), h.written_at < a.written_at, a.note
               FROM inspection_form_answer_history h JOIN inspection_form_answers a USING (inspection_form_id, point_id)";
    let row = client.query_one(sql, &[]).await.unwrap();
    assert_eq!((row.get(0), row.get::<_, Decimal>(1)), ("GOOD", Decimal::new(15, 1)));
    assert_eq!((row.get::<_, String>(2), row.get(3)), (format!("device:{first}"), true));
    assert_eq!(row.get::<_, &str>(4), "checked by hand");
    assert_eq!(setup.count("SELECT count(*) FROM inspection_forms").await, 1);
}

#[tokio::test]
async fn without_a_test_line_form_every_point_is_unknown() {
    let setup = MeasurementSetup::new().await;
    setup
        .client()
        .await
        .execute("UPDATE form_templates SET is_test_line = false", &[])
        .await
        .unwrap();
    let report = setup.report(PLATE, OPEN, "1 hour", Some("100")).await;
    let (_, applied) = setup.send(PLATE, &[("DYNO_MEASURED_HP", "1")]).await;
    let skipped = vec![skipped("DYNO_MEASURED_HP", SkipReason::UnknownPoint)];
    assert_eq!(
        applied,
        Some((
            report,
            Applied {
                applied: vec![],
                skipped
            }
        ))
    );
    assert_eq!(setup.count("SELECT count(*) FROM inspection_forms").await, 0);
}

/// MEA-4
#[tokio::test]
async fn values_are_kept_exactly_up_to_18_digits() {
    let setup = MeasurementSetup::new().await;
    // A point without a plausible range in the document.
    setup.add_point("OF_ITS_OWN").await;
    setup.set_bounds("OF_ITS_OWN", ["0", "", "", ""]).await;
    let report = setup.report(PLATE, OPEN, "1 hour", None).await;
    for value in [
        "0.000000000123456789",
        "999999999999999999",
        "123456789.123456789",
        "0.10",
    ] {
        setup.send(PLATE, &[("OF_ITS_OWN", value)]).await;
        let recorded: String = setup
            .client()
            .await
            .query_one("SELECT numeric_value::text FROM inspection_form_answers", &[])
            .await
            .unwrap()
            .get(0);
        assert_eq!(recorded, value);
    }
    assert_eq!(setup.answers(report).await.len(), 1);
}
