//! A certificate is renewed while the service runs.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures::future::join_all;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use nix::sys::signal::{Signal, raise};
use partner_api_tests::{ALPHA, Options, Service};

use partner_api_tests::metrics::Page;

use partner_api_tests::certificate::{Certificate, CertificateFiles, client_trusting, connect, presented};

/// How long the service may take to see what changed: it looks every three seconds.
const SEEN: Duration = Duration::from_secs(20);

async fn start(files: &CertificateFiles) -> Service {
    let options = Options {
        tls: Some(files.paths.clone()),
        ..Options::default()
    };
    Service::start_with(options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_taken_up_under_traffic_and_no_request_fails() {
    let (old, new) = (Certificate::generate(), Certificate::generate());
    let both = [&old, &new];
    let files = CertificateFiles::with(&old);
    let service = start(&files).await;

    let kept = TokioIo::new(connect(&service, &both).await);
    let (mut kept, connection) = hyper::client::conn::http1::handshake(kept).await.unwrap();
    tokio::spawn(connection);
    let mut ask_kept = async || {
        let request = http::Request::get("/openapi.json")
            .header("host", "a")
            .body(Empty::<Bytes>::new())
            .unwrap();
        let answer = kept.send_request(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.into_body().collect().await.unwrap();
    };
    ask_kept().await;

    let renewed = AtomicBool::new(false);
    // Half of them over one connection, half over one each.
    let traffic = join_all([true, true, false, false].map(async |anew| {
        let mut http = client_trusting(&both);
        if anew {
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
        // One file after the other, and the service looks in between.
        files.put_certificate(&new);
        raise(Signal::SIGHUP).unwrap();
        service.within(SEEN, async || service.tls().complaint().is_some()).await;
        assert_eq!(presented(&service, &both).await, old.der());
        files.put_key(&new);
        raise(Signal::SIGHUP).unwrap();
        service
            .within(SEEN, async || presented(&service, &both).await == new.der())
            .await;
        renewed.store(true, Relaxed);
    };
    let (counts, ()) = tokio::join!(traffic, renewal);
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    assert_eq!(service.tls().complaint(), None);
    ask_kept().await;
}

#[tokio::test]
async fn a_renewed_certificate_is_taken_up_without_a_signal() {
    let (old, new) = (Certificate::generate(), Certificate::generate());
    let files = CertificateFiles::with(&old);
    let service = start(&files).await;
    files.put_certificate(&new);
    files.put_key(&new);
    service
        .within(SEEN, async || presented(&service, &[&old, &new]).await == new.der())
        .await;
}

#[tokio::test]
async fn a_bad_pair_is_refused_and_the_one_before_serves_on() {
    let (old, new) = (Certificate::generate(), Certificate::generate());
    let files = CertificateFiles::with(&old);
    let service = start(&files).await;
    let complains = async |part: &str| {
        raise(Signal::SIGHUP).unwrap();
        service
            .within(SEEN, async || {
                service
                    .tls()
                    .complaint()
                    .is_some_and(|complaint| complaint.contains(part))
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
    service.within(SEEN, async || service.tls().complaint().is_none()).await;
    assert_eq!(presented(&service, &[&old]).await, old.der());
}
