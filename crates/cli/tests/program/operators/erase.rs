//! Erasure on request and by age. Each test searches the whole database, so that a new column with personal data is found.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use partner_api::publishing::Worker;
use partner_api_tests::cluster::{self, Database};
use partner_api_tests::fixture::inspections::{ARCHIVED, DRAFT, PUBLISHED, UNKNOWN};
use partner_api_tests::log::logging;
use partner_api_tests::measurements::package;
use partner_api_tests::{ALPHA, Service};
use serde_json::{Value, json};
use tokio_postgres::Client;

use super::program::Deployment;

/// The vehicle of the report `DRAFT`, and a name that its inspector wrote into every text.
const VEHICLE: &str = "01974d1d-0000-7d00-8000-000000000205";
const VIN: &str = "WBA8E9G50GN000205";
const PLATE: &str = "35OPN205";
const NAME: &str = "Kadir Zumrut";

/// Writes the name into the report's texts, and adds a history, a transition, photos and a PDF, whose keys and content contain it
/// too.
const TRACES: &str = "\
UPDATE inspections SET summary = 'NAME', recommendation = 'NAME', discount_name = 'NAME' WHERE id = 'REPORT';
UPDATE inspection_forms SET general_note = 'NAME' WHERE inspection_id = 'REPORT';
UPDATE inspection_form_answers SET note = 'NAME'
WHERE inspection_form_id IN (SELECT id FROM inspection_forms WHERE inspection_id = 'REPORT');
INSERT INTO inspection_form_answer_history
    (inspection_form_id, point_id, organization_id, status_code, status_label, severity, note, by_device, written_by, written_at)
SELECT a.inspection_form_id, a.point_id, a.organization_id, 'GOOD', 'GOOD', 'NONE', 'NAME', false, 'Ayşe', now()
FROM inspection_form_answers a JOIN inspection_forms f ON f.id = a.inspection_form_id WHERE f.inspection_id = 'REPORT';
INSERT INTO inspectors (id, organization_id, name, token_hash, token_hint)
SELECT gen_random_uuid(), organization_id, 'Fatma', sha256('Fatma'), 'hint' FROM inspections WHERE id = 'REPORT';
INSERT INTO inspection_transitions (inspection_id, number, organization_id, to_status, reason, inspector_id, inspector_name)
SELECT i.id, 900, i.organization_id, 'DRAFT', 'NAME', p.id, p.name FROM inspections i JOIN inspectors p USING (organization_id)
WHERE i.id = 'REPORT' AND p.name = 'Fatma';
INSERT INTO plate_corrections (inspection_id, number, organization_id, old_plate, new_plate, inspector_id, inspector_name)
SELECT i.id, 1, i.organization_id, CASE i.id WHEN 'REPORT' THEN '35OPN999' ELSE '35OPN205' END, i.plate, p.id, p.name
FROM inspections i JOIN inspectors p USING (organization_id) WHERE p.name = 'Fatma';
INSERT INTO photos
    (id, organization_id, inspection_id, position, kind, caption, object_key, thumb_object_key, mime_type, size_bytes)
SELECT gen_random_uuid(), organization_id, id, 90, 'REGISTRATION', 'NAME', 'photos/35OPN205.jpg', 'thumbs/35OPN205.jpg',
    'image/jpeg', 9
FROM inspections WHERE id = 'REPORT';
INSERT INTO published_pdfs (object_key, organization_id, inspection_id, sha256, size_bytes)
SELECT key, organization_id, id, sha256('pdf'), 9
FROM inspections, unnest(ARRAY['reports/old-35OPN205.pdf', 'reports/35OPN205.pdf']) key
WHERE id = 'REPORT';
UPDATE inspections SET pdf_object_key = 'reports/35OPN205.pdf' WHERE id = 'REPORT';
INSERT INTO report_renderings (inspection_id, organization_id, fingerprint)
SELECT id, organization_id, 'NAME' FROM inspections WHERE id = 'REPORT'";

/// The objects of [`TRACES`].
const OBJECTS: [&str; 4] = [
    "photos/35OPN205.jpg",
    "thumbs/35OPN205.jpg",
    "reports/35OPN205.pdf",
    "reports/old-35OPN205.pdf",
];

