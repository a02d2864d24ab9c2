//! What partners have of TLS.

use http::Version;
use partner_api_client::types::MeasurementRequest;
use partner_api_tests::{ALPHA, Options, Service};

use partner_api_tests::certificate::{Certificate, CertificateFiles, client_trusting};

/// KEY-3
#[tokio::test]
async fn signed_requests_pass_over_http1_and_http2() {
    let certificate = Certificate::generate();
    let files = CertificateFiles::with(&certificate);
    let service = Service::start_with(Options {
        tls: Some(files.paths.clone()),
        ..Options::default()
    })
    .await;
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
