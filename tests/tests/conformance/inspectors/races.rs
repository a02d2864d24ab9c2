//! Two inspectors at the same report: of requests that exclude each other, one succeeds, and the database holds exactly its effect.

use std::time::Duration;

use partner_api_tests::fixture::branches;
use partner_api_tests::fixture::inspections::DRAFT;
use partner_api_tests::wait::until;
use partner_api_tests::{ALPHA, AYSE, MEHMET, Service, cluster};
use serde_json::{Value, json};

/// The state of the report that the requests change.
async fn state(service: &Service) -> Value {
    let query = format!(
        "SELECT i.status, i.public_slug IS NOT NULL AS has_slug, i.snapshot_vin = 'WBA8E9G50GN000299' AS is_corrected,
                (SELECT count(*) FROM inspection_transitions t
                 WHERE t.inspection_id = i.id AND t.organization_id = i.organization_id) AS transitions,
                (SELECT count(*) FROM report_renderings r
                 WHERE r.inspection_id = i.id AND r.organization_id = i.organization_id) AS renderings,
                (SELECT m.status FROM measurements m WHERE m.organization_id = i.organization_id) AS measurement,
                EXISTS (SELECT 1 FROM inspection_form_answers a
                        JOIN inspection_forms f ON f.id = a.inspection_form_id AND f.organization_id = a.organization_id
                        WHERE f.inspection_id = i.id AND f.organization_id = i.organization_id
                          AND a.measurement_id IS NOT NULL) AS has_device_values
         FROM inspections i WHERE i.id = '{DRAFT}'"
    );
    service.rows(&query).await[0].clone()
}

fn vehicle(version: &Value) -> Value {
    json!({ "version": version, "vehicle": {
        "vin": "WBA8E9G50GN000299", "brand": "BMW", "model": "318i", "year": 2017, "type": "SEDAN", "fuel_type": "DIESEL",
        "transmission": "MANUAL", "color": "Beyaz", "factory_power_hp": "150.00"
    } })
}

/// INS-5, INS-6, INS-7, INS-15
#[tokio::test]
async fn of_a_publication_a_correction_and_an_undo_at_the_same_time_only_compatible_ones_succeed() {
    for order in 0..3 {
        let service = Service::start().await;
        let (ayse, mehmet) = (service.inspector(&AYSE).await, service.inspector(&MEHMET).await);
        let package = json!({
            "branch_code": "IZMIR-01", "plate": "35OPN205", "external_id": "m-1",
            "measurements": { "BRAKE_FRONT_LEFT": 2.1, "BRAKE_FRONT_RIGHT": 2.2 }
        });
        let sent = service.measure(&ALPHA, package.to_string()).await;
        let measurement = sent.json()["data"]["measurement_id"].as_str().unwrap().to_owned();
        ayse.answer_required_points(&service, DRAFT).await;
        let version = ayse.report(&service, DRAFT).await["version"].clone();
        let report = format!("/inspector/v1/reports/{DRAFT}");
        let publish = async || {
            let body = json!({ "version": version, "to": "PUBLISHED" });
            ayse.write(&service, "PUT", &format!("{report}/status"), body).await
        };
        let correct = async || {
            let body = vehicle(&version);
            mehmet.write(&service, "PUT", &format!("{report}/vehicle"), body).await
        };
        let undo = async || {
            let target = format!("/inspector/v1/measurements/{measurement}/settlement");
            mehmet.act(&service, "DELETE", &target).await
        };
        // Each of them is sent first once, so that different ones win.
        let (published, corrected, undone) = match order {
            0 => tokio::join!(publish(), correct(), undo()),
            1 => {
                let (corrected, undone, published) = tokio::join!(correct(), undo(), publish());
                (published, corrected, undone)
            }
            _ => {
                let (undone, published, corrected) = tokio::join!(undo(), publish(), correct());
                (published, corrected, undone)
            }
        };
        let (published, corrected, undone) = (
            published.status.as_u16(),
            corrected.status.as_u16(),
            undone.status.as_u16(),
        );
        // A publication and a correction name the version that they are based on, so each excludes the other, and one after an undo
        // fails. An undo names its measurement, so it may follow a correction.
        assert!(
            [(200, 409, 409), (409, 200, 204), (409, 409, 204)].contains(&(published, corrected, undone)),
            "{:?}",
            (published, corrected, undone)
        );
        let is_published = published == 200;
        let is_undone = undone == 204;
        let expected = json!({
            "status": if is_published { "PUBLISHED" } else { "DRAFT" },
            "has_slug": is_published,
            "is_corrected": corrected == 200,
            "transitions": i32::from(is_published),
            "renderings": i32::from(is_published),
            "measurement": if is_undone { "PENDING" } else { "APPLIED" },
            "has_device_values": !is_undone,
        });
        assert_eq!(state(&service).await, expected);
    }
}

