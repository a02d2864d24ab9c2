//! `partner-api export`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use partner_api_tests::cluster::{self, Database};
use serde_json::{Value, json};

use super::program::Deployment;

const KINDS: [&str; 9] = [
    "organizations",
    "branches",
    "templates",
    "thresholds",
    "ranges",
    "vehicles",
    "inspections",
    "forms",
    "photos",
];

async fn deployment() -> Deployment {
    Deployment::of(Database::create().await)
}

/// Returns the names and bytes of the files in a folder.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                fs::read(&path).unwrap(),
            )
        })
        .collect();
    files.sort();
    files
}

/// IMP-7
#[tokio::test]
async fn importing_an_export_changes_nothing_in_its_source_and_copies_it_to_an_empty_database() {
    let deployment = deployment().await;
    let client = cluster::connect(&deployment.config).await;
    // Edge cases: an empty caption, two branches with one code, cells that look like formulas, a number with many digits, and a time
    // with microseconds.
    client.batch_execute(EDGE_CASES).await.unwrap();
    // Once in a single part, and once in parts of one line, two of which are imported at a time.
    for (format, part) in [("ndjson", "50000"), ("csv", "1")] {
        let folder = deployment.folder.path().join(format);
        let exported = deployment.json(&["export", format, "--format", format]);
        let lines: Vec<_> = exported
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["kind"].as_str().unwrap())
            .collect();
        assert_eq!(lines, KINDS);
        assert!(
            exported.as_array().unwrap().iter().all(|row| row["lines"] != 0),
            "{exported}"
        );
        assert_eq!(files(&folder).len(), KINDS.len());

        let imported = deployment.json(&["import", format]);
        for (row, of) in imported.as_array().unwrap().iter().zip(exported.as_array().unwrap()) {
            let counts = [&row["inserted"], &row["updated"], &row["unchanged"]];
            assert_eq!(counts, [&json!(0), &json!(0), &of["lines"]], "{row}");
        }

        let empty = Deployment::new().await;
        let imported = empty.json(&["import", folder.to_str().unwrap(), "--part", part]);
        for (row, of) in imported.as_array().unwrap().iter().zip(exported.as_array().unwrap()) {
            assert_eq!(
                (&row["inserted"], &row["unchanged"]),
                (&of["lines"], &json!(0)),
                "{row}"
            );
        }
        empty.json(&["export", "again", "--format", format]);
        let again = files(&empty.folder.path().join("again"));
        for ((name, bytes), (_, first)) in again.iter().zip(&files(&folder)) {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(text(bytes), text(first), "{name}");
        }
    }
}

const EDGE_CASES: &str = "\
UPDATE photos SET caption = '' WHERE id = '01974d22-0000-7f00-8000-000000020103';
UPDATE branches SET name = '=1+1', city = '-a, \"b\"', address = 'No: 7, \"B\"', telephone = '+90 312' WHERE code = 'ANK-01';
UPDATE inspections SET inspector_name = 'Şule Taş' WHERE report_number = 'IZM-2026-000201';
INSERT INTO branches (id, organization_id, code, code_folded, name, city, district)
SELECT '01974d1b-0a80-7b00-8000-000000000099', organization_id, 'ank-01', code_folded, 'Other', 'Ankara', '' FROM branches
WHERE code = 'ANK-01';
INSERT INTO plausible_ranges (organization_id, point_code, minimum, maximum)
SELECT organization_id, 'BRAKE_FRONT_LEFT', 0.1, 12 FROM branches WHERE code = 'ANK-01';
UPDATE thresholds SET good_min = -5.000000000000001 WHERE point_code = 'SLIP_FRONT';
UPDATE inspections SET created_at = '2026-05-12T08:00:00.000001Z', summary = E'one\\r\\ntwo\\t\"three\" \\\\ ü'
WHERE report_number = 'ANK-2026-000211';";

