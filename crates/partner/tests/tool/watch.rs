//! `partner measure --watch`. The file is long because its tests share the folder and its packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, SecondsFormat, Utc};
use partner_api_tests::{ALPHA, Service};
use serde_json::{Value, json};

use crate::program::{Program, Ran};

pub const ONCE: [&str; 8] = [
    "measure", "--watch", "spool", "--settle", "100ms", "--every", "50ms", "--once",
];

pub fn package(serial: &str) -> String {
    json!({
        "branch_code": "IZMIR-01", "plate": "34 ABC 123", "device_serial": serial, "measurements": { "SLIP_FRONT": 1.5 }
    })
    .to_string()
}

/// The names of the files in a folder of the spool, without hidden ones.
pub fn names(program: &Program, folder: &str) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(program.path("spool").join(folder))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort_unstable();
    names
}

fn spool(program: &Program) -> PathBuf {
    let path = program.path("spool");
    fs::create_dir_all(&path).unwrap();
    path
}

/// The only response file in a folder.
fn response(program: &Program, folder: &str) -> Value {
    let names = names(program, folder);
    let responses: Vec<_> = names.iter().filter(|name| name.ends_with(".answer.json")).collect();
    assert_eq!(responses.len(), 1, "{names:?}");
    let text = fs::read(program.path("spool").join(folder).join(responses[0])).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// MEA-5, MEA-10
#[tokio::test]
async fn a_file_is_sent_and_moved_with_its_response_and_its_name_can_be_reused() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    for serial in ["D-1", "D-2"] {
        fs::write(spool(&program).join("result.json"), package(serial)).unwrap();
        let ran = program.run(&ONCE).await;
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.contains("sent  result.json  pending"), "{}", ran.stdout);
    }
    assert_eq!(names(&program, ""), [""; 0]);
    assert_eq!(names(&program, "sending"), [""; 0]);
    let sent = names(&program, "sent");
    assert_eq!(sent.len(), 4, "{sent:?}");
    assert!(sent.iter().all(|name| name.starts_with("result.")), "{sent:?}");
    let rows = service.rows("SELECT device_serial FROM measurements ORDER BY 1").await;
    assert_eq!(rows, json!([{ "device_serial": "D-1" }, { "device_serial": "D-2" }]));
}

/// MEA-1, ERR-8
#[tokio::test]
async fn a_rejected_file_is_kept_with_the_reason() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    fs::write(
        spool(&program).join("lost.json"),
        package("D-1").replace("IZMIR-01", "NOWHERE"),
    )
    .unwrap();
    let ran = program.run(&ONCE).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let response = response(&program, "rejected");
    assert_eq!(response["error"]["code"], "not_found");
    assert!(response["request_id"].is_string());
    assert_eq!(service.count("measurements").await, 0);
}

/// ERR-9
#[tokio::test]
async fn a_rejection_names_every_field_on_the_screen_in_json_and_in_the_response_file() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let errors = r#"{"branch_code":7,"plate":"34 ABC 123","measured_at":"now","measurements":{"a":1}}"#;
    let fields = json!(["/branch_code", "/measured_at", "/measurements/a"]);
    let fields_of = |error: &Value| -> Value {
        assert_eq!(error["field"], "/branch_code", "{error}");
        error["details"]
            .as_array()
            .unwrap()
            .iter()
            .map(|detail| detail["field"].clone())
            .collect()
    };
    fs::write(spool(&program).join("errors.json"), errors).unwrap();
    let ran = program.run(&ONCE).await;
    for field in fields.as_array().unwrap() {
        assert!(
            ran.stdout.contains(&format!("\n    {}: ", field.as_str().unwrap())),
            "{}",
            ran.stdout
        );
    }
    assert_eq!(fields_of(&response(&program, "rejected")["error"]), fields);

    fs::write(spool(&program).join("errors.json"), errors).unwrap();
    let ran = program.run(&[&ONCE[..], &["--json"]].concat()).await;
    let line: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(fields_of(&line["answer"]["error"]), fields);

    fs::write(program.path("errors.json"), errors).unwrap();
    let ran = program.run(&["measure", "errors.json"]).await;
    ran.failed(2, "\n    /measured_at: must ");
    // The first line of standard error is the generated external_id.
    let ran = program.run(&["measure", "errors.json", "--json"]).await;
    let failure: Value = serde_json::from_str(&ran.stderr[ran.stderr.find('{').unwrap()..]).unwrap();
    assert_eq!(fields_of(&failure["error"]), fields);
}

