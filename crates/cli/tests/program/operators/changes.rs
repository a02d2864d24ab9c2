//! Commands that change the database.

use std::fs;

use partner_api_tests::cluster;
use serde_json::Value;

use super::program::Deployment;

/// Commands that change what [`with_one_of_each`](Deployment::with_one_of_each) creates, with KEY for its key; each names the
/// command that undoes it.
const UNDONE: [&str; 24] = [
    "partner-api partner disable Acme",
    "partner-api grant remove Acme izmir",
    "partner-api grant add Acme izmir --only --branch IZM-01",
    "partner-api key create Acme",
    "partner-api key create Acme --rate-limit 5 --expires-at 2100-01-01T00:00:00+03:00",
    "partner-api key rotate Acme",
    "partner-api key rotate KEY --overlap 1h",
    "partner-api key expire KEY --in 3days",
    "partner-api key expire KEY --at 2100-01-01T00:00:00Z",
    "partner-api key scope KEY --remove test-line:write",
    "partner-api key limit KEY 300",
    "partner-api allowlist add KEY 203.0.113.0/24 2001:db8::1",
    "partner-api allowlist mode KEY report",
    "partner-api organization set izmir --name \"O'Neill & Söhne\"",
    "partner-api organization set izmir --pii-mode none --name Izmir",
    "partner-api branch set izmir IZM-02 --name 'Konak 2' --city Ankara --district '' --active false",
    "partner-api branch set izmir IZM-02 --address 'Mithatpaşa Cad. No: 8' --telephone '0232 555 01 09'",
    "partner-api inspector create 'Mehmet Demir' --branch izm-01 --branch Konak",
    "partner-api threshold set izmir SLIP_FRONT --good ..3",
    "partner-api threshold set izmir SLIP_REAR --good -1.5..1.5",
    "partner-api threshold remove izmir SLIP_FRONT",
    "partner-api range set izmir SLIP_FRONT -15..15",
    "partner-api range set izmir BRAKE_FRONT_LEFT ..12.5",
    "partner-api range remove izmir SLIP_REAR",
];

/// OPS-1, OPS-2
#[tokio::test]
async fn a_change_is_recorded_and_undone_by_the_command_that_it_names() {
    let deployment = Deployment::new().await;
    let key = deployment.with_one_of_each();
    for line in UNDONE {
        let line = line.replace("KEY", &key);
        let before = deployment.state().await;
        let recorded = audit_rows(&deployment).await;
        let done = deployment.shell(&format!("{line} --json"));
        assert_eq!(done.json()["changed"], true, "{line}");
        assert_ne!(deployment.state().await, before, "{line}");
        assert_eq!(audit_rows(&deployment).await, recorded + 1, "{line}");
        let entry = &deployment.json(&["audit", "list", "--limit", "1"])[0];
        assert!(
            line.starts_with(&format!("partner-api {}", entry["command"].as_str().unwrap())),
            "{entry}"
        );
        assert_eq!(
            (&entry["what"], &entry["undo"]),
            (&done.json()["what"], &done.json()["undo"])
        );

        let undo = done.json()["undo"].as_str().unwrap().to_owned();
        let undone = deployment.shell(&undo);
        assert_eq!(undone.code, 0, "{line}\n{undo}\n{}", undone.stderr);
        assert_eq!(deployment.state().await, before, "{line}\n{undo}");
    }
}

async fn audit_rows(deployment: &Deployment) -> i64 {
    let client = cluster::connect(&deployment.config).await;
    client
        .query_one("SELECT count(*) FROM audit_log", &[])
        .await
        .unwrap()
        .get(0)
}

