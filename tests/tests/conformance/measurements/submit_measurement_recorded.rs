//! The database rows of a submitted package.

use std::fmt::Display;

use chrono::{DateTime, FixedOffset, SecondsFormat, TimeDelta, Utc};
use data_encoding::HEXLOWER;
use partner_api_tests::fixture::{branches, inspections, organizations, partners};
use partner_api_tests::{ALPHA, DELTA, Service};
use serde_json::{Value, json};

use partner_api_tests::measurements::{answers, contents, measured_at, package, points};

/// MEA-5
#[tokio::test]
async fn the_raw_package_is_kept_byte_for_byte() {
    let service = Service::start().await;
    let body = "\n{ \"plate\":\"34 abc 123\",\t\"branch_code\" : \"\\u0049ZMIR-01\", \"firmware\":[1e2, {\"a\":null}],\r\n  \
                \"measured_at\":\"2026-06-15T12:05:00.250+03:00\", \"device_serial\":\"BT-3000 ğ\", \
                \"measurements\":{\"SLIP_FRONT\":-1.40, \"BRAKE_FRONT_LEFT\":2.850} }\n";
    let response = service.measure(&ALPHA, body).await;
    let row = service
        .db
        .query_one("SELECT raw, raw_sha256, measured_at FROM measurements", &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, &[u8]>("raw"), body.as_bytes());
    let digest = HEXLOWER.encode(row.get("raw_sha256"));
    assert_eq!(digest, partner_api_signing::body_sha256(body.as_bytes()));
    let measured_at: DateTime<Utc> = row.get("measured_at");
    assert_eq!(measured_at.to_rfc3339(), "2026-06-15T09:05:00.250+00:00");
    let record = service
        .rows(
            "SELECT id, partner_id, key_id, organization_id, branch_id, plate, external_id, device_serial, status, \
             inspection_id, settled_at, settled_by FROM measurements",
        )
        .await;
    let expected = json!([{
        "id": response.assert_status(201).json()["data"]["measurement_id"], "partner_id": partners::ALPHA,
        "key_id": ALPHA.id, "organization_id": organizations::MASKED, "branch_id": branches::IZMIR_01,
        "plate": "34ABC123", "external_id": null, "device_serial": "BT-3000 ğ", "status": "PENDING",
        "inspection_id": null, "settled_at": null, "settled_by": null
    }]);
    assert_eq!(record, expected);
}

/// pglz, PostgreSQL's default, takes several times as much processor time for a package of a megabyte.
#[tokio::test]
async fn a_large_package_is_compressed_with_lz4() {
    let service = Service::start().await;
    let body = package("M-1", "34 ABC 123") + &" ".repeat(1_000_000);
    service.measure(&ALPHA, body).await.assert_status(201);
    let method = "SELECT pg_column_compression(raw) FROM measurements";
    let row = service.db.query_one(method, &[]).await.unwrap();
    assert_eq!(row.get::<_, Option<&str>>(0), Some("lz4"));
}

/// MEA-3
#[tokio::test]
async fn without_a_time_the_servers_time_is_used() {
    let service = Service::start().await;
    let before = Utc::now();
    service
        .measure(&ALPHA, package("M-1", "34 ABC 123"))
        .await
        .assert_status(201);
    let times = service
        .db
        .query_one("SELECT measured_at, received_at FROM measurements", &[])
        .await
        .unwrap();
    for column in ["measured_at", "received_at"] {
        let time: DateTime<Utc> = times.get(column);
        assert!((before..=Utc::now()).contains(&time), "{column}: {time}");
    }
}

#[tokio::test]
async fn a_pending_package_changes_no_report() {
    let service = Service::start().await;
    let before = contents(&service).await;
    let response = service.measure(&ALPHA, package("M-1", "34 ABC 123")).await;
    let data = response.assert_status(201).json()["data"].clone();
    assert_eq!(
        (&data["inspection_id"], &data["applied_points"]),
        (&Value::Null, &json!([]))
    );
    let after = contents(&service).await;
    let changed: Vec<_> = before
        .iter()
        .filter(|(table, digest)| after[*table] != **digest)
        .map(|(table, _)| table.as_str())
        .collect();
    assert_eq!(changed, ["measurements"]);
}

