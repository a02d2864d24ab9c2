//! The listener that operators' machines ask.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
use dropshot::Body;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::gauges::{Gauges, Watched};
use super::process::ProcessMetrics;
use super::ready::Readiness;
use super::sample::{self, Latest};
use crate::listener::{Limits, Listener, RequestBody, Running};
use crate::request_log;

/// What every metric of ours begins with.
const PREFIX: &str = "partner_api";

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// What answers on the internal listener beside what is here: it is given every other path.
pub type Elsewhere =
    Arc<dyn Fn(SocketAddr, Request<RequestBody>) -> Pin<Box<dyn Future<Output = Response<Body>> + Send>> + Send + Sync>;

/// How long answers under way are given at the end.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// The bounds of the internal listener. A few machines ask now and then, and one that hangs must not be in the way of the
/// others; where `elsewhere` there are people at browsers, too, each with a stream that stays open, perhaps all behind one proxy,
/// and with photos, of which a browser or a proxy sends all before it reads that one is refused.
pub fn limits(elsewhere: bool) -> Limits {
    let usual = Limits::default();
    let (connections, connections_per_address) = if elsewhere { (1_024, 512) } else { (32, 16) };
    let (linger_bytes, linger) = match elsewhere {
        true => (usual.linger_bytes, usual.linger),
        false => (64 * 1024, Duration::from_secs(2)),
    };
    Limits {
        connections,
        connections_per_address,
        first_request: Duration::from_secs(5),
        head: Duration::from_secs(5),
        // Longer than from one scrape to the next.
        idle: Duration::from_secs(120),
        stalled_answer: Duration::from_secs(10),
        detached: connections / 4,
        http1_buffer: 16 * 1024,
        http2_streams: 8,
        linger_bytes,
        linger,
        ..usual
    }
}

/// The internal listener at work.
pub struct Internal {
    running: Running,
    readiness: Arc<Readiness>,
}

/// Starts answering on `listener`, and returns with it the task that asks the database now and then, through `pool`;
/// `request_log_days` are those of the request log, if one is kept; `elsewhere` answers all other paths, if there is something.
pub fn start(
    listener: Listener,
    watched: Watched,
    pool: Pool,
    request_log_days: Option<u32>,
    elsewhere: Option<Elsewhere>,
) -> (Internal, impl Future<Output = ()> + Send + use<>) {
    let latest = Arc::new(Latest::new());
    let readiness = Arc::new(Readiness::new(
        watched.directory.clone(),
        watched.meter.lately().clone(),
        latest.clone(),
    ));
    let registry = Arc::new(registry(watched, readiness.clone(), latest.clone()));
    let asked = readiness.clone();
    let running = listener.serve(move |peer, request: Request<RequestBody>| {
        let path = request.uri().path();
        match &elsewhere {
            Some(elsewhere) if !is_here(path) => elsewhere(peer, request),
            _ => {
                let answer = answer(request.method(), path, &asked, &registry);
                Box::pin(std::future::ready(answer)) as Pin<Box<dyn Future<Output = Response<Body>> + Send>>
            }
        }
    });
    let sampling = sample::keep(latest, pool, request_log_days.map(request_log::partitions));
    (Internal { running, readiness }, sampling)
}

impl Internal {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.running.address
    }

    /// From here on `/ready` is 503: a stop has begun.
    pub fn not_ready_any_more(&self) {
        self.readiness.stop();
    }

    /// Stops answering.
    pub async fn stop(self) {
        self.running.stop(LAST_ANSWERS).await;
    }
}

fn registry(watched: Watched, readiness: Arc<Readiness>, latest: Arc<Latest>) -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(ProcessMetrics::new()));
    let own = registry.sub_registry_with_prefix(PREFIX);
    own.register(
        "build",
        "What runs here",
        Info::new([
            ("version", env!("CARGO_PKG_VERSION")),
            ("environment", watched.environment.as_str()),
        ]),
    );
    watched.context.instruments.register(own);
    watched.meter.register(own);
    own.register_collector(Box::new(Gauges {
        watched,
        readiness,
        latest,
    }));
    registry
}

fn is_here(path: &str) -> bool {
    matches!(path, "/live" | "/ready" | "/metrics")
}

fn answer(method: &Method, path: &str, readiness: &Readiness, registry: &Registry) -> Response<Body> {
    if is_here(path) && !matches!(*method, Method::GET | Method::HEAD) {
        let mut refused = told(StatusCode::METHOD_NOT_ALLOWED, TEXT, "GET or HEAD\n".into());
        refused
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    match path {
        "/live" => told(StatusCode::OK, TEXT, "live\n".into()),
        "/ready" => {
            let (is_ready, checks) = readiness.told();
            let status = if is_ready {
                StatusCode::OK
            } else {
                StatusCode::SERVICE_UNAVAILABLE
            };
            told(status, JSON, checks.to_string())
        }
        "/metrics" => {
            let mut page = String::new();
            match encode(&mut page, registry) {
                Ok(()) => told(StatusCode::OK, OPENMETRICS, page),
                Err(_) => told(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    TEXT,
                    "the metrics cannot be written\n".into(),
                ),
            }
        }
        _ => told(
            StatusCode::NOT_FOUND,
            TEXT,
            "/live, /ready and /metrics are here\n".into(),
        ),
    }
}

fn told(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
