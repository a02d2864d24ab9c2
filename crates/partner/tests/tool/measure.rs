use partner_api_tests::{ALPHA, BETA, Service};
use serde_json::json;

use crate::program::Program;

const FLAGS: [&str; 9] = [
    "measure",
    "--branch",
    "IZMIR-01",
    "--plate",
    "35 OPN 205",
    "--point",
    "BRAKE_FRONT_LEFT=2.850",
    "--point",
    "SLIP_FRONT=-1.4",
];

/// MEA-4, MEA-6
#[tokio::test]
async fn a_measurement_from_flags_keeps_its_decimals_and_gets_an_id() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let response = program.json(&FLAGS).await;
    assert_eq!(response["data"]["status"], "applied");
    let raw = service
        .rows("SELECT convert_from(raw, 'UTF8') AS raw, external_id FROM measurements")
        .await;
    let text = raw[0]["raw"].as_str().unwrap();
    assert!(text.contains(r#""BRAKE_FRONT_LEFT":2.850"#), "{text}");
    assert!(
        raw[0]["external_id"].as_str().unwrap().starts_with("IZMIR-01-"),
        "{raw}"
    );
}

/// MEA-7
#[tokio::test]
async fn a_stale_point_is_listed_with_an_explanation() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let ran = program
        .run(&[&FLAGS[..], &["--measured-at", "1970-01-01T00:00:09Z"]].concat())
        .await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let shown = "BRAKE_FRONT_LEFT (stale; check measured_at and the device's clock), SLIP_FRONT (stale; check";
    assert!(ran.stdout.contains(shown), "{}", ran.stdout);
    let outcomes = service.rows("SELECT point_outcomes FROM measurements").await;
    assert_eq!(outcomes, json!([{ "point_outcomes": ["stale", "stale"] }]));
}

/// MEA-6
#[tokio::test]
async fn an_unknown_code_is_listed_with_the_nearest_known_one() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let codes = ["BRAKE_FRONT_LEFF=2.85", "WHEEL_ALIGNMENT=1", "SLIP_FRONT=1.2"];
    let points: Vec<_> = codes.iter().flat_map(|code| ["--point", code]).collect();
    let ran = program
        .run(
            &[
                &["measure", "--branch", "IZMIR-01", "--plate", "35 OPN 205"],
                &points[..],
            ]
            .concat(),
        )
        .await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for shown in [
        "BRAKE_FRONT_LEFF (unknown_point; did you mean BRAKE_FRONT_LEFT?)",
        "WHEEL_ALIGNMENT (unknown_point)",
    ] {
        assert!(ran.stdout.contains(shown), "{}", ran.stdout);
    }
}

/// MEA-5, MEA-10, MEA-11
#[tokio::test]
async fn a_package_from_a_file_or_standard_input_is_sent_unchanged() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let package = "{ \"branch_code\":\"IZMIR-01\", \"plate\":\"34 ABC 123\",\n \"external_id\":\"M-1\", \
                   \"measurements\": {\"SLIP_FRONT\": 1.50} }";
    std::fs::write(program.path("package.json"), package).unwrap();
    let first = program.json(&["measure", "package.json"]).await;
    assert_eq!(
        (&first["data"]["status"], &first["data"]["idempotent_replay"]),
        (&json!("pending"), &json!(false))
    );
    let again = program
        .fed(&mut program.command(&["measure", "-", "--json"]), package.as_bytes())
        .await
        .json();
    assert_eq!(again["data"]["idempotent_replay"], true);
    let raw = service
        .rows("SELECT convert_from(raw, 'UTF8') AS raw FROM measurements")
        .await;
    assert_eq!(raw, json!([{ "raw": package }]));

    let other = package.replace("1.50", "1.60");
    let mismatch = program
        .fed(&mut program.command(&["measure", "-"]), other.as_bytes())
        .await;
    mismatch.failed(4, "was already used for another package");
}

#[tokio::test]
async fn invalid_arguments_are_reported_before_anything_is_sent() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let with = |point: &'static str| [&FLAGS[..], &["--point", point]].concat();
    program
        .run(&with("HANDBRAKE_LEFT=1,5"))
        .await
        .failed(2, "use a decimal point: HANDBRAKE_LEFT=1.5");
    program
        .run(&with("slip_front=1"))
        .await
        .failed(2, "SLIP_FRONT is given twice");
    program.run(&["measure"]).await.failed(2, "a package is required");
    std::fs::write(program.path("half.json"), "{\"plate\":").unwrap();
    program
        .run(&["measure", "half.json"])
        .await
        .failed(2, "ends unexpectedly");
    program.run(&["measure", "none.json"]).await.failed(3, "none.json");
    assert_eq!(service.count("measurements").await, 0);
}

/// ERR-6
#[tokio::test]
async fn a_key_without_the_scope_is_rejected_with_a_remedy() {
    let service = Service::start().await;
    let ran = Program::new(&service, &BETA).run(&FLAGS).await;
    ran.failed(4, "ask the operator for it");
    assert_eq!(ran.stderr.matches("ask the operator").count(), 1, "{}", ran.stderr);
}
