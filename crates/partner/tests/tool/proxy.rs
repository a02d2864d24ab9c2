use std::process::Stdio;

use partner_api_tests::fixture::inspections;
use partner_api_tests::{ALPHA, Service};
use reqwest::StatusCode;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;

use crate::program::Program;

struct Running {
    address: String,
    _child: Child,
}

async fn start(program: &Program, more: &[&str]) -> Running {
    let arguments = [&["proxy", "--port", "0", "--json"], more].concat();
    let mut child = program.command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .await
        .unwrap();
    let started: Value = serde_json::from_str(&line).unwrap();
    Running {
        address: started["address"].as_str().unwrap().to_owned(),
        _child: child,
    }
}

impl Running {
    /// Sends these bytes and reads until the connection is closed.
    async fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address.trim_start_matches("http://"))
            .await
            .unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    }

    fn host(&self) -> &str {
        self.address.trim_start_matches("http://")
    }
}

/// SIG-3, SIG-4
#[tokio::test]
async fn requests_are_signed_and_forwarded_byte_for_byte() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let proxy = start(&program, &[]).await;
    let host = proxy.host();
    // A library that normalized these targets would sign something other than what was sent.
    for (target, status) in [
        ("/api/v1/partner/health", 200),
        ("/api/v1/partner/inspections?limit=2&&status=published", 200),
        (
            "/api/v1/partner/inspections?published_from=2026-05-01T00:00:00%2b03:00",
            200,
        ),
        (
            "/api/v1/partner/inspections?published_from=2026-05-01T00:00:00+03:00",
            400,
        ),
        ("/api/v1/partner/inspections?unknown='!()*~", 400),
        ("/api/v1/partner/inspections/%2e%2e/health", 404),
        ("/api/v1/partner/./health", 404),
        ("/api/v1/partner//health", 404),
        ("/api/v1/partner/health/", 404),
        ("/openapi.json", 200),
    ] {
        let response = proxy
            .raw(&format!(
                "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            ))
            .await;
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status} ")),
            "{target}: {response}"
        );
        assert!(
            response.to_lowercase().contains("\r\nx-request-id: "),
            "{target}: {response}"
        );
    }
}

/// MEA-5
#[tokio::test]
async fn a_body_arrives_unchanged_and_a_file_is_returned_whole() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let proxy = start(&program, &[]).await;
    let http = reqwest::Client::new();
    let package = "{\"branch_code\":\"IZMIR-01\",\n \"plate\":\"34 ABC 123\", \"measurements\":{\"SLIP_FRONT\":1.50}} ";
    let response = http
        .post(format!("{}/api/v1/partner/test-line/measurements", proxy.address))
        .header("content-type", "application/json")
        // The proxy replaces an old signature.
        .header("x-partner-signature", "sha256=old")
        .body(package)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    let raw = service
        .rows("SELECT convert_from(raw, 'UTF8') AS raw FROM measurements")
        .await;
    assert_eq!(raw[0]["raw"], package);
    let pdf = http
        .get(format!(
            "{}/api/v1/partner/inspections/{}/pdf",
            proxy.address,
            inspections::PUBLISHED
        ))
        .send()
        .await
        .unwrap();
    assert_eq!(pdf.headers()["content-type"], "application/pdf");
    assert!(pdf.bytes().await.unwrap().starts_with(b"%PDF-1.7 report"));
}

#[tokio::test]
async fn requests_with_a_foreign_host_or_origin_are_not_signed() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let proxy = start(&program, &["--allow-origin", "https://tools.example.org"]).await;
    let url = format!("{}/api/v1/partner/health", proxy.address);
    let http = reqwest::Client::new();
    for (name, value, status) in [
        ("host", "evil.example", 421),
        ("origin", "https://evil.example", 403),
        ("sec-fetch-site", "cross-site", 403),
        ("origin", "https://tools.example.org", 200),
    ] {
        let response = http.get(&url).header(name, value).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{name}: {value}");
        let allowed = response
            .headers()
            .get("access-control-allow-origin")
            .map(|origin| origin.to_str().unwrap().to_owned());
        let expected = (status == 200).then(|| value.to_owned());
        assert_eq!(allowed, expected, "{name}: {value}");
    }
    let preflight = http
        .request(reqwest::Method::OPTIONS, &url)
        .header("origin", "https://tools.example.org")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "content-type")
        .send()
        .await
        .unwrap();
    assert_eq!(preflight.status(), StatusCode::NO_CONTENT);
    assert_eq!(preflight.headers()["access-control-allow-methods"], "POST");
    // Only the GET from the allowed origin was forwarded.
    assert_eq!(service.stats().queued + service.stats().written, 1);
}

#[tokio::test]
async fn an_unreachable_service_is_a_502_with_the_reason() {
    let service = Service::start().await;
    let program = Program::at("http://127.0.0.1:1", &ALPHA);
    let proxy = start(&program, &[]).await;
    let response = reqwest::get(format!("{}/api/v1/partner/health", proxy.address))
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
    let body: Value = response.json().await.unwrap();
    assert!(
        body["error"]["message"]
            .as_str()
            .unwrap()
            .contains("failed to reach the service"),
        "{body}"
    );
    drop(service);
}
