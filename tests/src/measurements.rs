//! Measurements that tests send, and what they leave in the database.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::Service;

/// The path of `submit_measurement`.
pub const MEASUREMENTS: &str = "/api/v1/partner/test-line/measurements";

/// Returns the time at which devices measure in tests: always the same one of today, in whole seconds. Values that were measured
/// more than 24 hours before their report was created are stale (MEA-7), so a fixed time cannot be used.
pub fn measured_at() -> DateTime<Utc> {
    static TIME: LazyLock<DateTime<Utc>> = LazyLock::new(|| (Utc::now() - TimeDelta::hours(2)).trunc_subsecs(0));
    *TIME
}

/// Returns a package with one value for this plate, at IZMIR-01.
pub fn package(external_id: &str, plate: &str) -> String {
    json!({
        "branch_code": "IZMIR-01", "plate": plate, "external_id": external_id,
        "measurements": { "BRAKE_FRONT_LEFT": 2.85 }
    })
    .to_string()
}

/// Returns a digest of each table, except those of admission and of the request log. A request that changes nothing leaves them
/// equal.
pub async fn contents(service: &Service) -> BTreeMap<String, String> {
    let tables = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' \
                  AND relname !~ '^(used_nonces|rate_windows|request_log)'";
    let mut contents = BTreeMap::new();
    for row in service.db.query(tables, &[]).await.unwrap() {
        let table: String = row.get(0);
        let digest = format!("SELECT md5(coalesce(string_agg(t::text, chr(10) ORDER BY t::text), '')) FROM {table} t");
        contents.insert(table, service.db.query_one(&digest, &[]).await.unwrap().get(0));
    }
    contents
}

/// Returns the points of the only measurement, in their order.
pub async fn points(service: &Service) -> Value {
    service
        .rows(
            "SELECT p.code, p.value_text, p.outcome FROM measurements m, \
             unnest(m.point_codes, m.point_texts, m.point_outcomes) WITH ORDINALITY AS p (code, value_text, outcome, place) \
             ORDER BY p.place",
        )
        .await
}

/// Returns the device's answers in a report's form, in the order of the points.
pub async fn answers(service: &Service, report: &str) -> Value {
    service
        .rows(&format!(
            "SELECT p.code, a.status_code, a.numeric_value::text AS value, \
             coalesce(a.written_by, 'device:' || a.measurement_id) AS written_by \
             FROM inspection_form_answers a JOIN inspection_forms f ON f.id = a.inspection_form_id \
             JOIN form_template_points p ON p.id = a.point_id \
             WHERE f.inspection_id = '{report}' ORDER BY p.position"
        ))
        .await
}