/// Returns the columns of all tables in which one of the texts occurs, ignoring case and separators. Bytes are searched as text.
async fn columns_with(client: &Client, texts: &[&str]) -> Vec<String> {
    let columns = "SELECT c.oid::regclass::text, quote_ident(a.attname), a.atttypid = 'bytea'::regtype
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
          AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1, 2";
    let texts: Vec<String> = texts.iter().map(|text| text.replace(' ', "").to_uppercase()).collect();
    let mut found = Vec::new();
    for column in client.query(columns, &[]).await.unwrap() {
        let (table, name, is_bytes): (String, String, bool) = (column.get(0), column.get(1), column.get(2));
        let text = match is_bytes {
            true => format!("encode({name}, 'escape')"),
            false => format!("{name}::text"),
        };
        let search = format!(
            "SELECT EXISTS (SELECT FROM {table}, unnest($1::text[]) AS wanted
                WHERE strpos(regexp_replace(upper({text}), '[^A-Z0-9]', '', 'g'), wanted) > 0)"
        );
        if client.query_one(&search, &[&texts]).await.unwrap().get(0) {
            found.push(format!("{table}.{name}"));
        }
    }
    found.sort();
    found
}

/// Returns the files whose path or content contains one of the texts.
fn files_with(folder: &Path, texts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, texts));
        } else {
            let text = format!(
                "{} {}",
                path.display(),
                String::from_utf8_lossy(&fs::read(&path).unwrap())
            );
            if texts.iter().any(|wanted| text.contains(wanted)) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// OPS-11
#[tokio::test]
async fn an_erased_vehicle_is_in_no_table_no_file_and_no_log() {
    let (log, _guard) = logging("debug,refinery_core=warn,tokio_postgres=warn");
    let service = Service::start().await;
    let person = [VIN, PLATE, "35 OPN 205", NAME];
    // Applied, sent again with another body, pending at no report, and sent with the external ID of another vehicle.
    for (external_id, plate) in [
        ("35OPN205-1", "35 OPN 205"),
        ("other", "34 ABC 123"),
        ("other", "35 opn-205"),
    ] {
        let sent = service.measure(&ALPHA, package(external_id, plate)).await;
        assert!(sent.status.is_success(), "{sent:?}");
    }
    let mismatch = package("35OPN205-1", "35 OPN 205").replace("2.85", "2.86");
    service.measure(&ALPHA, mismatch).await.assert_status(200);
    let traces = TRACES.replace("NAME", NAME).replace("REPORT", DRAFT);
    service.db.batch_execute(&traces).await.unwrap();
    // As if it had arrived before the report was opened.
    let waiting =
        "INSERT INTO measurements (id, partner_id, key_id, organization_id, branch_id, plate, measured_at, raw,
                       raw_sha256, status, point_codes, point_texts)
                   SELECT gen_random_uuid(), partner_id, key_id, organization_id, branch_id, plate, measured_at, raw,
                       raw_sha256, 'PENDING', point_codes, point_texts
                   FROM measurements WHERE external_id = '35OPN205-1'";
    service.db.batch_execute(waiting).await.unwrap();
    let storage = service.context().storage.clone();
    for key in OBJECTS {
        let kind = if key.ends_with("pdf") {
            "application/pdf"
        } else {
            "image/jpeg"
        };
        storage.put(key, NAME.into(), kind).await.unwrap();
    }
    assert_eq!(
        columns_with(&service.db, &person).await,
        [
            "inspection_form_answer_history.note",
            "inspection_form_answers.note",
            "inspection_forms.general_note",
            "inspection_transitions.reason",
            "inspections.discount_name",
            "inspections.pdf_object_key",
            "inspections.plate",
            "inspections.recommendation",
            "inspections.snapshot_vin",
            "inspections.summary",
            "measurement_mismatches.raw",
            "measurements.external_id",
            "measurements.plate",
            "measurements.raw",
            "photos.caption",
            "photos.object_key",
            "photos.thumb_object_key",
            "plate_corrections.new_plate",
            "plate_corrections.old_plate",
            "published_pdfs.object_key",
            "report_renderings.fingerprint",
            "vehicles.plate",
            "vehicles.vin",
        ]
    );
    assert_eq!(files_with(service.objects(), &person).len(), OBJECTS.len());

    let mut deployment = Deployment::over(service.database(), None);
    cluster::OPERATOR.clone_into(&mut deployment.user);
    let counts = json!({ "reports": 1, "vehicles": 1, "measurements": 2, "files": 4, "report_ids": [DRAFT] });
    for name in [VIN, "35 OPN 205", VEHICLE] {
        assert_eq!(
            deployment.json(&["erase", "vehicle", name, "--dry-run"]),
            counts,
            "{name}"
        );
    }
    assert_eq!(service.count("orphaned_objects").await, 0);
    let erased = deployment.run(&["erase", "vehicle", VIN]);
    assert_eq!(
        erased.stdout,
        "Erased 1 report, 1 vehicle, 2 measurements and 4 files. The service deletes the files within a minute.\n\n\
         undo: cannot be undone: only a backup still has the data\n"
    );
    let worker = Worker::new(service.pool().clone(), storage, 1);
    worker.delete_orphaned().await.unwrap();

    assert_eq!(columns_with(&service.db, &person).await, Vec::<String>::new());
    assert_eq!(files_with(service.objects(), &person), Vec::<String>::new());
    let entries = deployment.json(&["audit", "list", "--kind", "vehicle"]);
    assert_eq!(
        (&entries[0]["subject"], &entries[0]["after"]),
        (&json!(VEHICLE), &counts)
    );
    let report = format!("/api/v1/partner/inspections/{DRAFT}");
    service.get(&ALPHA, &report).await.assert_status(404);
    deployment.run(&["erase", "vehicle", VIN]).failed(3, "no vehicle");
    // The other package of the external ID is still there, and so are the values of the erased one.
    let left = "SELECT plate, status, octet_length(raw) > 0 AS has_raw, point_texts FROM measurements ORDER BY 1, 2, 3";
    let value = json!(["2.85"]);
    assert_eq!(
        service.rows(left).await,
        json!([
            { "plate": "", "status": "DISCARDED", "has_raw": false, "point_texts": value },
            { "plate": "", "status": "DISCARDED", "has_raw": false, "point_texts": value },
            { "plate": "34ABC123", "status": "PENDING", "has_raw": true, "point_texts": value },
        ])
    );
    let log = log.text();
    for text in person {
        assert!(!log.contains(text), "{text} is in the log:\n{log}");
    }
}

