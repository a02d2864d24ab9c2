//! Files of things, brought in.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use partner_api_tests::cluster::{self, Database};
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::program::{Deployment, Ran};

/// The program over the world of the conformance tests.
async fn world() -> Deployment {
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

    async fn count(&self, what: &str) -> i64 {
        let client = cluster::connect(&self.config).await;
        let row = client.query_one(&format!("SELECT count(*) FROM {what}"), &[]).await;
        row.unwrap().get(0)
    }
}

/// Things as lines.
fn ndjson(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn vehicle(vin: &str) -> Value {
    json!({
        "plate": "34 abc 123", "vin": vin, "brand": "Fiat", "model": "Egea", "year": 2020, "type": "SEDAN",
        "fuel_type": "DIESEL", "transmission": "MANUAL", "color": "Beyaz", "mileage_km": 90_000,
    })
}

/// A report of the world's branch ANK-01, on one of its vehicles.
fn report(number: &str) -> Value {
    json!({
        "report_number": number, "organization": "anadolu-ekspertiz", "branch": "ank-01", "vehicle": "W0L0SDL6884000211",
        "status": "PUBLISHED", "plate": "06 MSK 211", "package_name": "Tam", "package_base_price": 2500, "base_price": 2500.5,
        "final_price": 2250.45, "payment_type": "CARD", "snapshot_vin": "W0L0SDL6884000211", "snapshot_mileage_km": 166_000,
        "public_slug": format!("s-{number}"), "published_at": "2026-05-12T11:40:00+03:00", "created_at": "2026-05-12T11:00:00+03:00",
    })
}

fn with(mut line: Value, field: &str, value: Value) -> Value {
    line[field] = value;
    line
}

fn without(mut line: Value, field: &str) -> Value {
    line.as_object_mut().unwrap().remove(field);
    line
}

/// IMP-1
#[tokio::test]
async fn what_is_wrong_with_a_line_is_told_with_its_number_the_field_and_what_was_expected() {
    let deployment = world().await;
    let (reports, vehicles) = (
        deployment.count("inspections").await,
        deployment.count("vehicles").await,
    );
    let good = report("N-1");
    let one = |line: Value| format!("{good}\n{line}\n");
    for (name, content, words) in [
        (
            "inspections.ndjson",
            one(without(report("N-2"), "status")),
            "2: status: found nothing; expected its status: it is needed",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "status", json!("PUBLISHD"))),
            "2: status: found `PUBLISHD`; expected one of DRAFT",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "status", json!("PUBLISHD"))),
            "did you mean `PUBLISHED`?",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "base_price", json!("1,5"))),
            "2: base_price: found `1,5`, in quotes; expected a number, without quotes",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "base_price", json!(1.005))),
            "2: base_price: found `1.005`; expected at most 2 decimals",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "discount_percent", json!(101))),
            "2: discount_percent: found `101`; expected a number up to 100",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "published_at", json!(null))),
            "2: published_at: expected a time: the report is PUBLISHED",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "published_at", json!("2026-05-12"))),
            "2: published_at: found `2026-05-12`; expected a time with its offset",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "organization", json!("anadolu"))),
            "2: organization: found `anadolu`; expected the slug or id of an organisation there is; did you mean `anadolu-ekspertiz`?",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "branch", json!("ANK-1"))),
            "2: branch: found `ANK-1`; expected the code or id of a branch of `anadolu-ekspertiz`; did you mean `ANK-01`?",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "vehicle", json!("NO-SUCH-VIN"))),
            "2: vehicle: expected one that there is",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "reportnumber", json!(1))),
            "2: reportnumber: expected one of the fields there are; did you mean `report_number`?",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-1"), "public_slug", json!("other"))),
            "2: report_number: expected one that no other report of the file has; line 1 has it",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "public_slug", json!("s-N-1"))),
            "2: public_slug: expected one that no other report of the file has; line 1 has it",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "public_slug", json!("ank-000211"))),
            "2: public_slug: expected one that no other report has",
        ),
        (
            "inspections.ndjson",
            one(report("ANK-2026-000211")),
            "there is this report already, and it differs; --update changes it",
        ),
        (
            "inspections.ndjson",
            one(with(
                report("ANK-2026-000211"),
                "id",
                json!("0197c2a4-6f00-7e00-8000-0000000009ff"),
            )),
            "2: report_number: expected one that no other report has",
        ),
        (
            "inspections.ndjson",
            one(json!(["x"])),
            "2: the line: found a list; expected a JSON object",
        ),
        (
            "inspections.ndjson",
            format!("{good}\n{{\"a\": \n"),
            "2: the line: expected a JSON object in one line",
        ),
        (
            "inspections.ndjson",
            format!("{good}\n{{\"status\": 1, \"status\": 2}}\n"),
            "2: status: expected a name that is there once",
        ),
        (
            "vehicles.ndjson",
            format!("\n\n{}\n", with(vehicle("V"), "plate", json!("99 ABC 123"))),
            "3: plate: found a text of 10 characters; expected a plate: it must begin with a province code",
        ),
        (
            "vehicles.ndjson",
            ndjson(&[with(vehicle("V"), "year", json!(20))]),
            "1: year: found `20`; expected a whole number from 1900 to 2100",
        ),
        (
            "vehicles.ndjson",
            ndjson(&[vehicle("V"), vehicle("V")]),
            "2: vin: expected one that no other vehicle of the file has; line 1 has it",
        ),
        (
            "vehicles.ndjson",
            ndjson(&[with(vehicle("V"), "id", json!("1"))]),
            "1: id: found `1`; expected an id, like",
        ),
        (
            "vehicles.csv",
            "plate;vin;brand\n".to_owned(),
            "1: the names: expected commas between names and between cells; here are semicolons",
        ),
        (
            "vehicles.csv",
            "plate,vin,brnd\n".to_owned(),
            "1: `brnd`: expected one of the fields there are; did you mean `brand`?",
        ),
        (
            "vehicles.csv",
            "plate,vin,vin\n".to_owned(),
            "1: vin: expected a name that is there once",
        ),
        (
            "vehicles.csv",
            "plate,vin\n".to_owned(),
            "1: brand: expected a column of this name in the first line",
        ),
        (
            "vehicles.csv",
            String::new(),
            "1: the names: expected a first line with the names of the fields; the file is empty",
        ),
        (
            "thresholds.csv",
            "organization,point_code,good_min\nege-ekspertiz,SLIP_FRONT,1,2\n".to_owned(),
            "2: the line: expected 3 cells, as the first line has; here are 4",
        ),
        (
            "thresholds.csv",
            "organization,point_code,good_min\nege-ekspertiz,SLIP_FRONT,\"1,5\"\n".to_owned(),
            "2: good_min: found `1,5`; expected a number with a point before its decimals and nothing between thousands: write 1.5",
        ),
        (
            "thresholds.csv",
            "organization,point_code,good_min\nege-ekspertiz,SLIP_FRONT,\"1\n".to_owned(),
            "2: the line: expected a quote that closes the one that is opened here",
        ),
        (
            "thresholds.csv",
            "organization,point_code,good_min,good_max\r\nege-ekspertiz,SLIP_FRONT,2,1\r\n".to_owned(),
            "2: good_max: expected a number from good_min on; the range is 2..1",
        ),
        (
            "thresholds.csv",
            "organization,point_code,good_min,borderline_min\nege-ekspertiz,SLIP_FRONT,2,3\n".to_owned(),
            "2: borderline_min: expected a range around the good one",
        ),
        (
            "organizations.ndjson",
            ndjson(&[json!({"slug": "Izmir", "name": "İzmir", "pii_mode": "FULL"})]),
            "1: slug: found `Izmir`; expected 1 to 64 of a-z",
        ),
        (
            "branches.csv",
            "organization,code,name,city,is_active\nege-ekspertiz,X,Y,Z,yes\n".to_owned(),
            "2: is_active: found `yes`; expected true or false",
        ),
        (
            "templates.ndjson",
            ndjson(&[
                json!({"organization": "ege-ekspertiz", "code": "B", "name": "B", "score_category": "BODY", "position": 9, "points": [{"code": "A", "name": "A"}, {"code": "A"}]}),
            ]),
            "1: points[1].name: found nothing",
        ),
        (
            "templates.ndjson",
            ndjson(&[
                json!({"organization": "ege-ekspertiz", "code": "B", "name": "B", "score_category": "BODY", "position": 9, "is_test_line": true, "points": []}),
            ]),
            "1: is_test_line: expected false: another template of the organisation is the test line's",
        ),
        (
            "forms.ndjson",
            ndjson(&[
                json!({"organization": "ege-ekspertiz", "inspection": "ANK-2026-000211", "template": "TEST_LINE", "answers": []}),
            ]),
            "1: inspection: expected a report of the line's organisation",
        ),
        (
            "forms.ndjson",
            ndjson(&[
                json!({"organization": "anadolu-ekspertiz", "inspection": "ANK-2026-000211", "template": "BODY", "answers": [{"point": "FRONT_HOD", "status_code": "X", "status_label": "X", "severity": "NONE", "written_by": "Ayşe", "written_at": "2026-05-12T08:00:00Z"}]}),
            ]),
            "1: answers[0].point: found `FRONT_HOD`; expected the code of a point of the template; did you mean `FRONT_HOOD`?",
        ),
        (
            "photos.ndjson",
            ndjson(&[
                json!({"inspection": "NONE", "position": 1, "kind": "DAMAGE", "object_key": "../x", "mime_type": "image/jpeg", "size_bytes": 1}),
            ]),
            "1: object_key: found `../x`; expected the name of an object",
        ),
        (
            "photos.ndjson",
            ndjson(&[
                json!({"inspection": "NONE", "position": 1, "kind": "DAMAGE", "object_key": "x.jpg", "mime_type": "image/jpeg", "size_bytes": 1}),
            ]),
            "1: inspection: expected one that there is",
        ),
    ] {
        let ran = deployment.import(name, &content, &[]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{words}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{words:?} is not in {}", ran.stderr);
        assert!(ran.stderr.contains("nothing of this file was kept"), "{}", ran.stderr);
    }
    assert_eq!(deployment.count("inspections").await, reports);
    assert_eq!(deployment.count("vehicles").await, vehicles);
    assert_eq!(
        deployment.count("audit_log").await + deployment.count("imports").await,
        0
    );
}