#[tokio::test]
async fn each_point_is_recorded_with_its_sent_value_and_its_outcome() {
    let service = Service::start().await;
    let body = r#"{"branch_code":"IZMIR-01","plate":"35 DUZ 207","measurements":{
        "SUSP_REAR_LEFT":71,"DYNO_RATIO":99.9,"HANDBRAKE_LEFT":1.50,"DYNO_MEASURED_HP":1.15e2,"SLIP_FRONT":-1.40}}"#;
    let response = service.measure(&ALPHA, body).await;
    let data = response.assert_status(201).json()["data"].clone();
    let mut outcomes: Vec<_> = points(&service)
        .await
        .as_array()
        .unwrap()
        .iter()
        .map(|point| [&point["code"], &point["value_text"], &point["outcome"]].map(Value::clone))
        .collect();
    outcomes.sort_by_key(|[code, ..]| code.to_string());
    let expected = [
        ["DYNO_MEASURED_HP", "1.15e2", "applied"],
        // Sent by the device, and so an unknown point; the computed value is in the report.
        ["DYNO_RATIO", "99.9", "unknown_point"],
        ["HANDBRAKE_LEFT", "1.50", "no_status"],
        ["SLIP_FRONT", "-1.40", "applied"],
        ["SUSP_REAR_LEFT", "71", "unknown_point"],
    ];
    assert_eq!(json!(outcomes), json!(expected));
    let skipped = data["skipped_points"].as_array().unwrap();
    for point in [
        json!({ "code": "DYNO_RATIO", "reason": "unknown_point", "hint": "do not send this point; the service computes it" }),
        json!({ "code": "HANDBRAKE_LEFT", "reason": "no_status" }),
        json!({ "code": "SUSP_REAR_LEFT", "reason": "unknown_point" }),
    ] {
        assert!(skipped.contains(&point), "{data:#}");
    }
    assert_eq!(skipped.len(), 3);
    let device = format!("device:{}", data["measurement_id"].as_str().unwrap());
    let expected = json!([
        { "code": "SLIP_FRONT", "status_code": "GOOD", "value": "-1.40", "written_by": device },
        { "code": "DYNO_MEASURED_HP", "status_code": "GOOD", "value": "115", "written_by": device },
        // 100 × 115 / 115.
        { "code": "DYNO_RATIO", "status_code": "GOOD", "value": "100.00", "written_by": device },
    ]);
    assert_eq!(answers(&service, inspections::REVISION_REQUESTED).await, expected);
}

#[tokio::test]
async fn a_report_without_the_test_line_form_gets_one() {
    let service = Service::start().await;
    let form = format!("inspection_forms WHERE inspection_id = '{}'", inspections::FULL_DRAFT);
    assert_eq!(service.count(&form).await, 0);
    for (number, value) in ["2.85", "1.00"].into_iter().enumerate() {
        let body = format!(
            r#"{{"branch_code":"IST-02","plate":"34 OPN 305","external_id":"M-{number}","measurements":{{"BRAKE_FRONT_LEFT":{value}}}}}"#
        );
        let response = service.measure(&DELTA, body).await;
        assert_eq!(
            response.assert_status(201).json()["data"]["applied_points"],
            json!(["BRAKE_FRONT_LEFT"])
        );
    }
    assert_eq!(service.count(&form).await, 1);
    let written = answers(&service, inspections::FULL_DRAFT).await;
    assert_eq!(
        (&written[0]["value"], &written[0]["status_code"]),
        (&json!("1.00"), &json!("OUT_OF_LIMIT"))
    );
}

/// MEA-8
#[tokio::test]
async fn every_overwritten_value_stays_in_the_history() {
    let service = Service::start().await;
    let mut devices = Vec::new();
    for external_id in ["M-1", "M-2"] {
        let response = service.measure(&ALPHA, package(external_id, "35 OPN 205")).await;
        let id = response.assert_status(201).json()["data"]["measurement_id"].clone();
        devices.push(format!("device:{}", id.as_str().unwrap()));
    }
    let history = service
        .rows(
            "SELECT numeric_value::text AS value, coalesce(written_by, 'device:' || measurement_id) AS written_by \
               FROM inspection_form_answer_history ORDER BY written_at",
        )
        .await;
    let expected = json!([
        { "value": "1.00", "written_by": "Mehmet Usta" },
        { "value": "2.85", "written_by": devices[0] },
    ]);
    assert_eq!(history, expected);
    let written = answers(&service, inspections::DRAFT).await;
    assert_eq!(written[0]["written_by"], devices[1]);
}

/// A package with the time of its measurement, for an open report.
fn timed(external_id: &str, measured_at: impl Display, value: &str) -> String {
    format!(
        r#"{{"branch_code":"IZMIR-01","plate":"35 OPN 205","external_id":"{external_id}","measured_at":"{measured_at}","measurements":{{"BRAKE_FRONT_LEFT":{value}}}}}"#
    )
}

