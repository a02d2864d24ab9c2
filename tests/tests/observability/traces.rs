//! Traces as a collector receives them.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bounded_listener::{Limits, Listener, Running};
use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};
use partner_api::traces::Settings;
use partner_api_tests::{ALPHA, Options, Request, Service};
use prost::Message;
use tokio::net::TcpListener;

const LIST: &str = "/api/v1/partner/inspections";

/// A collector that keeps everything that it receives.
struct Collector {
    endpoint: String,
    bodies: Arc<Mutex<Vec<Bytes>>>,
    _running: Running,
}

impl Collector {
    fn start() -> Self {
        let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), Limits::default()).unwrap();
        let endpoint = format!("http://{}", listener.address());
        let bodies = Arc::<Mutex<Vec<Bytes>>>::default();
        let received = bodies.clone();
        let running = listener.serve(move |_, request: http::Request<_>| {
            let received = received.clone();
            async move {
                assert_eq!(request.uri().path(), "/v1/traces");
                let body: Bytes = request.into_body().collect().await.unwrap().to_bytes();
                received.lock().unwrap().push(body);
                Response::new(Full::new(Bytes::new()))
            }
        });
        Self {
            endpoint,
            bodies,
            _running: running,
        }
    }

    fn settings(&self, share: f64) -> Settings {
        Settings {
            endpoint: self.endpoint.clone(),
            share,
        }
    }

    /// All received spans. Asserts the name and version of the service.
    fn spans(&self) -> Vec<Span> {
        let bodies = self.bodies.lock().unwrap();
        let requests = bodies
            .iter()
            .map(|body| ExportTraceServiceRequest::decode(&**body).unwrap());
        let resources: Vec<_> = requests.flat_map(|request| request.resource_spans).collect();
        for resource in &resources {
            let about = &resource.resource.as_ref().unwrap().attributes;
            for (name, value) in [
                ("service.name", "partner-api"),
                ("service.version", env!("CARGO_PKG_VERSION")),
                ("deployment.environment.name", "test"),
            ] {
                assert_eq!(text(about, name).as_deref(), Some(value));
            }
        }
        let scopes = resources.into_iter().flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }
}

/// An attribute as text.
fn text(attributes: &[opentelemetry_proto::tonic::common::v1::KeyValue], name: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == name)?;
    match found.value.clone()?.value? {
        Value::StringValue(text) => Some(text),
        Value::IntValue(number) => Some(number.to_string()),
        other => panic!("{name}: {other:?}"),
    }
}

async fn traced(settings: Settings) -> Service {
    let options = Options {
        traces: Some(settings),
        ..Options::default()
    };
    Service::start_with(options).await
}

/// OPS-8
#[tokio::test]
async fn a_trace_has_the_request_id_and_the_stages_and_no_more_than_the_log() {
    let collector = Collector::start();
    let service = traced(collector.settings(1.0)).await;
    let request = Request::get(LIST)
        .with_query("created_from=2021-02-03T04:05:06Z")
        .signed_by(&ALPHA);
    let response = service.send(request).await;
    response.assert_status(200);
    let trace_id = response.header("x-request-id").unwrap().replace('-', "");
    service.stop().await;

    let spans = collector.spans();
    let (roots, stages): (Vec<&Span>, Vec<&Span>) = spans.iter().partition(|span| span.parent_span_id.is_empty());
    let [root] = roots[..] else { panic!("{roots:?}") };
    assert_eq!(root.name, format!("GET {LIST}"));
    assert_eq!(root.kind(), SpanKind::Server);
    let attributes = |name: &str| text(&root.attributes, name);
    for (name, value) in [
        ("http.request.method", "GET"),
        ("http.route", LIST),
        ("http.response.status_code", "200"),
        ("operation", "list_inspections"),
        ("key.id", ALPHA.id),
        ("partner", "alpha"),
        ("client.address", "127.0.0.1"),
    ] {
        assert_eq!(attributes(name).as_deref(), Some(value), "{name}");
    }
    assert_eq!((attributes("error.type"), attributes("reason")), (None, None));
    let hex: String = root.trace_id.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, trace_id);

    let names: Vec<&str> = stages.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names[..3], ["body", "admission", "connection"], "{names:?}");
    assert!(
        names[3..]
            .iter()
            .all(|name| name.starts_with("partner_api_store::inspections::"))
            && names.len() > 3,
        "{names:?}"
    );
    for stage in &stages {
        assert_eq!(
            (&stage.trace_id, &stage.parent_span_id),
            (&root.trace_id, &root.span_id)
        );
        assert!(
            root.start_time_unix_nano <= stage.start_time_unix_nano
                && stage.start_time_unix_nano <= stage.end_time_unix_nano
                && stage.end_time_unix_nano <= root.end_time_unix_nano,
            "{root:?} {stage:?}"
        );
    }
    let sent: Vec<u8> = collector.bodies.lock().unwrap().concat();
    for hidden in [ALPHA.secret, "2021-02-03", "created_from", "sha256="] {
        let is_found = sent.windows(hidden.len()).any(|window| window == hidden.as_bytes());
        assert!(!is_found, "{hidden}");
    }
}

/// OPS-8
#[tokio::test]
async fn with_a_sampling_rate_of_zero_only_server_errors_are_traced() {
    let collector = Collector::start();
    let service = traced(collector.settings(0.0)).await;
    service.get(&ALPHA, LIST).await.assert_status(200);
    service.cut_off_from_database().await;
    let failed = service.get(&ALPHA, LIST).await;
    failed.assert_status(503);
    let trace_id = failed.header("x-request-id").unwrap().replace('-', "");
    service.stop().await;

    let spans = collector.spans();
    let root = spans.iter().find(|span| span.parent_span_id.is_empty()).unwrap();
    for span in &spans {
        let hex: String = span.trace_id.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, trace_id);
    }
    assert_eq!(
        text(&root.attributes, "error.type").as_deref(),
        Some("service_unavailable")
    );
    assert!(text(&root.attributes, "reason").is_some());
    assert_eq!(root.status.as_ref().unwrap().code, 2);
}

/// OPS-8
#[tokio::test]
async fn a_collector_that_never_responds_delays_no_request_and_no_stop() {
    let unresponsive = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let endpoint = format!("http://{}", unresponsive.local_addr().unwrap());
    let service = traced(Settings { endpoint, share: 1.0 }).await;
    for _ in 0..20 {
        service.get(&ALPHA, LIST).await.assert_status(200);
    }
    // The exporter is waiting for a response; the stop waits only until its own timeout.
    let _held = tokio::time::timeout(Duration::from_secs(60), unresponsive.accept())
        .await
        .unwrap();
    service.get(&ALPHA, LIST).await.assert_status(200);
    tokio::time::timeout(Duration::from_secs(60), service.stop())
        .await
        .unwrap();
}
