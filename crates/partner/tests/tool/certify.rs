use partner_api_tests::fixture::LIVE;
use partner_api_tests::{ALPHA, BETA, Service};

use crate::gateway::scripted;
use crate::program::Program;

const OPEN: [&str; 5] = ["certify", "--branch", "IZMIR-01", "--plate", "35 OPN 205"];

/// SVC-7
#[tokio::test]
async fn the_scenarios_pass_with_a_table_a_page_and_a_junit_report() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let reports = ["--html", "acceptance.html", "--junit", "acceptance.xml"];
    let ran = program.run(&[&OPEN[..], &reports].concat()).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stdout.matches('✓').count(), 6, "{}", ran.stdout);
    let page = std::fs::read_to_string(program.path("acceptance.html")).unwrap();
    assert!(page.contains("6 of 6 passed") && page.contains(&service.base_url));
    let junit = std::fs::read_to_string(program.path("acceptance.xml")).unwrap();
    assert!(
        junit.contains(r#"tests="6""#) && junit.contains(r#"failures="0""#),
        "{junit}"
    );
    program
        .run(&[&OPEN[..], &reports].concat())
        .await
        .failed(4, "is not overwritten");
}

/// SVC-7
#[tokio::test]
async fn a_failed_scenario_is_exit_code_1_and_appears_in_the_reports() {
    let service = Service::start().await;
    let program = Program::new(&service, &BETA);
    let ran = program.run(&[&OPEN[..], &["--junit", "acceptance.xml"]].concat()).await;
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("403 scope_required"), "{}", ran.stdout);
    let junit = std::fs::read_to_string(program.path("acceptance.xml")).unwrap();
    assert!(junit.contains("got 403 scope_required"), "{junit}");
}

#[tokio::test]
async fn a_live_key_is_rejected_without_the_live_flag() {
    let service = Service::start().await;
    Program::new(&service, &LIVE).run(&OPEN).await.failed(4, "pass --live");
}

/// SVC-7
#[tokio::test]
async fn the_scenarios_end_if_a_service_does_not_respond() {
    let base_url = scripted(&[]).await;
    let certify = [
        "certify",
        "--branch",
        "A",
        "--plate",
        "34 ABC 123",
        "--timeout",
        "300ms",
        "--json",
    ];
    let ran = Program::at(&base_url, &ALPHA).run(&certify).await;
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let outcomes: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(outcomes.as_array().unwrap().len(), 6, "{outcomes}");
}

/// SVC-7
#[tokio::test]
async fn a_failed_scenario_says_what_is_wrong_with_the_response() {
    let base_url = scripted(&[
        "HTTP/1.1 201 x\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n\
         {\"data\":{\"measurement_id\":\"01a200b8-b0ff-71dd-b4c1-5fea9ad79901\",\"status\":\"applied\",\"plate\":\"34ABC123\",\
         \"inspection_id\":\"01a200b8-b0ff-71dd-b4c1-5fea9ad79902\",\"applied_points\":[\"SLIP_FRONT\"],\"idempotent_replay\":false}}",
        "HTTP/1.1 200 x\r\ncontent-type: application/json\r\nx-request-id: r-2\r\nconnection: close\r\n\r\n\
         {\"data\":{\"measurement_id\":\"01a200b8-b0ff-71dd-b4c1-5fea9ad79903\",\"status\":\"applied\",\"plate\":\"34ABC123\",\
         \"inspection_id\":\"01a200b8-b0ff-71dd-b4c1-5fea9ad79902\",\"applied_points\":[],\"idempotent_replay\":true}}",
    ])
    .await;
    let certify = [
        "certify",
        "--branch",
        "A",
        "--plate",
        "34 ABC 123",
        "--timeout",
        "300ms",
        "--json",
    ];
    let ran = Program::at(&base_url, &ALPHA).run(&certify).await;
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let outcomes: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    for (index, expected) in [(0, "without X-Request-Id"), (1, "with the ID of another measurement")] {
        assert_eq!(outcomes[index]["passed"], false, "{outcomes}");
        let got = outcomes[index]["got"].as_str().unwrap();
        assert!(got.contains(expected), "{got}");
    }
}