/// MEA-7, MEA-8
#[tokio::test]
async fn a_value_measured_before_the_one_in_the_report_is_skipped_as_superseded() {
    let service = Service::start().await;
    // The same second in another time zone, and the second before it.
    let istanbul = FixedOffset::east_opt(3 * 3_600).unwrap();
    let newer = timed("M-2", measured_at().with_timezone(&istanbul).to_rfc3339(), "2.85");
    service.measure(&ALPHA, newer).await.assert_status(201);
    let before = measured_at() - TimeDelta::seconds(1);
    let older = timed("M-1", before.to_rfc3339_opts(SecondsFormat::Secs, true), "1.10");
    service
        .measure(&ALPHA, older.clone())
        .await
        .assert_status(201)
        .snapshot("a_value_measured_before_the_one_in_the_report_is_skipped");
    assert_eq!(answers(&service, inspections::DRAFT).await[0]["value"], "2.85");
    let again = service.measure(&ALPHA, older).await;
    assert_eq!(
        again.assert_status(200).json()["data"]["skipped_points"],
        json!([{ "code": "BRAKE_FRONT_LEFT", "reason": "superseded" }])
    );
}

/// MEA-7
#[tokio::test]
async fn values_of_a_device_whose_clock_has_lost_the_date_are_skipped_as_stale() {
    let service = Service::start().await;
    let before = answers(&service, inspections::DRAFT).await;
    let package = timed("M-1", "1970-01-01T00:00:09Z", "2.85");
    service
        .measure(&ALPHA, package.clone())
        .await
        .assert_status(201)
        .snapshot("values_of_a_device_whose_clock_has_lost_the_date_are_skipped");
    assert_eq!(answers(&service, inspections::DRAFT).await, before);
    assert_eq!(
        points(&service).await,
        json!([{ "code": "BRAKE_FRONT_LEFT", "value_text": "2.85", "outcome": "stale" }])
    );
    let again = service.measure(&ALPHA, package).await;
    assert_eq!(
        again.assert_status(200).json()["data"]["skipped_points"],
        json!([{ "code": "BRAKE_FRONT_LEFT", "reason": "stale", "hint": "check measured_at and the device's clock" }])
    );
}

/// MEA-6
#[tokio::test]
async fn only_reports_in_an_editable_status_are_written_to() {
    let service = Service::start().await;
    for (status, outcome) in [
        ("DRAFT", "applied"),
        ("IN_REVIEW", "pending"),
        ("REVISION_REQUESTED", "applied"),
        ("CANCEL_REQUESTED", "pending"),
        ("PUBLISHED", "pending"),
        ("ARCHIVED", "pending"),
        ("CANCELLED", "pending"),
    ] {
        let set = format!(
            "UPDATE inspections SET status = '{status}', published_at = now() WHERE id = '{}'",
            inspections::DRAFT
        );
        service.db.execute(&set, &[]).await.unwrap();
        let response = service.measure(&ALPHA, package(status, "35 OPN 205")).await;
        assert_eq!(
            response.assert_status(201).json()["data"]["status"],
            outcome,
            "{status}"
        );
    }
}

/// MEA-2
#[tokio::test]
async fn all_spellings_of_a_plate_mean_the_same_plate() {
    let service = Service::start().await;
    let set = format!(
        "UPDATE inspections SET plate = '35ILI20' WHERE id = '{}'",
        inspections::DRAFT
    );
    service.db.execute(&set, &[]).await.unwrap();
    for (number, plate) in [
        "35ILI20",
        "35 ili 20",
        "35 ılı 20",
        "35 İLİ 20",
        "35 Iİi 20",
        "35.ili.20",
        "35-ILI-20",
        " 35\tILI\u{a0}20 ",
        "3 5 I L I 2 0",
        "35 i\u{307}li\u{307} 20",
    ]
    .into_iter()
    .enumerate()
    {
        let response = service.measure(&ALPHA, package(&format!("M-{number}"), plate)).await;
        let data = response.assert_status(201).json()["data"].clone();
        let expected = if plate.contains("Iİi") { "35III20" } else { "35ILI20" };
        assert_eq!(data["plate"], expected, "{plate:?}");
        assert_eq!(data["status"] == "applied", expected == "35ILI20", "{plate:?}");
    }
    for bound in ["01 A 12", "81 ABC 12345"] {
        service.measure(&ALPHA, package(bound, bound)).await.assert_status(201);
    }
}
