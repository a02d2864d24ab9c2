//! Every change of a report that partners can see changes its `updated_at`. Measurements of open reports do not.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use partner_api_tests::cluster::{self, Database};
use partner_api_tests::fixture::inspections::{DRAFT, OTHER_BRANCH, PUBLISHED};
use tokio_postgres::Client;
use uuid::Uuid;

/// Columns of the tables that a report is read from: the table, the column, its new value, and whether that changes the reports
/// that show it. Keys and references to other rows are in [`FIXED`].
const COLUMNS: &[(&str, &str, &str, bool)] = &[
    ("inspections", "report_number", "report_number || 'x'", true),
    ("inspections", "status", "'ARCHIVED'", true),
    ("inspections", "plate", "plate || '1'", false),
    ("inspections", "package_name", "package_name || 'x'", true),
    ("inspections", "package_base_price", "package_base_price + 1", true),
    ("inspections", "base_price", "base_price + 1", true),
    ("inspections", "discount_percent", "discount_percent + 1", true),
    ("inspections", "discount_name", "discount_name || 'x'", true),
    ("inspections", "final_price", "final_price + 1", true),
    (
        "inspections",
        "payment_type",
        "CASE payment_type WHEN 'CASH' THEN 'CARD' ELSE 'CASH' END",
        true,
    ),
    ("inspections", "currency", "'EUR'", true),
    ("inspections", "snapshot_vin", "snapshot_vin || '1'", true),
    ("inspections", "snapshot_mileage_km", "snapshot_mileage_km + 1", true),
    ("inspections", "summary", "summary || 'x'", true),
    ("inspections", "recommendation", "recommendation || 'x'", true),
    ("inspections", "overall_score", "overall_score + 1", true),
    ("inspections", "public_slug", "public_slug || 'x'", true),
    ("inspections", "pdf_object_key", "'reports/other.pdf'", false),
    ("inspections", "version", "version + 1", false),
    (
        "inspections",
        "published_at",
        "published_at + interval '1 second'",
        true,
    ),
    ("inspections", "created_at", "created_at + interval '1 second'", true),
    ("inspections", "inspector_name", "inspector_name || 'x'", true),
    ("vehicles", "plate", "'35MSK999'", true),
    ("vehicles", "vin", "vin || '1'", true),
    ("vehicles", "brand", "brand || 'x'", true),
    ("vehicles", "model", "model || 'x'", true),
    ("vehicles", "year", "year + 1", true),
    (
        "vehicles",
        "type",
        "CASE type WHEN 'SUV' THEN 'VAN' ELSE 'SUV' END",
        true,
    ),
    (
        "vehicles",
        "fuel_type",
        "CASE fuel_type WHEN 'LPG' THEN 'OTHER' ELSE 'LPG' END",
        true,
    ),
    (
        "vehicles",
        "transmission",
        "CASE transmission WHEN 'MANUAL' THEN 'OTHER' ELSE 'MANUAL' END",
        true,
    ),
    ("vehicles", "color", "color || 'x'", true),
    ("vehicles", "mileage_km", "mileage_km + 1", true),
    ("vehicles", "factory_power_hp", "factory_power_hp + 1", true),
    ("inspection_forms", "general_note", "general_note || 'x'", true),
    ("inspection_form_answers", "status_code", "status_code || 'X'", true),
    ("inspection_form_answers", "status_label", "status_label || 'x'", true),
    ("inspection_form_answers", "severity", "severity || 'X'", true),
    (
        "inspection_form_answers",
        "numeric_value",
        "coalesce(numeric_value, 0) + 1",
        true,
    ),
    ("inspection_form_answers", "note", "note || 'x'", true),
    // Partners do not see these. It does not matter whether other members of an answer have changed.
    ("inspection_form_answers", "by_device", "true", true),
    ("inspection_form_answers", "measurement_id", "measurement_id", true),
    ("inspection_form_answers", "written_by", "written_by || 'x'", true),
    (
        "inspection_form_answers",
        "written_at",
        "written_at + interval '1 second'",
        true,
    ),
    ("photos", "position", "position + 100", true),
    ("photos", "kind", "'INTERIOR'", true),
    ("photos", "point_code", "'OTHER'", true),
    ("photos", "caption", "coalesce(caption, '') || 'x'", true),
    ("photos", "object_key", "object_key || 'x'", true),
    (
        "photos",
        "thumb_object_key",
        "coalesce(thumb_object_key, '') || 'x'",
        true,
    ),
    ("photos", "mime_type", "'image/png'", true),
    ("photos", "size_bytes", "size_bytes + 1", true),
    ("photos", "show_in_report", "NOT show_in_report", true),
    ("photos", "created_at", "created_at + interval '1 second'", true),
    ("organizations", "slug", "slug || 'x'", true),
    ("organizations", "name", "name || 'x'", true),
    ("organizations", "pii_mode", "'NONE'", true),
    ("organizations", "created_at", "created_at + interval '1 second'", false),
    ("branches", "code", "code || 'X'", false),
    ("branches", "code_folded", "code_folded || 'X'", false),
    ("branches", "name", "name || 'x'", true),
    ("branches", "city", "city || 'x'", true),
    ("branches", "district", "district || 'x'", true),
    ("branches", "address", "address || 'x'", true),
    ("branches", "telephone", "telephone || '1'", true),
    ("branches", "is_active", "NOT is_active", false),
    ("form_templates", "code", "code || 'X'", true),
    ("form_templates", "name", "name || 'x'", true),
    ("form_templates", "score_category", "score_category || 'X'", true),
    ("form_templates", "position", "position + 100", true),
    ("form_templates", "is_test_line", "false", false),
    ("form_templates", "is_required", "NOT is_required", false),
    // The PDF labels photos with them.
    ("form_templates", "photo_kinds", "'[]'", true),
    ("form_template_points", "code", "code || 'X'", true),
    ("form_template_points", "name", "name || 'x'", true),
    ("form_template_points", "unit", "coalesce(unit, '') || 'x'", true),
    ("form_template_points", "position", "position + 100", true),
    (
        "form_template_points",
        "is_required",
        "NOT coalesce(is_required, false)",
        false,
    ),
];

