//! The internal listener, which serves `/live`, `/ready` and `/metrics`.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bounded_listener::{Limits, Listener, RequestBody, Running};
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
use crate::request_log;

/// The prefix of the service's metrics.
const PREFIX: &str = "partner_api";

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// Handles all other paths of the internal listener.
pub type InternalRoutes =
    Arc<dyn Fn(SocketAddr, Request<RequestBody>) -> Pin<Box<dyn Future<Output = Response<Body>> + Send>> + Send + Sync>;

/// The time that running requests get when the listener stops.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);

/// The limits of the internal listener. Few machines use it, and one that hangs must not block the others. With
/// `has_routes`, browsers use it too: each keeps a stream open, all may come through one proxy, and a rejected photo is still
/// sent to its end.
pub fn limits(has_routes: bool) -> Limits {
    let usual = Limits::default();
    let (connections, connections_per_address) = if has_routes { (1_024, 512) } else { (32, 16) };
    let (linger_bytes, linger) = match has_routes {
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

/// A running internal listener.
pub struct Internal {
    running: Running,
    readiness: Arc<Readiness>,
}

/// Starts serving on `listener`. Also returns the task that samples the database through `pool`. `request_log_days` is the
/// retention of the request log, if there is one; `routes` handles all other paths.
pub fn start(
    listener: Listener,
    watched: Watched,
    pool: Pool,
    request_log_days: Option<u32>,
    routes: Option<InternalRoutes>,
) -> (Internal, impl Future<Output = ()> + Send + use<>) {
    let latest = Arc::new(Latest::new());
    let readiness = Arc::new(Readiness::new(
        watched.directory.clone(),
        watched.meter.lately().clone(),
        latest.clone(),
    ));
    let registry = Arc::new(registry(watched, readiness.clone(), latest.clone()));
    let checked = readiness.clone();
    let running = listener.serve(move |peer, request: Request<RequestBody>| {
        let path = request.uri().path();
        match &routes {
            Some(routes) if !is_own_path(path) => routes(peer, request),
            _ => {
                let answer = answer(request.method(), path, &checked, &registry);
                Box::pin(std::future::ready(answer)) as Pin<Box<dyn Future<Output = Response<Body>> + Send>>
            }
        }
    });
    let sampling = sample::keep(latest, pool, request_log_days.map(request_log::partitions));
    (Internal { running, readiness }, sampling)
}

impl Internal {
    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.running.address
    }

    /// Makes `/ready` answer 503 from now on.
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

fn is_own_path(path: &str) -> bool {
    matches!(path, "/live" | "/ready" | "/metrics")
}

fn answer(method: &Method, path: &str, readiness: &Readiness, registry: &Registry) -> Response<Body> {
    if is_own_path(path) && !matches!(*method, Method::GET | Method::HEAD) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// INS-9
    #[test]
    fn a_photo_that_is_refused_at_once_may_be_sent_to_its_end() {
        let (usual, internal) = (Limits::default(), limits(true));
        assert_eq!(
            (internal.linger_bytes, internal.linger),
            (usual.linger_bytes, usual.linger)
        );
    }
}