/// ERR-9
#[tokio::test]
async fn a_file_that_is_not_json_is_rejected_at_once_with_the_message_of_the_service() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let comma = package("D-1").replace("1.5", "1,5");
    for bytes in [
        comma.as_bytes(),
        b"[]",
        b"<package/>",
        b"{\"plate\":\"34 \xc7 123\"}",
        b"{'plate':1}",
    ] {
        fs::write(spool(&program).join("broken.json"), bytes).unwrap();
        let answered = service.measure(&ALPHA, bytes.to_vec()).await;
        let ran = program.run(&ONCE).await;
        assert!(
            ran.stdout.contains(&answered.message()),
            "{}\n{}",
            ran.stdout,
            answered.message()
        );
        let rejected = response(&program, "rejected");
        assert_eq!(rejected["error"]["message"], answered.message());
        assert_eq!(rejected["error"]["details"], answered.json()["error"]["details"]);
        fs::remove_dir_all(program.path("spool/rejected")).unwrap();
    }
}

/// MEA-5
#[tokio::test]
async fn a_file_in_utf_16_with_a_byte_order_mark_is_sent_in_utf_8() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let text = package("Tünel-1");
    let bytes: Vec<u8> = [0xfeff]
        .into_iter()
        .chain(text.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    fs::write(spool(&program).join("windows.json"), bytes).unwrap();
    let ran = program.run(&ONCE).await;
    assert!(ran.stdout.contains("sent  windows.json"), "{}", ran.stdout);
    let rows = service.rows("SELECT device_serial FROM measurements").await;
    assert_eq!(rows, json!([{ "device_serial": "Tünel-1" }]));
}

fn with_mapping(folder: &[&'static str]) -> Vec<&'static str> {
    [folder, &["--map", "mapping.toml"]].concat()
}

const EXPORTS: &str = r#"
branch_code = { value = "IZMIR-01" }
plate = { column = "Plate" }
measured_at = { column = "Time", format = "%Y-%m-%d %H:%M", offset = "+03:00" }
points = { SLIP_FRONT = { column = "Slip" } }
"#;

/// MEA-5, MEA-10
#[tokio::test]
async fn the_records_of_an_export_are_sent_once_in_the_order_of_their_times() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    fs::write(program.path("mapping.toml"), EXPORTS).unwrap();
    let export = "Plate,Time,Slip\n34 ABC 123,,3\n34 ABC 123,2026-06-15 12:00,2\n34 ABC 123,2026-06-15 11:00,1\n";
    let written: DateTime<Utc> = "2026-06-15T09:30:00.250Z".parse().unwrap();
    for number in 1..=2 {
        write_at(&spool(&program).join("Export.CSV"), export, written.into());
        let ran = program.run(&with_mapping(&ONCE)).await;
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(
            ran.stdout.matches("recorded before").count(),
            (number - 1) * 3,
            "{}",
            ran.stdout
        );
    }
    let query = "SELECT convert_from(raw, 'UTF8')::jsonb->'measurements'->>'SLIP_FRONT' AS slip, measured_at AT TIME ZONE 'UTC' AS at
                 FROM measurements ORDER BY received_at, id";
    assert_eq!(
        service.rows(query).await,
        json!([
            { "slip": "1", "at": "2026-06-15T08:00:00" },
            { "slip": "2", "at": "2026-06-15T09:00:00" },
            { "slip": "3", "at": "2026-06-15T09:30:00.25" },
        ])
    );
    assert_eq!(names(&program, "sending"), [""; 0]);
    let kept = |ending: &str| {
        let sent = names(&program, "sent");
        sent.iter().filter(|name| name.ends_with(ending)).count()
    };
    assert_eq!((kept(".csv"), kept(".answer.json"), kept(".json")), (2, 3, 6));
}

/// MEA-10
#[tokio::test]
async fn an_export_with_an_invalid_record_is_rejected_as_a_whole() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    fs::write(program.path("mapping.toml"), EXPORTS).unwrap();
    let export = "Plate,Time,Slip\n34 ABC 123,2026-06-15 11:00,1\n34 ABC 123,,\n";
    fs::write(spool(&program).join("export.csv"), export).unwrap();
    let ran = program.run(&with_mapping(&ONCE)).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("rejected  export.csv"), "{}", ran.stdout);
    let response = response(&program, "rejected");
    assert_eq!(response["error"]["code"], "not_sent");
    let message = response["error"]["message"].as_str().unwrap();
    assert!(message.contains("line 3: has no measured values"), "{message}");
    assert_eq!(service.count("measurements").await, 0);
}