/// Keys, references to other rows, and the times themselves.
const FIXED: &[&str] = &[
    "id",
    "organization_id",
    "branch_id",
    "vehicle_id",
    "inspection_id",
    "template_id",
    "inspection_form_id",
    "point_id",
    "updated_at",
    "reports_changed_at",
    // The list that the inspectors' page offers. Partners see what a point has, not what it could have.
    "statuses",
    // The panel in the page's drawing of the car.
    "place",
    // The inspectors who may publish.
    "needs_review",
    "upload_id",
];

async fn with_fixture() -> (Database, Client) {
    let database = Database::create().await;
    let client = cluster::connect(&database.config()).await;
    (database, client)
}

/// The `updated_at` that partners see.
async fn updated_at(client: &Client, report: &str) -> DateTime<Utc> {
    let report: Uuid = report.parse().unwrap();
    let sql = "SELECT greatest(i.updated_at, o.reports_changed_at) FROM inspections i
               JOIN organizations o ON o.id = i.organization_id WHERE i.id = $1";
    client.query_one(sql, &[&report]).await.unwrap().get(0)
}

/// Whether a change of a report changes its `updated_at`. The change is rolled back.
async fn changes_updated_at(client: &mut Client, report: &str, change: &str) -> bool {
    let before = updated_at(client, report).await;
    client.batch_execute("BEGIN").await.unwrap();
    client
        .batch_execute(change)
        .await
        .unwrap_or_else(|error| panic!("{change}: {error:?}"));
    let after = updated_at(client, report).await;
    client.batch_execute("ROLLBACK").await.unwrap();
    assert!(after >= before, "{change}");
    after > before
}

