//! Traces: what a finished request spent its time on, sent to an OpenTelemetry collector (OTLP over HTTP). Off unless an
//! operator names one.
//!
//! A trace's id is the request's id, without its dashes: who has the one finds the other. While a request runs, its task notes
//! its [`Stage`]s; spans are made of them behind the answer, and a thread of their own sends them from a bounded queue. A
//! collector that is slow, or gone, costs traces, and no request anything.
//!
//! A span carries what the request's line in the log does (SVC-5): no path, query, body, signature or value of a statement.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::time::{Duration, Instant, SystemTime};

use opentelemetry::trace::{Span, SpanBuilder, SpanId, SpanKind, Status, TraceContextExt, TraceId, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, IdGenerator, RandomIdGenerator, Sampler, SdkTracer, SdkTracerProvider,
};
use partner_api_signing::Environment;
use uuid::Uuid;

use crate::db::statement::Statement;
use crate::request_log::{Reason, Record};

/// The name under which a collector files the service, unless it says `OTEL_SERVICE_NAME`.
const SERVICE: &str = "partner-api";

/// How long the collector may take to answer, and the last spans to be sent at a stop.
const PATIENCE: Duration = Duration::from_secs(5);

/// Spans that may wait for the collector: some ten megabytes. What finds no room is dropped, which the log tells.
const WAITING_SPANS: usize = 16_384;

/// How long spans gather before they are sent.
const GATHER: Duration = Duration::from_secs(1);

/// Stages that one request keeps; it has a handful.
const MOST_STAGES: usize = 64;

tokio::task_local! {
    /// The stages of the request whose task this is.
    static STAGES: RefCell<Vec<Noted>>;
}

thread_local! {
    /// The id of the trace that this thread is making the first span of.
    static NEXT_TRACE: Cell<Option<TraceId>> = const { Cell::new(None) };
}

/// What a request may spend time on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stage {
    /// The rest of its body.
    Body,
    /// Its admission, the batch before it included.
    Admission,
    /// A connection to the database.
    Connection,
    /// A statement, its way there and back included.
    Statement(&'static Statement),
    /// Its measurement's way through the recorder.
    Recorder,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Stage::Body => "body",
            Stage::Admission => "admission",
            Stage::Connection => "connection",
            Stage::Statement(statement) => statement.name(),
            Stage::Recorder => "recorder",
        }
    }
}

/// A stage that has ended, or that was given up.
struct Noted {
    stage: Stage,
    began: Instant,
    ended: Instant,
}

/// Notes the stage, with its beginning and end, among those of its request: also when `work` is dropped on the way.
pub(crate) async fn stage<T>(stage: Stage, work: impl Future<Output = T>) -> T {
    struct Running(Stage, Option<Instant>);
    impl Drop for Running {
        fn drop(&mut self) {
            let Running(stage, Some(began)) = *self else { return };
            let ended = Instant::now();
            // There is a list, or there would be no beginning; it is gone only where the whole request is being dropped.
            let _ = STAGES.try_with(|stages| {
                let mut stages = stages.borrow_mut();
                if stages.len() < MOST_STAGES {
                    stages.push(Noted { stage, began, ended });
                }
            });
        }
    }
    let began = STAGES.try_with(|_| Instant::now()).ok();
    let _running = Running(stage, began);
    work.await
}

/// Where traces go, and which.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Settings {
    /// The collector, without `/v1/traces`.
    pub endpoint: String,
    /// The share of requests that are traced, from 0 to 1. Those that ended in a 5xx are in any case.
    pub share: f64,
}

/// Sends the traces of a process.
#[derive(Clone)]
pub struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    /// Of 2^32 requests so many are traced.
    share: u64,
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces")
            .field("share", &self.share)
            .finish_non_exhaustive()
    }
}

/// The stages of a request under way.
pub(crate) struct Stages(Vec<Noted>);

impl Traces {
    /// Begins to send to a collector; whether it is there shows later, in the log.
    ///
    /// # Errors
    /// The endpoint is no URL, or there can be no thread.
    pub fn start(settings: &Settings, environment: Environment) -> Result<Self, ExporterBuildError> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}/v1/traces", settings.endpoint.trim_end_matches('/')))
            .with_timeout(PATIENCE)
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
            .with_scheduled_delay(GATHER)
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

    /// Does a request's work, and notes its stages.
    pub(crate) async fn noting<T>(work: impl Future<Output = T>) -> (T, Stages) {
        let noted = async {
            let done = work.await;
            (done, Stages(STAGES.with(RefCell::take)))
        };
        STAGES.scope(RefCell::default(), noted).await
    }

    /// Queues the trace of a request that is answered, if it is among those that are traced.
    pub(crate) fn tell(&self, record: &Record, stages: Stages) {
        if !self.is_traced(record) {
            return;
        }
        // One clock for all: the wall's of now, less what the steady one has counted since.
        let (now, wall) = (Instant::now(), SystemTime::now());
        let at = |moment: Instant| wall - now.saturating_duration_since(moment);
        NEXT_TRACE.set(Some(TraceId::from(record.request_id.as_u128())));
        let mut request = SpanBuilder::from_name(format!("{} {}", record.method, record.route))
            .with_kind(SpanKind::Server)
            .with_start_time(at(record.arrived))
            .with_attributes(attributes(record))
            .start_with_context(&self.tracer, &Context::new());
        if record.status >= 500 {
            request.set_status(Status::error(record.reason.map_or("", Reason::word)));
        }
        let request = Context::new().with_span(request);
        for Noted { stage, began, ended } in stages.0 {
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

    /// Sends what waits, for some seconds at most, and stops.
    pub async fn stop(self) {
        let stopped = tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(PATIENCE)).await;
        if let Ok(Err(error)) = stopped {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

/// What the request's line in the log says.
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
        ("reason", record.reason.map(Reason::word)),
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

/// Ids of spans are random, those of traces are given.
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
