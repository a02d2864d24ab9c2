//! Imports that are repeated, concurrent or interrupted.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use partner_api_tests::cluster;
use serde_json::json;
use tokio_postgres::Client;

use super::{deployment, ndjson, report, vehicle, with};
use crate::operators::program::{Deployment, Ran};

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