/// The condition for the rows of a table that belong to a report.
fn of_report(table: &str, report: &str) -> String {
    let of = |column: &str| format!("id = (SELECT {column} FROM inspections WHERE id = '{report}')");
    let form = format!("(SELECT id FROM inspection_forms WHERE inspection_id = '{report}')");
    let template = format!("(SELECT template_id FROM inspection_forms WHERE inspection_id = '{report}' LIMIT 1)");
    match table {
        "inspections" => format!("id = '{report}'"),
        "vehicles" => of("vehicle_id"),
        "organizations" => of("organization_id"),
        "branches" => of("branch_id"),
        "inspection_forms" | "photos" => {
            format!("id = (SELECT id FROM {table} WHERE inspection_id = '{report}' ORDER BY id LIMIT 1)")
        }
        "inspection_form_answers" => format!("inspection_form_id IN {form}"),
        "form_templates" => format!("id = {template}"),
        _ => format!(
            "id = (SELECT id FROM form_template_points WHERE template_id = {template} ORDER BY position LIMIT 1)"
        ),
    }
}

/// REP-13
#[tokio::test]
async fn exactly_the_columns_that_partners_see_change_updated_at() {
    let (_database, mut client) = with_fixture().await;
    for (table, column, value, is_seen) in COLUMNS {
        let change = format!(
            "UPDATE {table} SET {column} = {value} WHERE {}",
            of_report(table, PUBLISHED)
        );
        assert_eq!(
            changes_updated_at(&mut client, PUBLISHED, &change).await,
            *is_seen,
            "{table}.{column}"
        );
        // Writing the same value again does not change the report.
        if !["inspection_form_answers", "photos"].contains(table) {
            let same = format!(
                "UPDATE {table} SET {column} = {column} WHERE {}",
                of_report(table, PUBLISHED)
            );
            assert!(
                !changes_updated_at(&mut client, PUBLISHED, &same).await,
                "{table}.{column}"
            );
        }
    }
    // A new column must be in one of the two lists.
    let tables: BTreeSet<&str> = COLUMNS.iter().map(|(table, ..)| *table).collect();
    let tables: Vec<&str> = tables.into_iter().collect();
    let sql = "SELECT table_name::text, column_name::text FROM information_schema.columns
               WHERE table_schema = 'public' AND table_name = ANY ($1) AND NOT column_name = ANY ($2)";
    let fixed: Vec<&str> = FIXED.to_vec();
    for row in client.query(sql, &[&tables, &fixed]).await.unwrap() {
        let (table, column): (&str, &str) = (row.get(0), row.get(1));
        let is_known = COLUMNS.iter().any(|known| (known.0, known.1) == (table, column));
        assert!(is_known, "add {table}.{column} to COLUMNS or FIXED");
    }
}

