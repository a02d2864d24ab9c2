//! The internal listener, which serves `/live`, `/ready` and `/metrics`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bounded_listener::{Limits, Listener, RequestBody, Running};
use deadpool_postgres::Pool;
use dropshot::Body;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use partner_api_gateway::{TrustedProxies, host_problem};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::gauges::{Gauges, Watched};
use super::process::ProcessMetrics;
use super::ready::Readiness;
use super::sample::{self, Latest};
use crate::request_log;

/// The prefix of the service's metrics.
const PREFIX: &str = "partner_api";

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// The time that running requests get when the internal listener, or the inspectors', stops.
pub const STOP_TIMEOUT: Duration = Duration::from_millis(500);

/// Returns the limits of the internal listener. Few machines use it, and one that hangs must not block the others. Trusted proxies
/// are exempt from the limits per address.
pub fn limits(trusted_proxies: &TrustedProxies) -> Limits {
    Limits {
        connections: 32,
        connections_per_address: 16,
        exempt: trusted_proxies.0.clone(),
        first_request: Duration::from_secs(5),
        head: Duration::from_secs(5),
        // Longer than from one scrape to the next.
        idle: Duration::from_secs(120),
        stalled_response: Duration::from_secs(10),
        detached: 8,
        http1_buffer: 16 * 1024,
        http2_streams: 8,
        linger_bytes: 64 * 1024,
        linger: Duration::from_secs(2),
        ..Limits::default()
    }
}

/// A running internal listener.
pub struct Internal {
    running: Running,
    readiness: Arc<Readiness>,
}

/// Starts serving on `listener`. Also returns the task that samples the database through `pool`. `request_log_days` is the
/// retention of the request log, if there is one.
pub fn start(
    listener: Listener,
    watched: Watched,
    pool: Pool,
    request_log_days: Option<u32>,
) -> (Internal, impl Future<Output = ()> + Send + use<>) {
    let latest = Arc::new(Latest::new());
    let readiness = Arc::new(Readiness::new(
        watched.directory.clone(),
        watched.meter.health().clone(),
        latest.clone(),
    ));
    let registry = Arc::new(registry(watched, readiness.clone(), latest.clone()));
    let checked = readiness.clone();
    let running = listener
        .serve(move |_, request: Request<RequestBody>| std::future::ready(handle(&request, &checked, &registry)));
    let sampling = sample::sample_forever(latest, pool, request_log_days.map(request_log::partitions));
    (Internal { running, readiness }, sampling)
}

impl Internal {
    /// Returns the address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.running.address
    }

    /// Makes `/ready` return 503 from now on.
    pub fn set_not_ready(&self) {
        self.readiness.stop();
    }

    /// Stops serving.
    pub async fn stop(self) {
        self.running.stop(STOP_TIMEOUT).await;
    }
}

fn registry(watched: Watched, readiness: Arc<Readiness>, latest: Arc<Latest>) -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(ProcessMetrics::new()));
    let own = registry.sub_registry_with_prefix(PREFIX);
    own.register(
        "build",
        "Version and environment",
        Info::new([
            ("version", env!("CARGO_PKG_VERSION")),
            ("environment", watched.environment.as_str()),
        ]),
    );
    watched.instruments.register(own);
    watched.meter.register(own);
    own.register_collector(Box::new(Gauges {
        watched,
        readiness,
        latest,
    }));
    registry
}

fn handle<B>(request: &Request<B>, readiness: &Readiness, registry: &Registry) -> Response<Body> {
    if let Some(problem) = host_problem(request.version(), request.headers()) {
        return respond(StatusCode::BAD_REQUEST, TEXT, format!("Host {problem}\n"));
    }
    let path = request.uri().path();
    let is_known = matches!(path, "/live" | "/ready" | "/metrics");
    if is_known && !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = respond(StatusCode::METHOD_NOT_ALLOWED, TEXT, "GET or HEAD\n".into());
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match path {
        "/live" => respond(StatusCode::OK, TEXT, "live\n".into()),
        "/ready" => {
            let (is_ready, checks) = readiness.report();
            let status = if is_ready {
                StatusCode::OK
            } else {
                StatusCode::SERVICE_UNAVAILABLE
            };
            respond(status, JSON, checks.to_string())
        }
        "/metrics" => {
            let mut page = String::new();
            match encode(&mut page, registry) {
                Ok(()) => respond(StatusCode::OK, OPENMETRICS, page),
                Err(_) => respond(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    TEXT,
                    "failed to encode the metrics\n".into(),
                ),
            }
        }
        _ => respond(
            StatusCode::NOT_FOUND,
            TEXT,
            "not found; see /live, /ready and /metrics\n".into(),
        ),
    }
}

fn respond(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