/// IMP-3
#[tokio::test]
async fn different_values_are_rejected_or_updated_and_old_answers_are_kept_in_the_history() {
    let deployment = deployment().await;
    deployment.json(&["range", "set", "ege-ekspertiz", "BRAKE_FRONT_LEFT", "0.1..12"]);
    deployment.json(&["export", "files"]);
    for (kind, has, field, value) in [
        ("organizations", "ege-ekspertiz", "name", json!("Ege")),
        ("branches", "IST-02", "is_active", json!(false)),
        (
            "templates",
            "01974d1e-0000-7f00-8000-000000000022",
            "name",
            json!("Line"),
        ),
        ("thresholds", "DYNO_RATIO", "good_min", json!(91.5)),
        ("ranges", "BRAKE_FRONT_LEFT", "maximum", json!(11)),
        ("vehicles", "35MSK201", "color", json!("Mavi")),
        ("inspections", "IZM-2026-000201", "overall_score", json!(77)),
        ("inspections", "IZM-2026-000202", "inspector_name", json!("Şule Taş")),
        (
            "forms",
            "01974d20-0000-7f00-8000-000000020122",
            "general_note",
            json!(""),
        ),
        ("photos", "photos/20101.jpg", "show_in_report", json!(false)),
    ] {
        let name = format!("files/{kind}.ndjson");
        let path = deployment.folder.path().join(&name);
        let lines = fs::read_to_string(&path).unwrap();
        let number = 1 + lines.lines().position(|line| line.contains(has)).unwrap();
        let mut line: Value = serde_json::from_str(lines.lines().nth(number - 1).unwrap()).unwrap();
        line[field] = value;
        match kind {
            // Adds a point, reverses the others, and renames one.
            "templates" => {
                let points = line["points"].as_array_mut().unwrap();
                points.reverse();
                points[0]["name"] = json!("Ratio");
                points.push(json!({ "code": "NEW", "name": "New", "unit": "kN", "place": "ROOF" }));
                line["statuses"].as_array_mut().unwrap().pop();
                line["photo_kinds"][0]["expected"] = json!(4);
            }
            // Changes one answer and removes another.
            "forms" => {
                line["answers"]
                    .as_array_mut()
                    .unwrap()
                    .retain(|answer| answer["point"] != "SLIP_FRONT");
                line["answers"][0]["numeric_value"] = json!(3.5);
            }
            _ => {}
        }
        let changed: String = lines
            .lines()
            .map(|old| {
                if old.contains(has) {
                    format!("{line}\n")
                } else {
                    format!("{old}\n")
                }
            })
            .collect();
        fs::write(&path, &changed).unwrap();

        let rejected = deployment.run(&["import", &name]);
        assert_eq!(rejected.code, 2, "{kind}: {rejected:?}");
        let message = rejected.stderr.lines().next().unwrap();
        assert!(
            message.contains(&format!("{name}:{number}: ")) && message.contains(field),
            "{message}"
        );
        assert!(
            message.contains("already exists with different values; use --update to overwrite"),
            "{message}"
        );

        let updated = deployment.json(&["import", &name, "--update"]);
        let all = lines.lines().count();
        let counts = [
            &updated[0]["inserted"],
            &updated[0]["updated"],
            &updated[0]["unchanged"],
        ];
        assert_eq!(counts, [&json!(0), &json!(1), &json!(all - 1)], "{kind}");
        let same = deployment.json(&["import", &name, "--again"]);
        assert_eq!(same[0]["unchanged"], json!(all), "{kind}");
    }
    let client = cluster::connect(&deployment.config).await;
    let history =
        "SELECT string_agg(h.numeric_value::text, ' ' ORDER BY h.numeric_value) FROM inspection_form_answer_history h";
    let history: String = client.query_one(history, &[]).await.unwrap().get(0);
    assert_eq!(history, "-6.250 2.85");
}

