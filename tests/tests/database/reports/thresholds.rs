//! Values keep the thresholds that applied when they were written (REP-18).

use partner_api_tests::cluster::{self, Database};
use partner_api_tests::fixture::inspections::PUBLISHED;
use serde_json::{Value, json};
use tokio_postgres::Client;
use uuid::Uuid;

const ORGANIZATION: &str = "01974d1a-7c00-7a00-8000-000000000002";

async fn with_fixture() -> (Database, Client) {
    let database = Database::create().await;
    let client = cluster::connect(&database.config()).await;
    (database, client)
}

/// The test-line form of the report's document.
async fn test_line(client: &Client) -> Value {
    let id: Uuid = PUBLISHED.parse().unwrap();
    let document = client
        .query_one("SELECT report_document($1)::text", &[&id])
        .await
        .unwrap();
    let document: Value = serde_json::from_str(document.get(0)).unwrap();
    let forms = document["forms"].as_array().unwrap();
    forms.iter().find(|form| form["is_test_line"] == true).unwrap().clone()
}

async fn set(client: &Client, point: &str, good_min: &str) {
    let sql = format!(
        "INSERT INTO thresholds (organization_id, point_code, good_min) VALUES ('{ORGANIZATION}', '{point}', {good_min})
         ON CONFLICT (organization_id, point_code) DO UPDATE SET good_min = excluded.good_min"
    );
    client.batch_execute(&sql).await.unwrap();
}

fn limits_of(form: &Value, code: &str) -> Value {
    let points = form["points"].as_array().unwrap();
    points.iter().find(|point| point["code"] == code).unwrap()["limits"].clone()
}

/// REP-18
#[tokio::test]
async fn a_value_keeps_the_thresholds_that_were_set_when_it_was_written() {
    let (_database, client) = with_fixture().await;
    let write = format!(
        "UPDATE inspection_form_answers SET written_at = clock_timestamp()
         WHERE inspection_form_id IN (SELECT id FROM inspection_forms WHERE inspection_id = '{PUBLISHED}')"
    );
    set(&client, "BRAKE_FRONT_DIFFERENCE", "1").await;
    client.batch_execute(&write).await.unwrap();
    let before = test_line(&client).await;
    assert_eq!(
        limits_of(&before, "BRAKE_FRONT_LEFT"),
        json!({ "good_min": "2.50", "good_max": null, "borderline_min": "2.00", "borderline_max": null })
    );
    assert_eq!(before["limits"]["BRAKE_FRONT_DIFFERENCE"]["good_min"], "1");

    // Thresholds that are changed, removed or added later do not concern values that were written before.
    set(&client, "BRAKE_FRONT_LEFT", "3").await;
    set(&client, "BRAKE_FRONT_DIFFERENCE", "2").await;
    set(&client, "BRAKE_FRONT_SUM", "4").await;
    client
        .batch_execute("DELETE FROM thresholds WHERE point_code = 'SLIP_FRONT'")
        .await
        .unwrap();
    assert_eq!(test_line(&client).await, before);

    client.batch_execute(&write).await.unwrap();
    let after = test_line(&client).await;
    assert_eq!(limits_of(&after, "BRAKE_FRONT_LEFT")["good_min"], "3");
    assert_eq!(limits_of(&after, "SLIP_FRONT")["good_min"], Value::Null);
    assert_eq!(after["limits"]["BRAKE_FRONT_SUM"]["good_min"], "4");
}

/// REP-18
#[tokio::test]
async fn past_thresholds_are_never_rewritten() {
    let (_database, client) = with_fixture().await;
    let versions =
        "SELECT good_min::text, valid_from FROM threshold_versions WHERE point_code = 'DYNO_RATIO' ORDER BY valid_from";
    let held = async || -> Vec<Option<String>> {
        let rows = client.query(versions, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    };
    let text = |value: &str| Some(value.to_owned());
    // Not even after the clock was set back, or with an explicit earlier time.
    for since in ["'2000-01-01Z'", "now() - interval '1 day'"] {
        let sql = format!(
            "UPDATE thresholds SET good_min = good_min + 1, valid_from = {since} WHERE point_code = 'DYNO_RATIO'"
        );
        client.batch_execute(&sql).await.unwrap();
    }
    assert_eq!(held().await, [text("90"), text("91"), text("92")]);
    // Setting the same thresholds again is not a new version.
    client
        .batch_execute("UPDATE thresholds SET good_min = good_min WHERE point_code = 'DYNO_RATIO'")
        .await
        .unwrap();
    assert_eq!(held().await.len(), 3);
    let again = format!(
        "DELETE FROM thresholds WHERE point_code = 'DYNO_RATIO';
         INSERT INTO thresholds (organization_id, point_code, good_min, valid_from)
         VALUES ('{ORGANIZATION}', 'DYNO_RATIO', 80, '2000-01-01Z')"
    );
    client.batch_execute(&again).await.unwrap();
    assert_eq!(held().await, [text("90"), text("91"), text("92"), None, text("80")]);
    client
        .batch_execute("DELETE FROM threshold_versions")
        .await
        .unwrap_err();
    client
        .batch_execute("UPDATE thresholds SET point_code = 'X'")
        .await
        .unwrap_err();
}