/// OPS-1
#[tokio::test]
async fn a_command_without_effect_says_so_and_records_nothing() {
    let deployment = Deployment::new().await;
    let key = deployment.with_one_of_each();
    let recorded = audit_rows(&deployment).await;
    for line in [
        "partner-api partner enable Acme",
        "partner-api grant add Acme izmir",
        "partner-api key limit KEY 60",
        "partner-api key scope KEY --add test-line:write",
        "partner-api key expire KEY --never",
        "partner-api allowlist mode KEY enforce",
        "partner-api organization set izmir --pii-mode masked",
        "partner-api branch set izmir izm-01 --city İzmir",
        "partner-api threshold set izmir SLIP_FRONT --good -7.0..7 --borderline -9.50..9.5",
        "partner-api range set izmir SLIP_REAR -15.0..15",
    ] {
        let line = line.replace("KEY", &key);
        let done = deployment.shell(&format!("{line} --json")).json();
        assert_eq!(
            (&done["changed"], &done["undo"]),
            (&Value::Bool(false), &Value::Null),
            "{line}"
        );
    }
    assert_eq!(audit_rows(&deployment).await, recorded);
}

/// OPS-1
#[tokio::test]
async fn the_audit_log_names_actor_and_host_and_cannot_be_changed() {
    let deployment = Deployment::new().await;
    deployment.with_one_of_each();
    let entry = &deployment.json(&["audit", "list", "--kind", "partner"])[0];
    for member in ["at", "actor", "database_role", "host", "subject", "what"] {
        assert!(
            entry[member].as_str().is_some_and(|text| !text.is_empty()),
            "{member} of {entry}"
        );
    }
    assert_eq!(entry["after"]["name"], "Acme");
    let client = cluster::connect(&deployment.config).await;
    for statement in [
        "UPDATE audit_log SET actor = 'nobody'",
        "DELETE FROM audit_log",
        "TRUNCATE audit_log",
    ] {
        let error = client.batch_execute(statement).await.unwrap_err();
        assert!(
            error
                .as_db_error()
                .unwrap()
                .message()
                .contains("never changed or deleted"),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn listed_templates_can_be_imported_and_points_with_answers_are_kept() {
    let deployment = Deployment::new().await;
    deployment.with_one_of_each();
    let yaml = "\
- code: TEST_LINE
  name: Test line
  score_category: MECHANICAL
  is_test_line: true
  points:
    - { code: SLIP_FRONT, name: Slip at the front, unit: m/km }
    - { code: SLIP_REAR, name: Slip at the rear, unit: m/km }
- { code: BODY, name: Body, score_category: BODY, points: [{ code: DOORS, name: Doors }] }
- code: PAINT
  name: Paint
  score_category: BODY
  statuses:
    - { code: ORIGINAL, label: Orijinal, label_en: Original, severity: NONE, is_common: true }
    - { code: PAINTED, label: Boyalı, severity: MEDIUM }
  photo_kinds: [{ code: EXTERIOR, label: Dış görünüm, expected: 4 }]
  points: [{ code: HOOD, name: Hood, place: HOOD }]
";
    fs::write(deployment.folder.path().join("templates.yaml"), yaml).unwrap();
    let imported = deployment.json(&["template", "import", "izmir", "templates.yaml"]);
    assert_eq!(imported["changed"], true);
    let listed = deployment.run(&["template", "list", "izmir", "--json"]);
    assert_eq!(listed.json(), imported["result"]);
    fs::write(deployment.folder.path().join("listed.json"), &listed.stdout).unwrap();
    assert_eq!(
        deployment.json(&["template", "import", "izmir", "listed.json"])["changed"],
        false
    );

    // Lists that a file lacks stay, and a new template has the general ones.
    let (body, paint) = (&imported["result"][1], &imported["result"][2]);
    assert_eq!(body["statuses"].as_array().unwrap().len(), 12);
    assert_eq!(
        (&paint["statuses"][1]["label"], &paint["photo_kinds"][0]["expected"]),
        (&"Boyalı".into(), &4.into())
    );
    let bare =
        "- { code: PAINT, name: Paint, score_category: BODY, points: [{ code: HOOD, name: Hood, place: HOOD }] }";
    fs::write(deployment.folder.path().join("bare.yaml"), bare).unwrap();
    let again = deployment.json(&["template", "import", "izmir", "bare.yaml"]);
    assert_eq!(
        again["result"][0]["statuses"].as_array().map(Vec::len),
        Some(2),
        "{again}"
    );
    deployment.json(&["template", "import", "izmir", "templates.yaml"]);
    for (wrong, message) in [
        (
            "place: ROOFTOP",
            "the place of HOOD is `ROOFTOP` and must be one of BUMPER_FRONT",
        ),
        (
            "severity: BAD",
            "the severity of PAINTED is `BAD` and must be one of NONE",
        ),
        (
            "{ code: ORIGINAL, label: X, severity: LOW }",
            "two statuses of PAINT have the code ORIGINAL",
        ),
        (
            "{ code: boyalı, label: Boyalı, severity: MEDIUM }",
            "a status of PAINT has the code `boyalı`; it must have 1 to 64 characters of A-Z, 0-9 and _, and begin with a letter",
        ),
    ] {
        let right = match wrong {
            "place: ROOFTOP" => "place: HOOD",
            "severity: BAD" => "severity: MEDIUM",
            _ => "{ code: PAINTED, label: Boyalı, severity: MEDIUM }",
        };
        fs::write(deployment.folder.path().join("wrong.yaml"), yaml.replace(right, wrong)).unwrap();
        deployment
            .run(&["template", "import", "izmir", "wrong.yaml"])
            .failed(2, message);
    }

    let client = cluster::connect(&deployment.config).await;
    client.batch_execute(ANSWERED).await.unwrap();
    let without = yaml.replace("    - { code: SLIP_FRONT, name: Slip at the front, unit: m/km }\n", "");
    let without = without.replace("points: [{ code: DOORS, name: Doors }]", "points: []");
    fs::write(deployment.folder.path().join("without.yaml"), without).unwrap();
    let imported = deployment.json(&["template", "import", "izmir", "without.yaml"]);
    assert!(
        imported["what"]
            .as_str()
            .unwrap()
            .contains("were kept at the end: TEST_LINE/SLIP_FRONT"),
        "{imported}"
    );
    let points = |template: usize| {
        let points = imported["result"][template]["points"].as_array().unwrap();
        points
            .iter()
            .map(|point| point["code"].as_str().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(points(0), ["SLIP_REAR", "SLIP_FRONT"]);
    assert_eq!(points(1), [""; 0]);
}

/// A report with an answer to SLIP_FRONT.
const ANSWERED: &str = "\
INSERT INTO vehicles VALUES ('00000000-0000-7000-8000-00000000000a', '34ABC123', 'VIN', 'B', 'M', 2020, 'SUV', 'LPG', 'MANUAL', 'C', 1, 1);
INSERT INTO inspections (id, report_number, organization_id, branch_id, vehicle_id, status, plate, package_name,
  package_base_price, base_price, final_price, payment_type, snapshot_vin, snapshot_mileage_km)
SELECT '00000000-0000-7000-8000-00000000000b', 'R-1', organization_id, id, '00000000-0000-7000-8000-00000000000a', 'DRAFT',
  '34ABC123', 'P', 1, 1, 1, 'CASH', 'VIN', 1 FROM branches WHERE code = 'IZM-01';
INSERT INTO inspection_forms (id, organization_id, inspection_id, template_id)
SELECT '00000000-0000-7000-8000-00000000000c', organization_id, '00000000-0000-7000-8000-00000000000b', id FROM form_templates WHERE is_test_line;
INSERT INTO inspection_form_answers
SELECT '00000000-0000-7000-8000-00000000000c', id, organization_id, 'GOOD', 'Good', 'NONE', 1, '', false, NULL, 'x', now()
FROM form_template_points
WHERE code = 'SLIP_FRONT';";