/// IMP-1
#[tokio::test]
async fn of_a_file_with_three_bad_lines_three_are_told_and_nothing_is_kept() {
    let deployment = world().await;
    let before = deployment.count("inspections").await;
    let mut lines: Vec<_> = (1..=300).map(|number| report(&format!("N-{number}"))).collect();
    lines[4] = with(lines[4].clone(), "overall_score", json!(101));
    lines[76] = with(lines[76].clone(), "plate", json!("no plate"));
    lines[149] = with(lines[149].clone(), "vehicle", json!("NOBODYS-VIN"));
    let ran = deployment.import("inspections.ndjson", ndjson(&lines), &["--part", "10"]);
    assert_eq!(ran.code, 2);
    let told: Vec<_> = ran
        .stderr
        .lines()
        .map(|line| line.split(": expected").next().unwrap())
        .collect();
    assert_eq!(
        told,
        [
            "error: inspections.ndjson:5: overall_score: found `101`; expected a whole number from 0 to 100",
            "inspections.ndjson:77: plate: found a text of 8 characters; expected a plate: it must begin with a province code \
             of two digits from 01 to 81, as in 34 ABC 123",
            "inspections.ndjson:150: vehicle",
            "inspections.ndjson: 3 mistakes; nothing of this file was kept",
        ]
    );
    assert_eq!(deployment.count("inspections").await, before);
    let few = deployment.run(&["import", "inspections.ndjson", "--max-errors", "1"]);
    assert!(few.stderr.contains("of which the first 1 are shown"), "{}", few.stderr);
}

