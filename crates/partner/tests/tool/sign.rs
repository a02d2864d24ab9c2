use partner_api_tests::{ALPHA, Service};
use tokio::process::Command;

use crate::program::Program;

const LIST: &str = "/api/v1/partner/inspections?status=published&limit=2";

/// SIG-2
#[tokio::test]
async fn the_curl_command_is_ready_to_run_and_contains_no_secret() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let body = r#"{"branch_code":"IZMIR-01","plate":"34 ABC 123","measurements":{"SLIP_FRONT":1}}"#;
    for arguments in [
        &["sign", "GET", LIST][..],
        &["sign", "post", "/api/v1/partner/test-line/measurements", "--data", body],
    ] {
        let signed = program.json(arguments).await;
        let curl = signed["curl"].as_str().unwrap();
        assert!(!signed.to_string().contains(ALPHA.secret));
        let response = Command::new("sh")
            .args(["-c", &format!("{curl} --fail-with-body -s")])
            .output()
            .await
            .unwrap();
        assert!(response.status.success(), "{curl}\n{response:?}");
    }
}

/// SIG-3
#[tokio::test]
async fn each_step_of_a_signature_is_shown() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let at = ["--timestamp", "1780000000", "--nonce", "0123456789abcdef"];
    let arguments = [&["sign", "GET", "/api/v1/partner/health"][..], &at].concat();
    let mut command = program.command(&[&arguments[..], &["--json"]].concat());
    command.env("PARTNER_SECRET", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567");
    let signed = crate::program::Ran::from(command.output().await.unwrap()).json();
    assert_eq!(
        signed["headers"][3][1],
        "sha256=00b8332449583da2c92d54fa0ee432290c99864df6d9226fca919be2d027f8d7"
    );
    let text = program.run(&arguments).await.stdout;
    assert!(
        text.contains("GET\n/api/v1/partner/health\n\n1780000000\n0123456789abcdef\ne3b0c442"),
        "{text}"
    );
    program
        .run(&["sign", "GET", "/health"])
        .await
        .failed(2, "begin with /api/v1/partner");
}

/// ERR-4
#[tokio::test]
async fn explain_finds_the_wrong_line_from_the_services_response() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let signed = program.json(&["sign", "GET", LIST]).await;
    let mine = signed["canonical"]
        .as_str()
        .unwrap()
        .replace("limit=2&status=published", "status=published&limit=2");
    std::fs::write(program.path("mine.txt"), &mine).unwrap();
    let secret: partner_api_signing::Secret = ALPHA.secret.parse().unwrap();
    let wrong = partner_api_signing::sign(&secret, &mine);
    let curl = signed["curl"]
        .as_str()
        .unwrap()
        .replace(signed["headers"][3][1].as_str().unwrap(), &wrong);
    let response = Command::new("sh")
        .args(["-c", &format!("{curl} -s")])
        .output()
        .await
        .unwrap();
    std::fs::write(program.path("response.json"), &response.stdout).unwrap();
    let explained = program
        .run(&[
            "explain",
            "GET",
            LIST,
            "--canonical",
            "mine.txt",
            "--server",
            "response.json",
        ])
        .await;
    assert_eq!(explained.code, 1, "{}", explained.stderr);
    assert!(
        explained.stdout.contains("line 3, CANONICAL_QUERY differs"),
        "{}",
        explained.stdout
    );
    assert!(
        explained.stdout.contains("sort the encoded pairs"),
        "{}",
        explained.stdout
    );
    // With only the signature and the service's response.
    let explained = program
        .run(&[
            "explain",
            "GET",
            LIST,
            "--server",
            "response.json",
            "--signature",
            "sha256=00",
        ])
        .await;
    assert!(
        explained.stdout.contains("64 lower-case hex digits"),
        "{}",
        explained.stdout
    );
}

/// ERR-4, SIG-3
#[tokio::test]
async fn explain_accepts_little_and_tells_by_its_exit_code_whether_the_signature_is_correct() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let health = "/api/v1/partner/health";
    let explain = async |arguments: &[&str]| {
        program
            .run(&[&["explain", "GET", health][..], arguments].concat())
            .await
    };
    let at = ["--timestamp", "1780000000", "--nonce", "0123456789abcdef"];
    let signed = program.json(&[&["sign", "GET", health][..], &at].concat()).await;
    let (canonical, signature) = (
        signed["canonical"].as_str().unwrap(),
        signed["headers"][3][1].as_str().unwrap(),
    );
    let right = explain(&[&at[..], &["--signature", signature]].concat()).await;
    assert_eq!((right.code, right.stderr.as_str()), (0, ""), "{}", right.stdout);
    assert!(
        right.stdout.starts_with("The signature is correct."),
        "{}",
        right.stdout
    );

    let secret: partner_api_signing::Secret = ALPHA.secret.parse().unwrap();
    let milliseconds = canonical.replace("1780000000", "1780000000123");
    let utf16: Vec<u8> = format!("\u{feff}{canonical}\r\n")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (name, text, code, words) in [
        (
            "the empty line is missing",
            canonical.replace("\n\n", "\n").into_bytes(),
            1,
            "keep its line, empty",
        ),
        ("milliseconds", milliseconds.clone().into_bytes(), 1, "milliseconds"),
        ("UTF-16 of PowerShell", utf16, 0, "The canonical string is correct."),
    ] {
        std::fs::write(program.path("mine.txt"), text).unwrap();
        let explained = explain(&["--canonical", "mine.txt"]).await;
        assert_eq!(
            (explained.code, explained.stderr.as_str()),
            (code, ""),
            "{name}: {}",
            explained.stdout
        );
        assert!(explained.stdout.contains(words), "{name}: {}", explained.stdout);
    }
    let wrong = partner_api_signing::sign(&secret, &canonical.replace("GET", "get"));
    let explained = explain(&[&at[..], &["--signature", &wrong]].concat()).await;
    assert_eq!(explained.code, 1, "{}", explained.stdout);
    assert!(explained.stdout.contains("upper case"), "{}", explained.stdout);

    // The code of the response alone explains the rejection.
    let response = r#"{"error":{"code":"invalid_key","message":"this key ID is not accepted","request_id":"r"}}"#;
    std::fs::write(program.path("response.json"), response).unwrap();
    let explained = explain(&["--server", "response.json"]).await;
    assert_eq!((explained.code, explained.stderr.as_str()), (1, ""));
    assert!(
        explained.stdout.contains("invalid_key: this key ID is not accepted"),
        "{}",
        explained.stdout
    );
}
