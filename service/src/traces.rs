//! Traces of requests, sent to an OpenTelemetry collector (OTLP over HTTP). Off unless a collector is configured.
//!
//! The ID of a trace is the request's ID without dashes. While a request runs, its task records its [`Stage`]s. After the
//! response, spans are created from them, and a dedicated thread sends these from a bounded queue. If the collector is slow or
//! unreachable, spans are dropped and no request is delayed.
//!
//! Spans carry the same data as the request log (SVC-5): no path, query, body, signature or value of a statement.

use std::cell::Cell;
use std::fmt;
use std::time::{Duration, Instant, SystemTime};

use opentelemetry::trace::{Span, SpanBuilder, SpanId, SpanKind, Status, TraceContextExt, TraceId, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, IdGenerator, RandomIdGenerator, Sampler, SdkTracer, SdkTracerProvider,
};
use partner_api_gateway::{Reason, Record};
use partner_api_signing::Environment;
use partner_api_store::stages::{Stage, TimedStage};
use uuid::Uuid;

/// The service's name at the collector, unless `OTEL_SERVICE_NAME` sets it.
const SERVICE: &str = "partner-api";

/// The timeout of an export, and of sending the last spans at shutdown.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// The capacity of the queue in spans: some ten megabytes. Spans that do not fit are dropped, which is logged.
const WAITING_SPANS: usize = 16_384;

/// The interval between exports.
const EXPORT_INTERVAL: Duration = Duration::from_secs(1);

thread_local! {
    /// The ID of the trace whose first span this thread is creating.
    static NEXT_TRACE: Cell<Option<TraceId>> = const { Cell::new(None) };
}

/// The settings of traces.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Settings {
    /// The collector, without `/v1/traces`.
    pub endpoint: String,
    /// The share of traced requests, from 0 to 1. Requests that end in a 5xx are always traced.
    pub share: f64,
}

/// Sends the traces of a process.
#[derive(Clone)]
pub struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    /// The number of traced requests in 2^32.
    share: u64,
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces")
            .field("share", &self.share)
            .finish_non_exhaustive()
    }
}

impl Traces {
    /// Starts the exporter. Failures to reach the collector are logged later.
    ///
    /// # Errors
    /// If the endpoint is not a URL, or the thread cannot start.
    pub fn start(settings: &Settings, environment: Environment) -> Result<Self, ExporterBuildError> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}/v1/traces", settings.endpoint.trim_end_matches('/')))
            .with_timeout(EXPORT_TIMEOUT)
            .build()?;
        let mut about = Resource::builder().with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("deployment.environment.name", environment.as_str()),
        ]);
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            about = about.with_service_name(SERVICE);
        }
        let queue = BatchConfigBuilder::default()
            .with_max_queue_size(WAITING_SPANS)
            .with_max_export_batch_size(WAITING_SPANS / 8)
            .with_scheduled_delay(EXPORT_INTERVAL)
            .build();
        let processor = BatchSpanProcessor::builder(exporter).with_batch_config(queue).build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            .with_sampler(Sampler::AlwaysOn)
            .with_id_generator(Ids::default())
            .with_resource(about.build())
            .build();
        Ok(Traces {
            tracer: provider.tracer(SERVICE),
            provider,
            share: (settings.share.clamp(0.0, 1.0) * (1_u64 << 32) as f64) as u64,
        })
    }

    /// Queues the trace of a completed request, if it is sampled.
    pub(crate) fn export(&self, record: &Record, stages: Vec<TimedStage>) {
        if !self.is_traced(record) {
            return;
        }
        // All times derive from one reading of the wall clock, minus monotonic durations.
        let (now, wall) = (Instant::now(), SystemTime::now());
        let at = |moment: Instant| wall - now.saturating_duration_since(moment);
        NEXT_TRACE.set(Some(TraceId::from(record.request_id.as_u128())));
        let mut request = SpanBuilder::from_name(format!("{} {}", record.method, record.route))
            .with_kind(SpanKind::Server)
            .with_start_time(at(record.arrived))
            .with_attributes(attributes(record))
            .start_with_context(&self.tracer, &Context::new());
        if record.status >= 500 {
            request.set_status(Status::error(record.reason.map_or("", Reason::as_str)));
        }
        let request = Context::new().with_span(request);
        for TimedStage { stage, began, ended } in stages {
            let mut builder = SpanBuilder::from_name(stage.name()).with_start_time(at(began));
            if let Stage::Statement(_) = stage {
                builder = builder
                    .with_kind(SpanKind::Client)
                    .with_attributes([KeyValue::new("db.system.name", "postgresql")]);
            }
            builder
                .start_with_context(&self.tracer, &request)
                .end_with_timestamp(at(ended));
        }
        request.span().end_with_timestamp(at(record.arrived + record.took));
    }

    fn is_traced(&self, record: &Record) -> bool {
        // The last bits of a UUIDv7 are random.
        record.status >= 500 || u64::from(record.request_id.as_u128() as u32) < self.share
    }

    /// Sends the queued spans, for a few seconds at most, and stops.
    pub async fn stop(self) {
        let stopped = tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(EXPORT_TIMEOUT)).await;
        if let Ok(Err(error)) = stopped {
            tracing::warn!(%error, "failed to send the last traces");
        }
    }
}

/// Returns the attributes of a request, as in the request log.
fn attributes(record: &Record) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("http.request.method", record.method),
        KeyValue::new("http.route", record.route),
        KeyValue::new("http.response.status_code", i64::from(record.status)),
        KeyValue::new("client.address", record.address.to_string()),
        KeyValue::new("request.id", record.request_id.to_string()),
    ];
    let words = [
        ("operation", record.operation),
        ("error.type", record.code),
        ("reason", record.reason.map(Reason::as_str)),
    ];
    attributes.extend(
        words
            .into_iter()
            .filter_map(|(name, word)| Some(KeyValue::new(name, word?))),
    );
    if let Some(key_id) = &record.key_id {
        attributes.push(KeyValue::new("key.id", key_id.to_string()));
    }
    if let Some(partner) = &record.partner {
        attributes.push(KeyValue::new("partner", partner.name.clone()));
    }
    attributes
}

/// Generates random span IDs; trace IDs are given.
#[derive(Debug, Default)]
struct Ids(RandomIdGenerator);

impl IdGenerator for Ids {
    fn new_trace_id(&self) -> TraceId {
        NEXT_TRACE
            .take()
            .unwrap_or_else(|| TraceId::from(Uuid::now_v7().as_u128()))
    }

    fn new_span_id(&self) -> SpanId {
        self.0.new_span_id()
    }
}
