use std::fs;
use std::path::PathBuf;
use std::time::Duration;

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

/// The names in a folder of the spool, without what is hidden.
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

/// The one answer in a folder.
fn answer(program: &Program, folder: &str) -> Value {
    let names = names(program, folder);
    let answers: Vec<_> = names.iter().filter(|name| name.ends_with(".answer.json")).collect();
    assert_eq!(answers.len(), 1, "{names:?}");
    let text = fs::read(program.path("spool").join(folder).join(answers[0])).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// MEA-5, MEA-10
#[tokio::test]
async fn a_file_is_sent_and_moved_with_its_answer_and_its_name_can_be_used_again() {
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
async fn what_the_service_will_not_have_is_kept_with_the_reason() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    fs::write(
        spool(&program).join("lost.json"),
        package("D-1").replace("IZMIR-01", "NOWHERE"),
    )
    .unwrap();
    let ran = program.run(&ONCE).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let answer = answer(&program, "refused");
    assert_eq!(answer["error"]["code"], "not_found");
    assert!(answer["request_id"].is_string());
    assert_eq!(service.count("measurements").await, 0);
}

/// MEA-11
#[tokio::test]
async fn a_file_whose_id_was_used_for_another_is_not_taken_for_sent() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    for (name, serial) in [("a.json", "D-1"), ("b.json", "D-2")] {
        let package = package(serial).replacen('{', r#"{"external_id":"M-1","#, 1);
        fs::write(spool(&program).join(name), package).unwrap();
        assert_eq!(program.run(&ONCE).await.code, 0);
    }
    assert_eq!(answer(&program, "sent")["answer"]["data"]["idempotent_replay"], false);
    let refused = answer(&program, "refused");
    assert_eq!(refused["answer"]["data"]["payload_mismatch"], true, "{refused}");
}

#[tokio::test]
async fn a_file_that_is_broken_is_left_alone_for_a_while_and_then_put_aside() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let path = spool(&program).join("half.json");
    fs::write(&path, "{\"plate\":").unwrap();
    fs::write(spool(&program).join("notes.txt"), "not for the service").unwrap();
    fs::create_dir(spool(&program).join("folder.json")).unwrap();
    let ran = program.run(&ONCE).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let answer = answer(&program, "refused");
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("no JSON object"),
        "{answer}"
    );
    assert_eq!(names(&program, ""), ["notes.txt"]);
    assert_eq!(service.count("measurements").await, 0);
}

/// The answer is written before the file is moved: between the two, the file is done with.
#[tokio::test]
async fn a_file_whose_answer_is_there_is_moved_and_not_sent_again() {
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

/// MEA-16: its place and name are all that is known of it, and enough.
#[tokio::test]
async fn a_file_that_was_being_sent_is_sent_with_the_same_id() {
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
        .within(Duration::from_secs(20), async || program.path("spool/refused").is_dir())
        .await;
    program
        .run(&ONCE)
        .await
        .failed(4, "another partner measure --watch has");
    first.kill().await.unwrap();
    assert_eq!(program.run(&ONCE).await.code, 0);
}

/// A key that cannot work is told at once; a service that is away is waited for.
#[tokio::test]
async fn a_wrong_key_ends_it_at_the_start_and_sends_nothing() {
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
