use partner_api_tests::fixture::LIVE;
use partner_api_tests::{ALPHA, BETA, Service};

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