/// INS-5, INS-6, INS-14
#[tokio::test]
async fn of_two_inspectors_who_move_a_report_at_the_same_time_one_succeeds() {
    let service = Service::start().await;
    let (ayse, mehmet) = (service.inspector(&AYSE).await, service.inspector(&MEHMET).await);
    ayse.answer_required_points(&service, DRAFT).await;
    ayse.move_to(&service, DRAFT, "PUBLISHED", None)
        .await
        .assert_status(200);
    let status = format!("/inspector/v1/reports/{DRAFT}/status");
    let (mut now, mut transitions) = ("PUBLISHED", 1);
    // Both read the same version, and then a revision races with an archiving, or two publications.
    for (first, second) in [("REVISION_REQUESTED", "ARCHIVED"), ("PUBLISHED", "IN_REVIEW")] {
        if now == "ARCHIVED" {
            break;
        }
        let version = ayse.report(&service, DRAFT).await["version"].clone();
        let body = |to: &str| json!({ "version": version, "to": to, "reason": "Kilometre yanlış." });
        let (one, other) = tokio::join!(
            ayse.write(&service, "PUT", &status, body(first)),
            mehmet.write(&service, "PUT", &status, body(second))
        );
        let statuses = (one.status.as_u16(), other.status.as_u16());
        assert!([(200, 409), (409, 200)].contains(&statuses), "{statuses:?}");
        transitions += 1;
        now = if statuses.0 == 200 { first } else { second };
        let state = state(&service).await;
        assert_eq!(
            (&state["status"], &state["transitions"], &state["has_slug"]),
            (&json!(now), &json!(transitions), &json!(true))
        );
    }
}

/// INS-6
#[tokio::test]
async fn of_two_inspectors_who_open_a_plate_at_the_same_time_one_is_warned() {
    let service = Service::start().await;
    let (ayse, mehmet) = (service.inspector(&AYSE).await, service.inspector(&MEHMET).await);
    let body = json!({ "branch_id": branches::IZMIR_01, "plate": "35MSK201", "package_name": "Full", "base_price": "1.00",
                       "mileage_km": 1 });
    // Nobody can commit before both have begun.
    let holder = cluster::connect(&service.database()).await;
    let hold = "BEGIN; LOCK TABLE inspection_transitions IN SHARE ROW EXCLUSIVE MODE";
    holder.batch_execute(hold).await.unwrap();
    let release = async {
        until(Duration::from_secs(10), async || {
            let waiting =
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
            let count: i64 = service.db.query_one(waiting, &[]).await.unwrap().get(0);
            (count == 2).then_some(())
        })
        .await;
        holder.batch_execute("COMMIT").await.unwrap();
    };
    let (one, other, ()) = tokio::join!(
        ayse.write(&service, "POST", "/inspector/v1/reports", body.clone()),
        mehmet.write(&service, "POST", "/inspector/v1/reports", body.clone()),
        release
    );
    let warned = match (one.status.as_u16(), other.status.as_u16()) {
        (201, 409) => other,
        (409, 201) => one,
        statuses => panic!("{statuses:?}"),
    };
    warned.assert_rejected(409, "already_open");
    assert_eq!(
        service
            .count("inspections WHERE plate = '35MSK201' AND status = 'DRAFT'")
            .await,
        1
    );
}
