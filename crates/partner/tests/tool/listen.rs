//! `partner certify --listen` with the kits of `samples/`, and with copies of one that have a deliberate mistake.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use partner_api_signing::{certificate_text, verify};
use partner_api_tests::fixture::LIVE;
use partner_api_tests::{ALPHA, Service, TestKey};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::program::{Program, Ran};

/// The default script with a shorter delay.
const SCRIPT: &str = r#"
step = [
    { name = "a measurement" },
    { name = "rate limit", responses = ["code=429, error=rate_limited"] },
    { name = "service unavailable", responses = ["code=503", "code=503"] },
    { name = "dropped connection", responses = ["drop"] },
    { name = "slow response", responses = ["delay=1"] },
    { name = "skipped points", responses = ["code=201, example=applied"] },
    { name = "external_id of another measurement", id_is_taken = true },
    { name = "list with filters", task = "list" },
    { name = "revoked key", responses = ["code=401, error=invalid_key", "code=401, error=invalid_key"] },
]
"#;

fn kit(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples").join(path)
}

/// Certifies a program.
async fn certify(service: &Service, program: &Program, command: &[&str]) -> Ran {
    fs::write(program.path("script.toml"), SCRIPT).unwrap();
    let options = [
        "certify",
        "--listen",
        "--branch",
        "IZMIR-01",
        "--plate",
        "35 OPN 205",
        "--script",
        "script.toml",
    ];
    let files = [
        "--html",
        "certificate.html",
        "--report",
        "certificate.json",
        "--json",
        "--",
    ];
    let ran = program.run(&[&options[..], &files, command].concat()).await;
    assert!(service.count("measurements").await > 0, "{}", ran.stderr);
    ran
}

/// Returns the failed checks, as `step: check`.
fn failed(ran: &Ran) -> Vec<String> {
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr));
    let certificate = &report["certificate"];
    let mut failed = Vec::new();
    for step in certificate["steps"].as_array().unwrap() {
        for check in step["checks"].as_array().unwrap() {
            if check["passed"] != true {
                failed.push(format!(
                    "{}: {}",
                    step["name"].as_str().unwrap(),
                    check["check"].as_str().unwrap()
                ));
            }
        }
    }
    assert_eq!(certificate["passed"], failed.is_empty());
    assert_eq!(ran.code, i32::from(!failed.is_empty()), "{}", ran.stderr);
    failed
}

async fn passes(command: &[&str]) {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let ran = certify(&service, &program, command).await;
    assert_eq!(failed(&ran), [""; 0], "{}{}", ran.stdout, ran.stderr);
}

/// Certifies the Python kit after a text was replaced, and returns the failed checks.
async fn with_mistake(right: &str, wrong: &str) -> Vec<String> {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let source = fs::read_to_string(kit("python/partner.py")).unwrap();
    assert!(source.contains(right), "{right}");
    fs::write(program.path("wrong.py"), source.replace(right, wrong)).unwrap();
    failed(&certify(&service, &program, &["python3", "wrong.py"]).await)
}

/// SVC-12
#[tokio::test]
async fn the_python_kit_passes_and_its_report_is_signed() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let path = kit("python/partner.py");
    let ran = certify(&service, &program, &["python3", path.to_str().unwrap()]).await;
    assert_eq!(failed(&ran), [""; 0], "{}{}", ran.stdout, ran.stderr);

    let secret = ALPHA.secret.parse().unwrap();
    let report: Value = serde_json::from_slice(&fs::read(program.path("certificate.json")).unwrap()).unwrap();
    let certificate = &report["certificate"];
    assert_eq!(report, serde_json::from_str::<Value>(&ran.stdout).unwrap());
    assert_eq!(certificate["key_id"], ALPHA.id);
    assert_eq!(certificate["has_default_script"], false);
    let signature = report["signature"].as_str().unwrap();
    assert!(verify(&secret, &certificate_text(&certificate.to_string()), signature));
    // The requests of a step are in the sandbox's request log.
    let outcomes: Vec<_> = certificate["steps"][2]["requests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|request| request["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["503 service_unavailable", "503 service_unavailable", "201"]);

    let page = fs::read_to_string(program.path("certificate.html")).unwrap();
    let (content, signed) = page.rsplit_once("\n<!-- ").unwrap();
    let (key, signature) = signed.strip_suffix(" -->\n").unwrap().split_once(' ').unwrap();
    assert_eq!(key, ALPHA.id);
    assert!(verify(&secret, &certificate_text(content), signature));
    assert!(content.contains("9 of 9 steps passed"));
    for text in [&page, &report.to_string(), &ran.stderr] {
        assert!(!text.contains(ALPHA.secret), "{text}");
    }
}

/// SVC-12
#[tokio::test]
async fn the_node_kit_passes() {
    passes(&["node", kit("node/partner.mjs").to_str().unwrap()]).await;
}

/// SVC-12
#[tokio::test]
async fn the_curl_kit_passes() {
    passes(&["bash", kit("curl/partner.sh").to_str().unwrap()]).await;
}