/// Returns the content of each table without what belongs to a report, its vehicle, or the erasure itself.
async fn without(client: &Client, report: &str) -> BTreeMap<String, String> {
    let tables = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
                  AND relname NOT IN ('audit_log', 'orphaned_objects')";
    let mut contents = BTreeMap::new();
    for row in client.query(tables, &[]).await.unwrap() {
        let table: String = row.get(0);
        let content = format!(
            "SELECT coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '') FROM {table} t
             WHERE NOT EXISTS (
                SELECT FROM (SELECT '{report}' UNION SELECT id::text FROM inspection_forms WHERE inspection_id = '{report}'
                             UNION SELECT vehicle_id::text FROM inspections WHERE id = '{report}'
                ) AS ids (id) WHERE strpos(t::text, ids.id) > 0)"
        );
        contents.insert(table, client.query_one(&content, &[]).await.unwrap().get(0));
    }
    contents
}

/// OPS-11
#[tokio::test]
async fn an_erased_report_leaves_all_others_as_they_are_and_a_dry_run_changes_nothing() {
    let database = Database::create().await;
    let client = cluster::connect(&database.config()).await;
    let deployment = Deployment::of(database);
    let others = without(&client, PUBLISHED).await;
    let all = without(&client, UNKNOWN).await;
    let number = "IZM-2026-000201";
    let counts = deployment.json(&["erase", "report", number, "--dry-run"]);
    assert_eq!(
        counts,
        json!({ "reports": 1, "vehicles": 1, "measurements": 0, "files": 7, "report_ids": [PUBLISHED] })
    );
    assert_eq!(without(&client, UNKNOWN).await, all);
    assert_eq!(deployment.json(&["erase", "report", number])["result"], counts);
    assert_eq!(without(&client, UNKNOWN).await, others);
    deployment.run(&["erase", "report", number]).failed(3, "no report");
    // A vehicle is kept while another report has it.
    let shared = format!(
        "UPDATE inspections SET vehicle_id = (SELECT vehicle_id FROM inspections WHERE id = '{ARCHIVED}') WHERE id = '{DRAFT}'"
    );
    client.batch_execute(&shared).await.unwrap();
    let kept = deployment.json(&["erase", "report", DRAFT, "--dry-run"]);
    assert_eq!(kept["vehicles"], 0);
    assert_eq!(deployment.json(&["erase", "report", DRAFT])["result"], kept);
}