/// MEA-10
#[tokio::test]
async fn an_interrupted_conversion_of_an_export_is_repeated() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    fs::write(program.path("mapping.toml"), EXPORTS).unwrap();
    let sending = spool(&program).join("sending");
    fs::create_dir_all(&sending).unwrap();
    let claimed = sending.join("0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f~export.csv");
    fs::write(claimed, "Plate,Time,Slip\n34 ABC 123,2026-06-15 11:00,1\n").unwrap();
    // Without the mapping it waits.
    let ran = program.run(&ONCE).await;
    assert!(ran.stderr.contains("pass --map to send them"), "{}", ran.stderr);
    assert_eq!(service.count("measurements").await, 0);
    let ran = program.run(&with_mapping(&ONCE)).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(service.count("measurements").await, 1);
    assert_eq!(names(&program, "sending"), [""; 0]);
}

fn write_at(path: &Path, text: &str, time: SystemTime) {
    fs::write(path, text).unwrap();
    fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(time)
        .unwrap();
}

/// MEA-5, MEA-8
#[tokio::test]
async fn a_backlog_is_sent_in_the_order_of_file_times_and_the_report_shows_the_last_value_with_its_time() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let started = SystemTime::now() - Duration::from_secs(3600);
    // The names are not in the order of the times, and the last two files have the same time.
    for (name, minute, value) in [
        ("d", 1, "1.5"),
        ("a", 2, "2.5"),
        ("e", 3, "3.5"),
        ("b", 5, "4.5"),
        ("c", 5, "5.5"),
    ] {
        let package = format!(
            r#"{{"branch_code":"IZMIR-01","plate":"35 OPN 205","device_serial":"{name}","measurements":{{"SLIP_FRONT":{value}}}}}"#
        );
        let time = started + Duration::from_secs(60 * minute);
        write_at(&spool(&program).join(format!("{name}.json")), &package, time);
    }
    let ran = program.run(&ONCE).await;
    let sent: Vec<_> = ran
        .stdout
        .lines()
        .map(|line| line.split("  ").nth(2).unwrap())
        .collect();
    assert_eq!(
        sent,
        ["d.json", "a.json", "e.json", "b.json", "c.json"],
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    let rows = service
        .rows(
            "SELECT a.numeric_value::text AS value FROM inspection_form_answers a \
             JOIN form_template_points p ON p.id = a.point_id WHERE a.measurement_id IS NOT NULL AND p.code = 'SLIP_FRONT'",
        )
        .await;
    assert_eq!(rows, json!([{ "value": "5.5" }]));
    let at: DateTime<Utc> = (started + Duration::from_secs(300)).into();
    let measured = service
        .rows(
            "SELECT device_serial, to_char(measured_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') AS at \
             FROM measurements ORDER BY measured_at DESC, device_serial LIMIT 2",
        )
        .await;
    let at = at.to_rfc3339_opts(SecondsFormat::Millis, true);
    assert_eq!(
        measured,
        json!([{ "device_serial": "b", "at": at }, { "device_serial": "c", "at": at }])
    );
}

/// MEA-3
#[tokio::test]
async fn a_file_time_that_the_service_rejects_is_left_out() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    fs::create_dir_all(spool(&program).join("sending")).unwrap();
    // A UUID of the year 2100.
    let claimed = "03bb2cc3-d800-7f66-a071-7c8d9e0f1a2b~a.json";
    fs::write(spool(&program).join("sending").join(claimed), package("D-1")).unwrap();
    let ran = program.run(&ONCE).await;
    assert!(ran.stdout.contains("sent  a.json"), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(service.count("measurements WHERE measured_at = received_at").await, 1);
}

#[tokio::test]
async fn files_and_folders_that_are_not_sent_are_named_once() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    for name in ["results.txt", "data.xml"] {
        fs::write(spool(&program).join(name), "").unwrap();
    }
    fs::create_dir(spool(&program).join("old.json")).unwrap();
    fs::write(spool(&program).join("a.json"), package("D-1")).unwrap();
    let ran = program.run(&ONCE).await;
    let line = "not sent: data.xml, old.json, results.txt (only .json";
    assert!(ran.stderr.contains(line), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("data.xml").count(), 1, "{}", ran.stderr);
}