/// REP-13
#[tokio::test]
async fn added_and_removed_parts_of_a_report_change_its_updated_at_only() {
    let (_database, mut client) = with_fixture().await;
    let photo = |kind: &str, shown: bool| {
        format!(
            "INSERT INTO photos (id, organization_id, inspection_id, position, kind, object_key, mime_type, size_bytes, show_in_report)
             SELECT gen_random_uuid(), organization_id, id, 99, '{kind}', 'photos/x.jpg', 'image/jpeg', 1, {shown}
             FROM inspections WHERE id = '{PUBLISHED}'"
        )
    };
    let answers = of_report("inspection_form_answers", PUBLISHED);
    for (change, is_seen) in [
        (photo("DAMAGE", true), true),
        (photo("DAMAGE", false), false),
        (photo("REGISTRATION", true), false),
        (
            format!("DELETE FROM photos WHERE inspection_id = '{PUBLISHED}' AND show_in_report"),
            true,
        ),
        (
            format!("DELETE FROM photos WHERE inspection_id = '{PUBLISHED}' AND kind = 'REGISTRATION'"),
            false,
        ),
        (format!("DELETE FROM inspection_form_answers WHERE {answers}"), true),
        (
            format!(
                "INSERT INTO inspection_forms (id, organization_id, inspection_id, template_id)
                 SELECT gen_random_uuid(), organization_id, '{PUBLISHED}', id FROM form_templates
                 WHERE organization_id = (SELECT organization_id FROM inspections WHERE id = '{OTHER_BRANCH}')
                   AND id NOT IN (SELECT template_id FROM inspection_forms WHERE inspection_id = '{PUBLISHED}')"
            ),
            false,
        ),
        (
            format!(
                "INSERT INTO form_template_points (id, organization_id, template_id, code, name, position)
                 SELECT gen_random_uuid(), organization_id, template_id, 'NEW', 'Yeni', 50 FROM inspection_forms
                 WHERE inspection_id = '{PUBLISHED}'"
            ),
            true,
        ),
        (
            "DELETE FROM form_template_points WHERE code = 'HANDBRAKE_LEFT'".to_owned(),
            true,
        ),
    ] {
        assert_eq!(
            changes_updated_at(&mut client, PUBLISHED, &change).await,
            is_seen,
            "{change}"
        );
    }
    // A separate form.
    let form = format!(
        "INSERT INTO inspection_forms (id, organization_id, inspection_id, template_id)
         SELECT gen_random_uuid(), organization_id, '{OTHER_BRANCH}', template_id FROM inspection_forms WHERE inspection_id = '{PUBLISHED}' LIMIT 1"
    );
    assert!(changes_updated_at(&mut client, OTHER_BRANCH, &form).await);
    assert!(!changes_updated_at(&mut client, PUBLISHED, &form).await);
    let removed = format!("DELETE FROM inspection_form_answers WHERE {answers}");
    assert!(!changes_updated_at(&mut client, OTHER_BRANCH, &removed).await);
}

/// REP-13
#[tokio::test]
async fn updated_at_of_a_hidden_report_changes_only_when_it_becomes_visible() {
    let (_database, mut client) = with_fixture().await;
    let form = format!("(SELECT id FROM inspection_forms WHERE inspection_id = '{DRAFT}')");
    for unseen in [
        format!("UPDATE inspections SET summary = 'x', status = 'IN_REVIEW' WHERE id = '{DRAFT}'"),
        format!(
            "INSERT INTO inspection_form_answers (inspection_form_id, point_id, organization_id, status_code, status_label,
                                                  severity, by_device, written_by, written_at)
             SELECT f.id, p.id, f.organization_id, 'GOOD', 'İyi', 'NONE', true, 'device:x', now()
             FROM inspection_forms f JOIN form_template_points p USING (template_id) WHERE f.id IN {form}
             ON CONFLICT (inspection_form_id, point_id, organization_id) DO UPDATE SET written_at = excluded.written_at"
        ),
        format!(
            "UPDATE vehicles SET mileage_km = 1 WHERE {}",
            of_report("vehicles", DRAFT)
        ),
    ] {
        assert!(!changes_updated_at(&mut client, DRAFT, &unseen).await, "{unseen}");
    }
    for statement in [
        format!("UPDATE inspections SET status = 'PUBLISHED', published_at = now() WHERE id = '{DRAFT}'"),
        format!("UPDATE inspections SET status = 'CANCELLED', published_at = now() WHERE id = '{DRAFT}'"),
    ] {
        assert!(changes_updated_at(&mut client, DRAFT, &statement).await, "{statement}");
    }
    // A published report that goes back to revision becomes hidden, and later visible again with a later time.
    let back = format!("UPDATE inspections SET status = 'REVISION_REQUESTED' WHERE id = '{PUBLISHED}'");
    assert!(changes_updated_at(&mut client, PUBLISHED, &back).await);
}

#[tokio::test]
async fn updated_at_increases_even_if_the_clock_was_set_back() {
    let (_database, client) = with_fixture().await;
    let ahead = format!("UPDATE inspections SET updated_at = now() + interval '1 hour' WHERE id = '{PUBLISHED}'");
    client.batch_execute(&ahead).await.unwrap();
    let before = updated_at(&client, PUBLISHED).await;
    let change = format!("UPDATE inspections SET summary = 'x' WHERE id = '{PUBLISHED}'");
    client.batch_execute(&change).await.unwrap();
    assert!(updated_at(&client, PUBLISHED).await > before);
}
