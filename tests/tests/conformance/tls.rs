//! Requests over TLS, and the renewal of the certificate while the service runs.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures::future::join_all;
use http::Version;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use nix::sys::signal::{Signal, raise};
use partner_api_client::types::MeasurementRequest;
use partner_api_tests::certificate::{Certificate, CertificateFiles, client_trusting, connect, presented};
use partner_api_tests::metrics::Page;
use partner_api_tests::{ALPHA, Options, Service};

/// How long the service may take to detect new files. It checks every three seconds.
const DETECTED_WITHIN: Duration = Duration::from_secs(20);

async fn start(files: &CertificateFiles) -> Service {
    let options = Options {
        tls: Some(files.paths.clone()),
        ..Options::default()
    };
    Service::start_with(options).await
}

/// KEY-3
#[tokio::test]
async fn signed_requests_pass_over_http1_and_http2() {
    let certificate = Certificate::generate();
    let files = CertificateFiles::with(&certificate);
    let service = start(&files).await;
    assert!(service.base_url.starts_with("https://127.0.0.1:"));
    for (http, version) in [
        (client_trusting(&[&certificate]).http1_only(), Version::HTTP_11),
        (client_trusting(&[&certificate]), Version::HTTP_2),
    ] {
        let http = http.build().unwrap();
        let unsigned = http
            .get(format!("{}/openapi.json", service.base_url))
            .send()
            .await
            .unwrap();
        assert_eq!(unsigned.version(), version);
        let client = service.client_over(http, &ALPHA);
        client.list_organizations().send().await.unwrap();
        let package = MeasurementRequest::builder()
            .branch_code("IZMIR-01")
            .plate("34 ABC 123")
            .measurements(std::collections::HashMap::from([(
                "BRAKE_FRONT_LEFT".to_owned(),
                "2.85".parse().unwrap(),
            )]));
        let sent = client.submit_measurement().body(package).send().await.unwrap();
        assert_eq!(sent.status().as_u16(), 201);
    }
    let ends = service.tls().validity().ends;
    assert!(ends > chrono::Utc::now(), "{ends}");
}

/// OPS-9
#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_loaded_under_traffic_without_a_failed_request() {
    let (old, new) = (Certificate::generate(), Certificate::generate());
    let both = [&old, &new];
    let files = CertificateFiles::with(&old);
    let service = start(&files).await;

    let existing = TokioIo::new(connect(&service, &both).await);
    let (mut existing, connection) = hyper::client::conn::http1::handshake(existing).await.unwrap();
    tokio::spawn(connection);
    let mut ask_kept = async || {
        let request = http::Request::get("/openapi.json")
            .header("host", "a")
            .body(Empty::<Bytes>::new())
            .unwrap();
        let response = existing.send_request(request).await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body().collect().await.unwrap();
    };
    ask_kept().await;

    let renewed = AtomicBool::new(false);
    // Half of them use one connection, the others one each.
    let traffic = join_all([true, true, false, false].map(async |new_connection| {
        let mut http = client_trusting(&both);
        if new_connection {
            http = http.pool_max_idle_per_host(0).http1_only();
        }
        let client = service.client_over(http.build().unwrap(), &ALPHA);
        let mut count = 0;
        while !renewed.load(Relaxed) {
            client.list_organizations().send().await.unwrap();
            count += 1;
        }
        count
    }));
    let renewal = async {
        // The files are replaced one after the other, and the service checks in between.
        files.put_certificate(&new);
        raise(Signal::SIGHUP).unwrap();
        service
            .within(DETECTED_WITHIN, async || service.tls().rejection().is_some())
            .await;
        assert_eq!(presented(&service, &both).await, old.der());
        files.put_key(&new);
        raise(Signal::SIGHUP).unwrap();
        service
            .within(DETECTED_WITHIN, async || presented(&service, &both).await == new.der())
            .await;
        renewed.store(true, Relaxed);
    };
    let (counts, ()) = tokio::join!(traffic, renewal);
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    assert_eq!(service.tls().rejection(), None);
    ask_kept().await;
}

#[tokio::test]
async fn a_renewed_certificate_is_loaded_without_a_signal() {
    let (old, new) = (Certificate::generate(), Certificate::generate());
    let files = CertificateFiles::with(&old);
    let service = start(&files).await;
    files.put_certificate(&new);
    files.put_key(&new);
    service
        .within(DETECTED_WITHIN, async || {
            presented(&service, &[&old, &new]).await == new.der()
        })
        .await;
}

#[tokio::test]
async fn an_invalid_certificate_is_rejected_and_the_previous_one_stays_active() {
    let (old, new) = (Certificate::generate(), Certificate::generate());
    let files = CertificateFiles::with(&old);
    let service = start(&files).await;
    let complains = async |part: &str| {
        raise(Signal::SIGHUP).unwrap();
        service
            .within(DETECTED_WITHIN, async || {
                service
                    .tls()
                    .rejection()
                    .is_some_and(|rejection| rejection.contains(part))
            })
            .await;
        assert_eq!(presented(&service, &[&old]).await, old.der());
        let client = service.client_over(client_trusting(&[&old]).build().unwrap(), &ALPHA);
        client.list_organizations().send().await.unwrap();
    };
    let page = Page::of(&service).await;
    let ends = page.value("partner_api_tls_certificate_expiry_timestamp_seconds", &[]);
    assert_eq!(ends, service.tls().validity().ends.timestamp() as f64);
    assert_eq!(page.value("partner_api_tls_certificate_rejected", &[]), 0.0);
    files.put_key(&new);
    complains("does not belong").await;
    let page = Page::of(&service).await;
    assert_eq!(page.value("partner_api_tls_certificate_rejected", &[]), 1.0);
    fs::remove_file(&files.paths.key).unwrap();
    complains("No such file").await;
    files.put_key(&old);
    raise(Signal::SIGHUP).unwrap();
    service
        .within(DETECTED_WITHIN, async || service.tls().rejection().is_none())
        .await;
    assert_eq!(presented(&service, &[&old]).await, old.der());
}