/// MEA-10. For example, a disk is full, or a network drive is gone for a while.
#[tokio::test]
async fn a_watch_waits_while_its_folders_cannot_be_written() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let folder = spool(&program);
    let mut watch = program.command(&ONCE[..ONCE.len() - 1]);
    let mut watch = watch.stderr(std::process::Stdio::null()).spawn().unwrap();
    service
        .within(Duration::from_secs(20), async || folder.join("rejected").is_dir())
        .await;
    fs::remove_dir(folder.join("sent")).unwrap();
    fs::write(folder.join("a.json"), package("D-1")).unwrap();
    // The response to the first attempt cannot be stored, so the file is sent again.
    let is_sent_again = async || service.used_nonces().await >= 3;
    service.within(Duration::from_secs(20), is_sent_again).await;
    fs::create_dir(folder.join("sent")).unwrap();
    service
        .within(Duration::from_secs(20), async || !names(&program, "sent").is_empty())
        .await;
    watch.kill().await.unwrap();
    assert_eq!(service.count("measurements").await, 1);
}

/// MEA-11
#[tokio::test]
async fn a_file_with_the_external_id_of_another_package_is_rejected() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    for (name, serial) in [("a.json", "D-1"), ("b.json", "D-2")] {
        let package = package(serial).replacen('{', r#"{"external_id":"M-1","#, 1);
        fs::write(spool(&program).join(name), package).unwrap();
        assert_eq!(program.run(&ONCE).await.code, 0);
    }
    assert_eq!(response(&program, "sent")["answer"]["data"]["idempotent_replay"], false);
    let rejected = response(&program, "rejected");
    assert_eq!(rejected["answer"]["data"]["payload_mismatch"], true, "{rejected}");
}

#[tokio::test]
async fn a_broken_file_is_rejected_after_a_while() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let path = spool(&program).join("half.json");
    fs::write(&path, "{\"plate\":").unwrap();
    fs::write(spool(&program).join("notes.txt"), "not for the service").unwrap();
    fs::create_dir(spool(&program).join("folder.json")).unwrap();
    let ran = program.run(&ONCE).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let response = response(&program, "rejected");
    let message = response["error"]["message"].as_str().unwrap();
    assert!(message.contains("ends unexpectedly"), "{message}");
    assert_eq!(names(&program, ""), ["notes.txt"]);
    assert_eq!(service.count("measurements").await, 0);
}

/// The response is written before the file is moved.
#[tokio::test]
async fn a_file_with_a_response_is_moved_and_not_sent_again() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let uuid = "0197c2b0-3c00-7f66-a071-7c8d9e0f1a2b";
    for folder in ["sending", "sent"] {
        fs::create_dir_all(spool(&program).join(folder)).unwrap();
    }
    fs::write(spool(&program).join(format!("sending/{uuid}~a.json")), package("D-1")).unwrap();
    fs::write(spool(&program).join(format!("sent/a.{uuid}.answer.json")), "{}").unwrap();
    assert_eq!(program.run(&ONCE).await.code, 0);
    assert_eq!(
        names(&program, "sent"),
        [format!("a.{uuid}.answer.json"), format!("a.{uuid}.json")]
    );
    assert_eq!(service.count("measurements").await, 0);
}

/// MEA-16
#[tokio::test]
async fn an_interrupted_file_is_sent_again_with_the_same_id() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let uuid = "0197c2b0-3c00-7f66-a071-7c8d9e0f1a2b";
    fs::create_dir_all(spool(&program).join("sending")).unwrap();
    fs::write(spool(&program).join(format!("sending/{uuid}~a.json")), package("D-1")).unwrap();
    assert_eq!(program.run(&ONCE).await.code, 0);
    let rows = service.rows("SELECT external_id FROM measurements").await;
    assert_eq!(rows, json!([{ "external_id": format!("IZMIR-01-D-1-{uuid}") }]));
}

#[tokio::test]
async fn a_folder_has_one_watcher() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    spool(&program);
    let mut first = program.command(&["measure", "--watch", "spool"]).spawn().unwrap();
    service
        .within(Duration::from_secs(20), async || {
            program.path("spool/rejected").is_dir()
        })
        .await;
    program
        .run(&ONCE)
        .await
        .failed(4, "another partner measure --watch is running in");
    first.kill().await.unwrap();
    assert_eq!(program.run(&ONCE).await.code, 0);
}

/// Unlike an unreachable service, a rejected key ends the program.
#[tokio::test]
async fn a_rejected_key_ends_the_watch_before_anything_is_sent() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    fs::write(spool(&program).join("a.json"), package("D-1")).unwrap();
    let mut wrong = program.command(&ONCE);
    let ran = Ran::from(
        wrong
            .env("PARTNER_SECRET", "WRONGWRONGWRONGWRONGWRONGWRONGWR")
            .output()
            .await
            .unwrap(),
    );
    ran.failed(4, "invalid_signature");
    assert_eq!(names(&program, ""), ["a.json"]);
}
