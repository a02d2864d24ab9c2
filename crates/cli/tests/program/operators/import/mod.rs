//! `partner-api import`: files with their names, encodings and folders; and imports that are repeated, concurrent or interrupted.

mod mistakes;

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use partner_api_tests::cluster::{self, Database};
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::operators::program::{Deployment, Ran};

/// A deployment over a database with the fixture data of the conformance tests.
async fn deployment() -> Deployment {
    Deployment::of(Database::create().await)
}

impl Deployment {
    /// Writes a file into the deployment's folder.
    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    /// Imports a file with this content.
    fn import(&self, name: &str, bytes: impl AsRef<[u8]>, options: &[&str]) -> Ran {
        self.put(name, bytes);
        self.run(&[&["import", name], options].concat())
    }
}

/// Formats values as NDJSON.
fn ndjson(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn vehicle(vin: &str) -> Value {
    json!({
        "plate": "34 abc 123", "vin": vin, "brand": "Fiat", "model": "Egea", "year": 2020, "type": "SEDAN",
        "fuel_type": "DIESEL", "transmission": "MANUAL", "color": "Beyaz", "mileage_km": 90_000,
    })
}

/// A report of the branch ANK-01, on one of the vehicles of the fixture data.
fn report(number: &str) -> Value {
    json!({
        "report_number": number, "organization": "anadolu-ekspertiz", "branch": "ank-01", "vehicle": "W0L0SDL6884000211",
        "status": "PUBLISHED", "plate": "06 MSK 211", "package_name": "Tam", "package_base_price": 2500, "base_price": 2500.5,
        "final_price": 2250.45, "payment_type": "CARD", "snapshot_vin": "W0L0SDL6884000211", "snapshot_mileage_km": 166_000,
        "public_slug": format!("s-{number}"), "published_at": "2026-05-12T11:40:00+03:00", "created_at": "2026-05-12T11:00:00+03:00",
    })
}

/// A form of a report of the fixture data with an answer that has these members.
fn form(members: Value) -> Value {
    let mut answer = json!({
        "point": "FRONT_HOOD", "status_code": "PAINTED", "status_label": "Boyalı", "severity": "MEDIUM", "written_by": "Ayşe",
        "written_at": "2026-05-12T08:00:00Z",
    });
    for (name, value) in members.as_object().unwrap() {
        answer[name] = value.clone();
    }
    json!({ "organization": "anadolu-ekspertiz", "inspection": "ANK-2026-000211", "template": "BODY", "answers": [answer] })
}

fn with(mut line: Value, field: &str, value: Value) -> Value {
    line[field] = value;
    line
}

fn without(mut line: Value, field: &str) -> Value {
    line.as_object_mut().unwrap().remove(field);
    line
}

#[tokio::test]
async fn a_file_of_the_wrong_type_is_rejected_with_its_actual_type() {
    let deployment = deployment().await;
    let long = [b"{\"plate\": \"".as_slice(), &vec![b'x'; 3 << 20], b"\"}\n"].concat();
    for (name, bytes, words) in [
        (
            "vehicles.ndjson",
            b"\xFF\xFE{\0".to_vec(),
            "vehicles.ndjson:1: the file: found UTF-16; expected text in UTF-8",
        ),
        ("vehicles.csv", b"\x1F\x8B\x08".to_vec(), "found a gzip file"),
        (
            "vehicles.csv",
            b"PK\x03\x04".to_vec(),
            "found a ZIP archive, such as a spreadsheet",
        ),
        (
            "vehicles.ndjson",
            b"\n{\"plate\": \"\xFF\"}".to_vec(),
            "2: the line: expected text in UTF-8",
        ),
        (
            "branches.csv",
            b"organization,code,name,city\nege-ekspertiz,X,\xFF,Z\n".to_vec(),
            "2: name: expected text in UTF-8",
        ),
        (
            "vehicles.ndjson",
            [b"{}\n".as_slice(), &long].concat(),
            "2: the line: expected at most 1048576 bytes in a line",
        ),
        (
            "vehicles.csv",
            long,
            "1: the line: expected at most 1048576 bytes in a line",
        ),
    ] {
        let ran = deployment.import(name, bytes, &[]);
        assert_eq!(ran.code, 2, "{words}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{words:?} is not in {}", ran.stderr);
    }
}

#[tokio::test]
async fn a_file_may_have_a_byte_order_mark_crlf_blank_lines_reordered_columns_or_no_content() {
    let deployment = deployment().await;
    let csv = "\u{feff}code,organization,city,name\r\n\r\n=1+1,ege-ekspertiz,\"İzmir, \"\"Alsancak\"\"\",Şube 1\r\n\
               @2,ege-ekspertiz,\"two\r\nlines\",Şube 2\r\n";
    let ran = deployment.import("branches.csv", csv, &[]);
    assert!(
        ran.stderr.contains("branches.csv:4: city: found `two\\r\\nlines`"),
        "{}",
        ran.stderr
    );
    let ran = deployment.import("branches.csv", csv.replace("two\r\nlines", "two"), &["--json"]);
    assert_eq!(
        (&ran.json()[0]["inserted"], &ran.json()[0]["lines"]),
        (&json!(2), &json!(2))
    );
    let client = cluster::connect(&deployment.config).await;
    let row = client
        .query_one(
            "SELECT code, city, code_folded FROM branches WHERE name = 'Şube 1'",
            &[],
        )
        .await
        .unwrap();
    let stored: [String; 3] = [row.get(0), row.get(1), row.get(2)];
    assert_eq!(stored, ["=1+1", "İzmir, \"Alsancak\"", "=1+1"]);
    for (name, content) in [
        ("photos.ndjson", ""),
        ("vehicles.ndjson", "\n \n"),
        ("thresholds.csv", "organization,point_code\n"),
    ] {
        let ran = deployment.import(name, content, &["--json"]).json();
        assert_eq!(
            (&ran[0]["lines"], &ran[0]["inserted"]),
            (&json!(0), &json!(0)),
            "{name}"
        );
    }
}

#[tokio::test]
async fn an_unreadable_file_and_a_file_of_unknown_kind_are_reported() {
    let deployment = deployment().await;
    fs::create_dir(deployment.folder.path().join("empty")).unwrap();
    deployment.put("things.ndjson", "");
    deployment.put("vehicles.txt", "");
    for (arguments, words) in [
        (&["import", "vehicles.ndjson"][..], "vehicles.ndjson: No such file"),
        (&["import", "empty"], "no file to import"),
        (
            &["import", "things.ndjson"],
            "the file name does not start with a kind; give --kind",
        ),
        (
            &["import", "vehicles.txt"],
            "ends in neither .ndjson nor .csv; give --format",
        ),
        (&["import", "-"], "needs --kind and --format"),
        (
            &["import", "things.ndjson", "--kind", "vehicle"],
            "did you mean `vehicles`?",
        ),
        (&["import"], "FILE"),
    ] {
        deployment.run(arguments).failed(2, words);
    }
    let ran = deployment.shell("printf '' | partner-api import - --kind photos --format ndjson --json");
    assert_eq!(ran.json()[0]["lines"], 0);
}

/// IMP-5
#[tokio::test]
async fn a_second_import_of_a_folder_continues_with_the_remaining_files() {
    let deployment = deployment().await;
    fs::create_dir(deployment.folder.path().join("all")).unwrap();
    let branch = json!({ "organization": "yeni", "code": "Y-1", "name": "Yeni", "city": "İzmir" });
    deployment.put("all/branches.ndjson", ndjson(&[without(branch.clone(), "city")]));
    deployment.put(
        "all/organizations.csv",
        "slug,name,pii_mode\nyeni,Yeni Ekspertiz,MASKED\n",
    );
    deployment.put("all/notes.txt", "");
    let ran = deployment.run(&["import", "all"]);
    assert_eq!(ran.code, 2);
    let messages: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(
        messages,
        [
            "all: skipped, because the names do not start with a kind: notes.txt",
            "error: all/branches.ndjson:1: city: found nothing; expected a value (city)",
            "all/branches.ndjson: one error; nothing was imported from this file",
            "all/organizations.csv was imported: 1 lines, 1 new, 0 changed, 0 unchanged",
        ]
    );
    deployment.put("all/branches.ndjson", ndjson(&[branch]));
    let ran = deployment.json(&["import", "all"]);
    assert!(
        ran[0]["state"].as_str().unwrap().starts_with("already imported"),
        "{ran}"
    );
    assert_eq!(ran[1]["inserted"], 1);
}

/// IMP-3, IMP-5
#[tokio::test]
async fn an_existing_line_is_unchanged_and_an_imported_file_is_skipped() {
    let deployment = deployment().await;
    let lines = ndjson(&[report("N-1"), report("N-2")]);
    let first = deployment
        .import("inspections.ndjson", &lines, &["--dry-run", "--json"])
        .json();
    assert_eq!(
        (&first[0]["inserted"], &first[0]["state"]),
        (&json!(2), &json!("not imported (--dry-run)"))
    );
    assert_eq!(deployment.count("imports").await, 0);
    let first = deployment.run(&["import", "inspections.ndjson", "--json"]).json();
    assert_eq!((&first[0]["inserted"], &first[0]["unchanged"]), (&json!(2), &json!(0)));
    let queued = "report_renderings WHERE inspection_id IN (SELECT id FROM inspections WHERE report_number LIKE 'N-%')";
    assert_eq!(deployment.count(queued).await, 2);

    let known = deployment.run(&["import", "inspections.ndjson", "--json"]).json();
    assert!(
        known[0]["state"].as_str().unwrap().starts_with("already imported"),
        "{known}"
    );
    let again = deployment
        .run(&["import", "inspections.ndjson", "--again", "--json"])
        .json();
    assert_eq!((&again[0]["inserted"], &again[0]["unchanged"]), (&json!(0), &json!(2)));
    // Another file with the same report, written differently, and a new one.
    let more = with(with(report("N-2"), "base_price", json!(2500.50)), "summary", json!(""));
    let more = deployment
        .import("inspections-2.ndjson", ndjson(&[more, report("N-3")]), &["--json"])
        .json();
    assert_eq!((&more[0]["inserted"], &more[0]["unchanged"]), (&json!(1), &json!(1)));

    let entry = &deployment.json(&["audit", "list", "--kind", "import", "--limit", "1"])[0];
    assert_eq!(
        entry["what"],
        "Of inspections-2.ndjson (inspections), lines 1 to 2 of 2: 1 new, 0 changed."
    );
    assert_eq!(entry["after"]["sha256"], entry["subject"]);
}

/// IMP-6
#[tokio::test]
async fn the_second_of_two_concurrent_imports_waits_and_finds_the_rows_of_the_first() {
    let deployment = deployment().await;
    let before = deployment.count("vehicles").await;
    let lines: Vec<_> = (0..3_000).map(|number| vehicle(&format!("VIN{number}"))).collect();
    deployment.put("vehicles.ndjson", ndjson(&lines));
    let run = || {
        deployment
            .run(&["import", "vehicles.ndjson", "--again", "--json"])
            .json()
    };
    let (one, other) = std::thread::scope(|scope| {
        let one = scope.spawn(run);
        let other = run();
        (one.join().unwrap(), other)
    });
    let mut inserted = [&one, &other].map(|ran| ran[0]["inserted"].as_u64().unwrap());
    inserted.sort_unstable();
    assert_eq!(inserted, [0, 3_000]);
    assert_eq!(deployment.count("vehicles").await, before + 3_000);
}

/// Starts an import of 40 reports in parts of 10. Its second part waits, because another session has inserted one of its report
/// numbers without committing. Returns when all other parts are imported.
async fn waiting_import(deployment: &Deployment) -> (Child, Client) {
    let lines: Vec<_> = (1..=40).map(|number| report(&format!("N-{number}"))).collect();
    deployment.put("inspections.ndjson", ndjson(&lines));
    let other = cluster::connect(&deployment.config).await;
    other.batch_execute("BEGIN").await.unwrap();
    assert_eq!(other.execute(INSERT_REPORT, &[]).await.unwrap(), 1);
    let mut program = Command::new(env!("CARGO_BIN_EXE_partner-api"));
    let mut child = deployment
        .prepare(program.args(["import", "inspections.ndjson", "--part", "10"]))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let waits = "pg_stat_activity WHERE datname = current_database() AND application_name = 'partner-api import' \
                 AND wait_event_type = 'Lock'";
    let started = Instant::now();
    let others = "inspections WHERE report_number LIKE 'N-%'";
    while deployment.count(waits).await == 0 || deployment.count(others).await < 30 {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "the other parts are not imported"
        );
        assert!(child.try_wait().unwrap().is_none(), "the import has ended");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (child, other)
}

const INSERT_REPORT: &str = "\
INSERT INTO inspections (id, report_number, organization_id, branch_id, vehicle_id, status, plate, package_name, package_base_price,
  base_price, final_price, payment_type, snapshot_vin, snapshot_mileage_km)