/// OPS-11
#[tokio::test]
async fn reports_and_measurements_past_their_retention_are_erased_by_age() {
    let service = Service::start().await;
    service
        .measure(&ALPHA, package("waits", "34 ABC 123"))
        .await
        .assert_status(201);
    service
        .measure(&ALPHA, package("waits-too", "34 ABC 124"))
        .await
        .assert_status(201);
    let old = format!(
        "UPDATE measurements SET received_at = now() - interval '31 days' WHERE external_id = 'waits';
         UPDATE inspections SET created_at = now() - interval '10 years 1 day' WHERE id IN ('{PUBLISHED}', '{ARCHIVED}');
         UPDATE inspections SET created_at = now() - interval '9 years' WHERE id = '{DRAFT}'"
    );
    service.db.batch_execute(&old).await.unwrap();
    let mut deployment = Deployment::over(service.database(), None);
    cluster::OPERATOR.clone_into(&mut deployment.user);
    let reports = service.count("inspections").await;

    // Without a limit, nothing is past it.
    let nothing = deployment.json(&["purge"]);
    assert_eq!((&nothing["reports"], &nothing["measurements"]), (&json!(0), &json!(0)));
    let purge = "PARTNER_API_REPORT_YEARS=10 PARTNER_API_UNUSED_MEASUREMENT_DAYS=30 partner-api purge";
    let planned = deployment.shell(&format!("{purge} --dry-run")).stdout;
    assert_eq!(planned, "would erase  2 reports\nwould erase  1 unused measurement\n");
    assert_eq!(service.count("inspections").await, reports);
    let purged = deployment.shell(&format!("{purge} --json")).json();
    assert_eq!(
        (&purged["result"]["reports"], &purged["result"]["measurements"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(service.count("inspections").await, reports - 2);
    let left = service
        .rows("SELECT external_id, plate FROM measurements ORDER BY 1")
        .await;
    assert_eq!(
        left,
        json!([{ "external_id": "waits-too", "plate": "34ABC124" }, { "external_id": null, "plate": "" }])
    );
    let again = deployment.shell(purge);
    assert_eq!(again.stdout, "nothing  is past its retention period\n");

    let erase = ["erase", "reports", "--years", "8"];
    assert_eq!(deployment.json(&[&erase[..], &["--dry-run"]].concat())["reports"], 1);
    assert_eq!(deployment.json(&erase)["result"]["reports"], 1);
    assert_eq!(deployment.json(&erase)["reports"], 0);
    let commands = deployment.json(&["audit", "list", "--kind", "reports"]);
    let commands: Vec<_> = commands
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["command"].clone())
        .collect();
    assert_eq!(Value::from(commands), json!(["erase reports", "purge"]));
    deployment
        .run(&["erase", "reports", "--years", "0"])
        .failed(2, "--years");
}

/// OPS-11
#[tokio::test]
async fn entries_of_the_audit_log_and_of_the_imports_past_their_retention_are_deleted_only_by_purge() {
    let database = Database::create().await;
    let client = cluster::connect(&database.config()).await;
    let entries = "INSERT INTO audit_log (occurred_at, actor, host, command, kind, subject, action)
         SELECT now() - years * interval '1 year 1 day', 'ops', 'db', 'key revoke', 'key', 'k', years FROM unnest('{10,3,2}'::int[]) years;
         INSERT INTO imports (imported_at, sha256, size_bytes, kind, file, lines, inserted, updated, unchanged)
         SELECT now() - years * interval '1 year 1 day', sha256(''), 0, 'forms', 'f', 0, 0, 0, 0 FROM unnest('{9,1}'::int[]) years";
    client.batch_execute(entries).await.unwrap();
    let mut deployment = Deployment::of(database);
    cluster::OPERATOR.clone_into(&mut deployment.user);
    let nothing = deployment.shell("partner-api purge");
    assert_eq!(nothing.stdout, "nothing  is past its retention period\n");
    let purge = "PARTNER_API_AUDIT_YEARS=3 partner-api purge";
    let planned = deployment.shell(&format!("{purge} --dry-run")).stdout;
    assert_eq!(
        planned,
        "would delete  2 entries of the audit log and 1 of the list of imports\n"
    );
    assert_eq!(
        (deployment.count("audit_log").await, deployment.count("imports").await),
        (3, 2)
    );
    let purged = deployment.shell(&format!("{purge} --json")).json();
    assert_eq!(
        (&purged["result"]["audit_entries"], &purged["result"]["imports"]),
        (&json!(2), &json!(1))
    );
    let left = deployment.json(&["audit", "list"]);
    let left: Vec<_> = left.as_array().unwrap().iter().map(|entry| &entry["what"]).collect();
    assert_eq!(
        json!(left),
        json!(["Deleted 2 entries of the audit log and 1 of the list of imports.", "2"])
    );
    assert_eq!(deployment.count("imports").await, 1);
    assert_eq!(
        deployment.shell(purge).stdout,
        "nothing  is past its retention period\n"
    );
    // Neither by another way, nor too early.
    let user = cluster::connect(deployment.config.clone().user(cluster::OPERATOR)).await;
    for (statement, expected) in [
        (
            "SELECT set_config('partner_api.is_erasing', 'on', true); DELETE FROM audit_log",
            "permission denied",
        ),
        (
            "SELECT purge_audit_log(now() - interval '11 months', 1)",
            "still needed",
        ),
    ] {
        let error = user.batch_execute(statement).await.unwrap_err();
        assert!(format!("{error:?}").contains(expected), "{statement}: {error:?}");
    }
}