#[tokio::test]
async fn a_template_keeps_the_points_that_have_answers() {
    let deployment = deployment().await;
    deployment.json(&["export", "files", "--kind", "templates"]);
    let path = deployment.folder.path().join("files/templates.ndjson");
    let lines = fs::read_to_string(&path).unwrap();
    let body = lines
        .lines()
        .find(|line| line.contains("01974d1e-0000-7f00-8000-000000000021"))
        .unwrap();
    let mut line: Value = serde_json::from_str(body).unwrap();
    let points = line["points"].as_array_mut().unwrap();
    points.retain(|point| point["code"] != "REAR_RIGHT_FENDER");
    fs::write(&path, format!("{line}\n")).unwrap();
    deployment
        .run(&["import", "files/templates.ndjson", "--update"])
        .failed(
            2,
            "files/templates.ndjson:1: points: expected also the points that reports use; they cannot be removed",
        );
    // The other template's points have no answers.
    line["points"] = json!([{ "code": "REAR_RIGHT_FENDER", "name": "Sağ arka çamurluk" }]);
    fs::write(&path, format!("{line}\n")).unwrap();
    let updated = deployment.json(&["import", "files/templates.ndjson", "--update"]);
    assert_eq!(updated[0]["updated"], 1);
}

#[tokio::test]
async fn an_exported_file_is_complete_and_private_and_is_not_overwritten() {
    let deployment = deployment().await;
    deployment.json(&["export", "files", "--kind", "vehicles"]);
    let path = deployment.folder.path().join("files/vehicles.ndjson");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    fs::write(&path, "mine").unwrap();
    deployment.run(&["export", "files"]).failed(
        4,
        "files/vehicles.ndjson already exists; nothing was written. Use --force",
    );
    assert_eq!(
        files(&deployment.folder.path().join("files")),
        [("vehicles.ndjson".to_owned(), b"mine".to_vec())]
    );
    deployment.json(&["export", "files", "--force"]);
    assert_eq!(files(&deployment.folder.path().join("files")).len(), KINDS.len());
    for (arguments, message) in [
        (&["export", "files/vehicles.ndjson"][..], "is a file; give a folder"),
        (&["export", "-"], "give --kind once"),
        (
            &["export", "-", "--kind", "photos", "--json"],
            "cannot be used while the data goes to standard output",
        ),
        (&["export", "x", "--kind", "photo"], "did you mean `photos`?"),
        (
            &["export", "x", "--since", "yesterday"],
            "expected a time with its offset",
        ),
    ] {
        deployment.run(arguments).failed(2, message);
    }
    deployment
        .run(&["export", "x", "--organization", "ege"])
        .failed(3, "did you mean `ege-ekspertiz`?");
    assert!(!deployment.folder.path().join("x").exists());
}

#[tokio::test]
async fn an_export_can_be_limited_to_an_organization_and_a_time() {
    let deployment = deployment().await;
    let lines = |arguments: &[&str]| {
        let ran = deployment.run(&[&["export", "-"], arguments].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .collect::<Vec<_>>()
    };
    let reports = lines(&["--kind", "inspections", "--organization", "Ege Ekspertiz"]);
    assert!(!reports.is_empty() && reports.iter().all(|report| report["organization"] == "ege-ekspertiz"));
    let vehicles = lines(&["--kind", "vehicles", "--organization", "ege-ekspertiz"]);
    assert_eq!(vehicles.len(), reports.len());
    let recent = lines(&["--kind", "inspections", "--since", "2026-05-20T00:00:00+03:00"]);
    assert!(recent.iter().any(|report| report["report_number"] == "IST-2026-000301"));
    assert!(
        recent
            .iter()
            .all(|report| report["created_at"].as_str().unwrap() >= "2026-05-19T21:00:00")
    );
    let photos = lines(&["--kind", "photos", "--since", "2026-05-20T00:00:00+03:00"]);
    assert!(photos.iter().all(|photo| photo["inspection"] == "IST-2026-000301") && photos.len() == 1);
}
