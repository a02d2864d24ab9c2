//! Mistakes in imported files are reported by line, and nothing of the file is imported.

use serde_json::{Value, json};

use super::{deployment, form, ndjson, report, vehicle, with, without};

/// IMP-1
#[tokio::test]
async fn a_mistake_is_reported_with_its_line_its_field_and_the_expected_value() {
    let deployment = deployment().await;
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
            "2: status: found nothing; expected a value (",
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
            one(with(report("N-2"), "final_price", json!(-1))),
            "2: final_price: found `-1`; expected a number of at least 0",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "base_price", json!(1.005))),
            "2: base_price: found `1.005`; expected at most 2 decimals",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "discount_percent", json!(101))),
            "2: discount_percent: found `101`; expected a number of at most 100",
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
            one(with(report("N-2"), "published_at", json!("2099-01-01T00:00:00Z"))),
            "2: published_at: found `2099-01-01T00:00:00.000000Z`; expected a time that is not in the future",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "created_at", json!("0001-01-01T00:00:00Z"))),
            "2: created_at: found `0001-01-01T00:00:00.000000Z`; expected a time from 1950 on",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "organization", json!("anadolu"))),
            "2: organization: found `anadolu`; expected the slug or ID of an existing organization; did you mean `anadolu-ekspertiz`?",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "branch", json!("ANK-1"))),
            "2: branch: found `ANK-1`; expected the code or ID of a branch of `anadolu-ekspertiz`; did you mean `ANK-01`?",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "vehicle", json!("NO-SUCH-VIN"))),
            "2: vehicle: expected an existing one",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "reportnumber", json!(1))),
            "2: reportnumber: expected the name of a field; did you mean `report_number`?",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-1"), "public_slug", json!("other"))),
            "2: report_number: expected a value that no other report of the file has; line 1 has it too",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "public_slug", json!("s-N-1"))),
            "2: public_slug: expected a value that no other report of the file has; line 1 has it too",
        ),
        (
            "inspections.ndjson",
            one(with(report("N-2"), "public_slug", json!("ank-000211"))),
            "2: public_slug: expected a value that no other report has",
        ),
        (
            "inspections.ndjson",
            one(report("ANK-2026-000211")),
            "report already exists with different values; use --update to overwrite",
        ),
        (
            "inspections.ndjson",
            one(with(
                report("ANK-2026-000211"),
                "id",
                json!("0197c2a4-6f00-7e00-8000-0000000009ff"),
            )),
            "2: report_number: expected a value that no other report has",
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
            "2: status: expected a unique name",
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
            ndjson(&[with(vehicle("V"), "year", json!(2100))]),
            "1: year: found `2100`; expected a model year of at most ",
        ),
        (
            "inspections.ndjson",
            one(with(
                with(report("N-2"), "created_at", json!("2026-05-12T10:00:00Z")),
                "published_at",
                json!("2026-05-12T09:59:59Z"),
            )),
            "2: published_at: found `2026-05-12T09:59:59.000000Z`; expected a time that is not before created_at, \
             2026-05-12T10:00:00.000000Z",
        ),
        (
            "forms.ndjson",
            ndjson(&[form(json!({ "written_at": "2099-01-01T00:00:00Z" }))]),
            "written_at: found `2099-01-01T00:00:00.000000Z`; expected a time that is not in the future",
        ),
        (
            "forms.ndjson",
            ndjson(&[form(json!({ "status_code": "iyi" }))]),
            "status_code: found `iyi`; expected a code of 1 to 64 characters of A-Z, 0-9 and _",
        ),
        (
            "forms.ndjson",
            ndjson(&[form(json!({ "severity": "SEVERE" }))]),
            "severity: found `SEVERE`; expected one of NONE, LOW, MEDIUM, HIGH",
        ),
        (
            "photos.ndjson",
            ndjson(&[json!({
                "inspection": "ANK-2026-000211", "position": 1, "kind": "EXTERIOR", "object_key": "photos/1.jpg",
                "mime_type": "image/jpeg", "size_bytes": 1, "created_at": "2099-01-01T00:00:00Z",
            })]),
            "1: created_at: found `2099-01-01T00:00:00.000000Z`; expected a time that is not in the future",
        ),
        (
            "thresholds.csv",
            "organization,point_code,good_min,since\nege-ekspertiz,SLIP_FRONT,1,2099-01-01T00:00:00Z\n".to_owned(),
            "2: since: found `2099-01-01T00:00:00.000000Z`; expected a time that is not in the future",
        ),
        (
            "vehicles.ndjson",
            ndjson(&[vehicle("V"), vehicle("V")]),
            "2: vin: expected a value that no other vehicle of the file has; line 1 has it too",
        ),
        (
            "vehicles.ndjson",
            ndjson(&[with(vehicle("V"), "id", json!("1"))]),
            "1: id: found `1`; expected an ID, like",
        ),
        (
            "vehicles.csv",
            "plate;vin;brand\n".to_owned(),
            "1: the names: expected commas as separators; found semicolons",
        ),
        (
            "vehicles.csv",
            "plate,vin,brnd\n".to_owned(),
            "1: `brnd`: expected the name of a field; did you mean `brand`?",
        ),
        (
            "vehicles.csv",
            "plate,vin,vin\n".to_owned(),
            "1: vin: expected a unique name",
        ),
        (
            "vehicles.csv",
            "plate,vin\n".to_owned(),
            "1: brand: expected a column with this name in the first line",
        ),
        (
            "vehicles.csv",
            String::new(),
            "1: the names: expected a first line with the field names; the file is empty",
        ),
        (
            "thresholds.csv",
            "organization,point_code,good_min\nege-ekspertiz,SLIP_FRONT,1,2\n".to_owned(),
            "2: the line: expected 3 cells, like the first line; found 4",
        ),
        (
            "thresholds.csv",
            "organization,point_code,good_min\nege-ekspertiz,SLIP_FRONT,\"1,5\"\n".to_owned(),
            "2: good_min: found `1,5`; expected a number with a decimal point and without thousands separators: write 1.5",
        ),
        (
            "thresholds.csv",
            "organization,point_code,good_min\nege-ekspertiz,SLIP_FRONT,\"1\n".to_owned(),
            "2: the line: expected a closing quote for the one opened here",
        ),
        (
            "thresholds.csv",
            "organization,point_code,good_min,good_max\r\nege-ekspertiz,SLIP_FRONT,2,1\r\n".to_owned(),
            "2: good_max: expected a number of at least good_min; the range is 2..1",
        ),
        (
            "thresholds.csv",
            "organization,point_code,good_min,borderline_min\nege-ekspertiz,SLIP_FRONT,2,3\n".to_owned(),
            "2: borderline_min: expected a range that includes the good one",
        ),
        (
            "ranges.csv",
            "organization,point_code,minimum\nege-ekspertiz,BRAKE_FRONT_LEFT,\n".to_owned(),
            "2: minimum: expected a number here or in maximum",
        ),
        (
            "ranges.csv",
            "organization,point_code,minimum,maximum\nege-ekspertiz,BRAKE_FRONT_LEFT,2,1\n".to_owned(),
            "2: maximum: expected a number of at least minimum; the range is 2..1",
        ),
        (
            "ranges.csv",
            "organization,point_code,maximum\nege-ekspertiz,BRAKE_FRONT_LEFT,5000\n".to_owned(),
            "2: minimum: expected a range within 0..",
        ),
        (
            "organizations.ndjson",
            ndjson(&[json!({"slug": "Izmir", "name": "İzmir", "pii_mode": "FULL"})]),
            "1: slug: found `Izmir`; expected 1 to 64 characters of a-z",
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
            "1: is_test_line: expected false, because the organization already has a test-line template",
        ),
        (
            "forms.ndjson",
            ndjson(&[
                json!({"organization": "ege-ekspertiz", "inspection": "ANK-2026-000211", "template": "TEST_LINE", "answers": []}),
            ]),
            "1: inspection: expected a report of the line's organization",
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
            "1: object_key: found `../x`; expected an object name",
        ),
        (
            "photos.ndjson",
            ndjson(&[
                json!({"inspection": "NONE", "position": 1, "kind": "DAMAGE", "object_key": "x.jpg", "mime_type": "image/jpeg", "size_bytes": 1}),
            ]),
            "1: inspection: expected an existing one",
        ),
    ] {
        let ran = deployment.import(name, &content, &[]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{words}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{words:?} is not in {}", ran.stderr);
        assert!(
            ran.stderr.contains("nothing was imported from this file"),
            "{}",
            ran.stderr
        );
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
async fn all_bad_lines_of_a_file_are_reported_and_nothing_is_imported() {
    let deployment = deployment().await;
    let before = deployment.count("inspections").await;
    let mut lines: Vec<_> = (1..=300).map(|number| report(&format!("N-{number}"))).collect();
    lines[4] = with(lines[4].clone(), "overall_score", json!(101));
    lines[76] = with(lines[76].clone(), "plate", json!("no plate"));
    lines[149] = with(lines[149].clone(), "vehicle", json!("NOBODYS-VIN"));
    let ran = deployment.import("inspections.ndjson", ndjson(&lines), &["--part", "10"]);
    assert_eq!(ran.code, 2);
    let messages: Vec<_> = ran
        .stderr
        .lines()
        .map(|line| line.split(": expected").next().unwrap())
        .collect();
    assert_eq!(
        messages,
        [
            "error: inspections.ndjson:5: overall_score: found `101`; expected a whole number from 0 to 100",
            "inspections.ndjson:77: plate: found a text of 8 characters; expected a plate: it must begin with a province code \
             of two digits from 01 to 81, as in 34 ABC 123",
            "inspections.ndjson:150: vehicle",
            "inspections.ndjson: 3 errors; nothing was imported from this file",
        ]
    );
    assert_eq!(deployment.count("inspections").await, before);
    let few = deployment.run(&["import", "inspections.ndjson", "--max-errors", "1"]);
    assert!(few.stderr.contains("of which the first 1 are shown"), "{}", few.stderr);
}

/// IMP-1: messages contain no personal data.
#[tokio::test]
async fn no_message_contains_a_plate_a_vin_or_a_text() {
    let deployment = deployment().await;
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
        ran.stderr.contains("4 errors") && !ran.stderr.contains("SECRET"),
        "{}",
        ran.stderr
    );
}