/// SVC-12
#[tokio::test]
async fn a_program_that_repeats_its_nonce_fails() {
    let failed = with_mistake("secrets.token_hex(16)", "f\"{os.getpid():016}\"").await;
    // The service rejects the repeated nonce, so the retry fails as well.
    let (repeats, rest): (Vec<_>, Vec<_>) = failed
        .iter()
        .partition(|check| check.ends_with("uses a new nonce for each request"));
    assert_eq!(repeats.len(), 3, "{failed:?}");
    assert!(
        rest.iter()
            .all(|check| check.ends_with("sends the request again until it succeeds")),
        "{failed:?}"
    );
}

/// SVC-12
#[tokio::test]
async fn a_program_that_changes_its_external_id_at_each_retry_fails() {
    let right = "            try:\n                response = self.attempt(method, target, body)\n";
    let wrong = "            body = body.replace(b'\"certify-', b'\"certify-%d' % attempt)\n".to_owned() + right;
    assert_eq!(
        with_mistake(right, &wrong).await,
        [
            "rate limit: keeps the external_id at each retry",
            "service unavailable: keeps the external_id at each retry",
            "dropped connection: keeps the external_id at each retry",
        ]
    );
}

/// SVC-12
#[tokio::test]
async fn a_program_that_prints_only_the_response_does_not_report_skipped_points() {
    assert_eq!(
        with_mistake(
            "    for point in response.skipped_points():\n",
            "    for point in []:\n"
        )
        .await,
        ["skipped points: reports skipped points"]
    );
}

/// SVC-12
#[tokio::test]
async fn a_program_that_does_not_wait_fails() {
    let mut failed = with_mistake("            time.sleep(wait)\n", "").await;
    // How soon the retry arrives depends on this machine.
    failed.retain(|check| check != "dropped connection: waits before each retry");
    assert_eq!(
        failed,
        [
            "rate limit: waits for Retry-After after 429",
            "service unavailable: waits for Retry-After after 503",
            "service unavailable: waits for Retry-After after 503",
        ]
    );
}

/// SVC-12
#[tokio::test]
async fn a_program_that_ignores_the_response_and_retries_with_a_rejected_key_fails() {
    let right = "again = response.status in (408, 429)";
    let wrong = "again = response.status in (401, 408, 429)";
    assert_eq!(
        with_mistake(right, wrong).await,
        ["revoked key: sends nothing after its key was rejected"]
    );
}

/// SVC-12
#[tokio::test]
async fn without_a_command_the_user_runs_the_program_and_types_what_it_reports() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    // As Windows PowerShell writes a text file.
    let script = "\u{feff}step = [{ name = \"skipped points\", responses = [\"code=201, example=applied\"] },\r\n  \
                  { name = \"another measurement\", id_is_taken = true }]\r\n";
    let utf16: Vec<u8> = script.encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(program.path("script.toml"), utf16).unwrap();
    let mut listening = program
        .command(&["certify", "--listen", "--script", "script.toml", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(listening.stderr.take().unwrap()).lines();
    let mut input = listening.stdin.take().unwrap();
    let first = lines.next_line().await.unwrap().unwrap();
    let base_url = first
        .split(' ')
        .find(|word| word.starts_with("http://"))
        .unwrap()
        .to_owned();
    let submit = async |id: &str| {
        let package = format!(
            r#"{{"branch_code":"IZMIR-01","plate":"35 OPN 205","external_id":"{id}","measurements":{{"BRAKE_FRONT_LEFT":2.85}}}}"#
        );
        let sender = Program::at(&base_url, &ALPHA);
        fs::write(sender.path("package.json"), package).unwrap();
        sender.run(&["measure", "package.json"]).await
    };
    for (id, question, answer) in [
        ("A-1", "Which points", "SLIP_FRONT\n"),
        ("A-2", "Which external_id", "A-1\n"),
    ] {
        while !lines.next_line().await.unwrap().unwrap().starts_with("Step ") {}
        let sent = submit(id).await;
        assert_eq!(sent.code, if id == "A-1" { 0 } else { 4 }, "{}", sent.stderr);
        while !lines.next_line().await.unwrap().unwrap().starts_with(question) {}
        input.write_all(answer.as_bytes()).await.unwrap();
    }
    while lines.next_line().await.unwrap().is_some() {}
    let ran: Ran = listening.wait_with_output().await.unwrap().into();
    // The user typed the wrong external_id.
    assert_eq!(failed(&ran), ["another measurement: reports payload_mismatch"]);
}

#[tokio::test]
async fn a_live_key_an_invalid_script_and_a_missing_program_are_rejected() {
    let service = Service::start().await;
    let listen = ["certify", "--listen", "--branch", "IZMIR-01", "--plate", "35 OPN 205"];
    let run = async |key: &TestKey, more: &[&str]| {
        let program = Program::new(&service, key);
        fs::write(program.path("script.toml"), "[[step]]\nname = 'a'\nfault = 'drop'\n").unwrap();
        program.run(&[&listen[..], more].concat()).await
    };
    run(&LIVE, &[]).await.failed(4, "use a test key");
    run(&ALPHA, &["--script", "script.toml"])
        .await
        .failed(2, "unknown field `fault`");
    let missing = run(&ALPHA, &["--", "no-such-program"]).await;
    missing.failed(3, "no-such-program");
}