/// IMP-1: what may say who somebody is stays in the file.
#[tokio::test]
async fn no_message_repeats_a_plate_a_vehicle_number_or_a_text() {
    let deployment = world().await;
    let line = json!({
        "plate": "99SECRET", "vin": "SECRET\u{7}", "brand": "Fiat", "model": "Egea", "year": 2020, "type": "SEDAN",
        "fuel_type": "DIESEL", "transmission": "MANUAL", "color": "Beyaz", "mileage_km": 1,
    });
    let ran = deployment.import(
        "vehicles.ndjson",
        format!("{line}\n{{\"plate\": SECRET}}\n\"SECRET\"\n"),
        &[],
    );
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("4 mistakes") && !ran.stderr.contains("SECRET"),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn bytes_that_are_no_such_file_are_told_as_what_they_are() {
    let deployment = world().await;
    let long = [b"{\"plate\": \"".as_slice(), &vec![b'x'; 3 << 20], b"\"}\n"].concat();
    for (name, bytes, words) in [
        (
            "vehicles.ndjson",
            b"\xFF\xFE{\0".to_vec(),
            "vehicles.ndjson:1: the file: found UTF-16; expected text in UTF-8",
        ),
        (
            "vehicles.csv",
            b"\x1F\x8B\x08".to_vec(),
            "found something that gzip compressed",
        ),
        (
            "vehicles.csv",
            b"PK\x03\x04".to_vec(),
            "found a ZIP archive, as spreadsheets are",
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
async fn a_file_may_have_a_mark_crlf_blank_lines_any_order_of_columns_or_nothing_at_all() {
    let deployment = world().await;
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

/// IMP-3, IMP-5
#[tokio::test]
async fn a_line_that_stands_is_left_alone_and_a_file_that_is_in_is_not_looked_at_again() {
    let deployment = world().await;
    let lines = ndjson(&[report("N-1"), report("N-2")]);
    let first = deployment
        .import("inspections.ndjson", &lines, &["--dry-run", "--json"])
        .json();
    assert_eq!(
        (&first[0]["inserted"], &first[0]["state"]),
        (&json!(2), &json!("not done: --dry-run"))
    );
    assert_eq!(deployment.count("imports").await, 0);
    let first = deployment.run(&["import", "inspections.ndjson", "--json"]).json();
    assert_eq!((&first[0]["inserted"], &first[0]["unchanged"]), (&json!(2), &json!(0)));
    let wanted = "report_renderings WHERE inspection_id IN (SELECT id FROM inspections WHERE report_number LIKE 'N-%')";
    assert_eq!(deployment.count(wanted).await, 2);

    let known = deployment.run(&["import", "inspections.ndjson", "--json"]).json();
    assert!(
        known[0]["state"].as_str().unwrap().starts_with("imported already"),
        "{known}"
    );
    let again = deployment
        .run(&["import", "inspections.ndjson", "--again", "--json"])
        .json();
    assert_eq!((&again[0]["inserted"], &again[0]["unchanged"]), (&json!(0), &json!(2)));
    // Another file: the same things in other words, and one more.
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

/// IMP-6: neither finds that what the other brings is new.
#[tokio::test]
async fn of_two_imports_at_once_the_second_waits_and_finds_what_the_first_brought() {
    let deployment = world().await;
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

/// An import of 40 reports in parts of 10 that waits in the midst of its second part, for somebody else is about to take a
/// number of it. Answers when it waits.
async fn waiting_import(deployment: &Deployment) -> (Child, Client) {
    let lines: Vec<_> = (1..=40).map(|number| report(&format!("N-{number}"))).collect();
    deployment.put("inspections.ndjson", ndjson(&lines));
    let other = cluster::connect(&deployment.config).await;
    other.batch_execute("BEGIN").await.unwrap();
    assert_eq!(other.execute(TAKEN, &[]).await.unwrap(), 1);
    let mut program = Command::new(env!("CARGO_BIN_EXE_partner-api"));
    let mut child = deployment
        .surround(program.args(["import", "inspections.ndjson", "--part", "10"]))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let waits = "pg_stat_activity WHERE datname = current_database() AND application_name = 'partner-api import' \
                 AND wait_event_type = 'Lock'";
    let patience = Instant::now();
    while deployment.count(waits).await == 0 {
        assert!(
            patience.elapsed() < Duration::from_secs(60),
            "it does not come to its second part"
        );
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (child, other)
}

const TAKEN: &str = "\
INSERT INTO inspections (id, report_number, organization_id, branch_id, vehicle_id, status, plate, package_name, package_base_price,
  base_price, final_price, payment_type, snapshot_vin, snapshot_mileage_km)
SELECT gen_random_uuid(), 'N-15', organization_id, branch_id, vehicle_id, 'DRAFT', plate, 'P', 1, 1, 1, 'CASH', 'V', 1
FROM inspections WHERE report_number = 'ANK-2026-000211'";

/// IMP-4: killed with SIGKILL in the midst of its second part.
#[tokio::test]
async fn an_import_that_was_killed_is_gone_on_with_by_the_same_command() {
    let deployment = world().await;
    let (mut killed, other) = waiting_import(&deployment).await;
    killed.kill().unwrap();
    killed.wait().unwrap();
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(deployment.count("audit_log").await, 1);

    // The session of the one that was killed may last a moment longer; the next import waits for it.
    let rest = deployment
        .run(&["import", "inspections.ndjson", "--part", "10", "--json"])
        .json();
    assert_eq!((&rest[0]["inserted"], &rest[0]["unchanged"]), (&json!(30), &json!(10)));
    assert_eq!(deployment.count("inspections WHERE report_number LIKE 'N-%'").await, 40);
    assert_eq!(deployment.count("audit_log").await, 4);
}

/// IMP-4
#[tokio::test]
async fn an_import_that_is_stopped_says_what_is_in_and_leaves_no_part_half_done() {
    let deployment = world().await;
    let (stopped, other) = waiting_import(&deployment).await;
    let interrupt = Command::new("kill").args(["-INT", &stopped.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    let ran: Ran = stopped.wait_with_output().unwrap().into();
    other.batch_execute("ROLLBACK").await.unwrap();
    ran.failed(
        1,
        "inspections.ndjson: stopped; its lines up to 10 are in (10 new, 0 changed): run the same command again",
    );
    let rest = deployment.run(&["import", "inspections.ndjson", "--json"]).json();
    assert_eq!((&rest[0]["inserted"], &rest[0]["unchanged"]), (&json!(30), &json!(10)));
}

/// IMP-4: what came in between is told with what stands, and the same command goes on once it is mended.
#[tokio::test]
async fn what_changed_between_the_check_and_a_part_is_told_with_what_stands() {
    let deployment = world().await;
    let lines: Vec<_> = (1..=30).map(|number| report(&format!("N-{number}"))).collect();
    let client = cluster::connect(&deployment.config).await;
    // Nothing sees it before the row is written.
    client
        .batch_execute(
            "CREATE FUNCTION refuse_one() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
               IF NEW.report_number = 'N-25' THEN RAISE EXCEPTION 'not this one'; END IF; RETURN NEW; END $$; \
             CREATE TRIGGER refuse BEFORE INSERT ON inspections FOR EACH ROW EXECUTE FUNCTION refuse_one()",
        )
        .await
        .unwrap();
    let ran = deployment.import("inspections.ndjson", ndjson(&lines), &["--part", "10"]);
    ran.failed(1, "inspections.ndjson: the database: query failed: ERROR P0001: not this one; its lines up to 20 are in (20 new, 0 changed)");
    client
        .batch_execute("DROP TRIGGER refuse ON inspections")
        .await
        .unwrap();
    let rest = deployment.run(&["import", "inspections.ndjson", "--json"]).json();
    assert_eq!((&rest[0]["inserted"], &rest[0]["unchanged"]), (&json!(10), &json!(20)));
}

#[tokio::test]
async fn what_cannot_be_read_or_has_no_kind_is_told() {
    let deployment = world().await;
    fs::create_dir(deployment.folder.path().join("empty")).unwrap();
    deployment.put("things.ndjson", "");
    deployment.put("vehicles.txt", "");
    for (arguments, words) in [
        (&["import", "vehicles.ndjson"][..], "vehicles.ndjson: No such file"),
        (&["import", "empty"], "it has no file to import"),
        (
            &["import", "things.ndjson"],
            "its name does not begin with a kind; give --kind",
        ),
        (
            &["import", "vehicles.txt"],
            "ends neither in .ndjson nor in .csv; give --format",
        ),
        (&["import", "-"], "give --kind and --format"),
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
async fn a_folder_goes_on_with_the_files_that_are_not_in_yet() {
    let deployment = world().await;
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
    let told: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(
        told,
        [
            "all: left alone, for no kind begins their names: notes.txt",
            "error: all/branches.ndjson:1: city: found nothing; expected its city: it is needed",
            "all/branches.ndjson: one mistake; nothing of this file was kept",
            "all/organizations.csv is in: 1 lines, 1 new, 0 changed, 0 the same",
        ]
    );
    deployment.put("all/branches.ndjson", ndjson(&[branch]));
    let ran = deployment.json(&["import", "all"]);
    assert!(
        ran[0]["state"].as_str().unwrap().starts_with("imported already"),
        "{ran}"
    );
    assert_eq!(ran[1]["inserted"], 1);
}