SELECT gen_random_uuid(), 'N-15', organization_id, branch_id, vehicle_id, 'DRAFT', plate, 'P', 1, 1, 1, 'CASH', 'V', 1
FROM inspections WHERE report_number = 'ANK-2026-000211'";

/// IMP-4: SIGKILL during the second part.
#[tokio::test]
async fn the_same_command_resumes_a_killed_import() {
    let deployment = deployment().await;
    let (mut killed, other) = waiting_import(&deployment).await;
    killed.kill().unwrap();
    killed.wait().unwrap();
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(deployment.count("audit_log").await, 3);

    // The session of the killed import may last a little longer; the next import waits for it.
    let rest = deployment
        .run(&["import", "inspections.ndjson", "--part", "10", "--json"])
        .json();
    assert_eq!((&rest[0]["inserted"], &rest[0]["unchanged"]), (&json!(10), &json!(30)));
    assert_eq!(deployment.count("inspections WHERE report_number LIKE 'N-%'").await, 40);
    assert_eq!(deployment.count("audit_log").await, 4);
}

/// IMP-4
#[tokio::test]
async fn an_interrupted_import_reports_its_progress_and_leaves_no_incomplete_part() {
    let deployment = deployment().await;
    let (stopped, other) = waiting_import(&deployment).await;
    let interrupt = Command::new("kill").args(["-INT", &stopped.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    let ran: Ran = stopped.wait_with_output().unwrap().into();
    other.batch_execute("ROLLBACK").await.unwrap();
    ran.failed(
        1,
        "inspections.ndjson: stopped; its lines 1 to 10 and 21 to 40 were imported (30 new, 0 changed). Run the same command again",
    );
    let rest = deployment.run(&["import", "inspections.ndjson", "--json"]).json();
    assert_eq!((&rest[0]["inserted"], &rest[0]["unchanged"]), (&json!(10), &json!(30)));
}

/// IMP-4: once the cause is fixed, the same command continues.
#[tokio::test]
async fn a_failure_after_the_check_is_reported_with_the_progress() {
    let deployment = deployment().await;
    let lines: Vec<_> = (1..=30).map(|number| report(&format!("N-{number}"))).collect();
    let client = cluster::connect(&deployment.config).await;
    // The check cannot detect this failure; it occurs when the row is written.
    client
        .batch_execute(
            "CREATE FUNCTION reject_one() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
               IF NEW.report_number = 'N-25' THEN RAISE EXCEPTION 'not this one'; END IF; RETURN NEW; END $$; \
             CREATE TRIGGER reject BEFORE INSERT ON inspections FOR EACH ROW EXECUTE FUNCTION reject_one()",
        )
        .await
        .unwrap();
    let ran = deployment.import("inspections.ndjson", ndjson(&lines), &["--part", "10"]);
    ran.failed(1, "inspections.ndjson: failed to execute a statement: ERROR P0001: not this one; its lines up to 20 were imported (20 new, 0 changed)");
    client
        .batch_execute("DROP TRIGGER reject ON inspections")
        .await
        .unwrap();
    let rest = deployment.run(&["import", "inspections.ndjson", "--json"]).json();
    assert_eq!((&rest[0]["inserted"], &rest[0]["unchanged"]), (&json!(10), &json!(20)));
}
