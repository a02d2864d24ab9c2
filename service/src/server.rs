//! The running service. The file is long because [`start`] creates all parts of the service, in the order in which they depend on
//! each other.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bounded_listener::tls::{Tls, TlsError, TlsFiles};
use bounded_listener::{Limits, Listener, Running};
use deadpool_postgres::Pool;
use partner_api_signing::Environment;
use partner_api_store::DbError;
use partner_api_store::directory::{self, Directory};
use partner_api_store::partitions::{ANSWER_HISTORY, ANSWER_HISTORY_INTERVAL};
use partner_api_store::secrets::{MasterKey, is_open_to_others, purpose};
use partner_api_store::shared::SharedConnections;
use partner_api_store::standby::Standbys;
use thiserror::Error;
use tokio::task::JoinSet;

use crate::admission::{Admission, Meter, nonces};
use crate::context::{BlockingServices, Context, State};
use crate::gateway::{Gateway, GatewayParts, IpLimit, Reporter, Settings};
use crate::inspectors::{self, InspectorState, MakeInspectorRoutes};
use crate::observability::{self, InMemory, Instruments, Internal, Watched};
#[cfg(feature = "render")]
use crate::publishing::Renderers;
use crate::recorder::{self, Recorder};
use crate::replicas::Heartbeats;
use crate::request_log::RequestLog;
use crate::storage::{Storage, StorageError};
use crate::traces::{self, Traces};
use partner_api_gateway::TrustedProxies;
use partner_api_gateway::pages::Pages;

/// The minimum time to flush the request log at shutdown.
const REQUEST_LOG_FLUSH: Duration = Duration::from_secs(1);

/// The session that listens for changes of keys and grants.
pub(crate) const NOTIFICATIONS: usize = 1;

/// Opens the object storage, given the public URL under which its links are served.
pub type OpenStorage = Box<dyn FnOnce(&str) -> Result<Storage, StorageError> + Send>;

/// The addresses of a bound server.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// The URL under which partners reach the server.
    pub public_url: String,
    /// The address of the inspectors' listener, if there is one.
    pub inspectors: Option<SocketAddr>,
}

/// Creates the pages that are served in addition to the API.
pub type MakePages = Box<dyn FnOnce(&Addresses) -> Pages + Send>;

/// The parts of a server.
pub struct ServerParts {
    /// The address to listen on; port 0 picks a free port.
    pub listen: SocketAddr,
    /// The address of the internal listener, if there is one.
    pub internal_listen: Option<SocketAddr>,
    /// The address of the inspectors' listener, if there is one. It is not bound without `inspector_routes`.
    pub inspectors_listen: Option<SocketAddr>,
    /// The URL under which partners reach the server; `None` derives it from the address.
    pub public_url: Option<String>,
    /// The TLS certificate and key; `None` serves HTTP without TLS.
    pub tls: Option<TlsFiles>,
    /// The deployment's environment.
    pub environment: Environment,
    /// Connections for requests.
    pub pool: Pool,
    /// Connections for admission and keys, which must not wait behind requests.
    pub admission_pool: Pool,
    /// Connections for recording measurements, so that reads do not wait behind them.
    pub recorder_pool: Pool,
    /// The connection settings, for dedicated connections.
    pub database: tokio_postgres::Config,
    /// Connections for the request log and its retention in days; `None` disables the log.
    pub request_log: Option<(Pool, u32)>,
    /// Standbys for reads; `None` reads from the primary.
    pub standbys: Option<Arc<Standbys>>,
    /// Opens the object storage.
    pub storage: OpenStorage,
    /// Creates the pages that are served in addition to the API.
    pub pages: MakePages,
    /// Creates the routes of the inspectors' listener.
    pub inspector_routes: Option<MakeInspectorRoutes>,
    /// Decrypts secrets and derives other keys.
    pub master_key: MasterKey,
    /// Requests per minute and client address; 0 means no limit.
    pub ip_limit: u32,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: TrustedProxies,
    /// The timeout for receiving a request's body.
    pub body_timeout: Duration,
    /// The timeout for processing a request.
    pub request_timeout: Duration,
    /// The trace collector, if any.
    pub traces: Option<traces::Settings>,
    /// The number of reports rendered in parallel; 0 leaves rendering to other replicas.
    #[cfg(feature = "render")]
    pub renderers: usize,
}

/// An error while starting the server.
#[derive(Debug, Error)]
pub enum StartError {
    /// The database did not respond, or is not migrated.
    #[error("failed to use the database: {0}")]
    Db(#[from] DbError),
    /// The object storage cannot be used.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The address cannot be listened on.
    #[error("failed to listen on {address}: {reason}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        reason: std::io::Error,
    },
    /// The internal address cannot be listened on.
    #[error(
        "failed to listen on {address} for /live, /ready and /metrics: {reason}; give another address with --internal-listen, or \
         `off`"
    )]
    InternalListen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        reason: std::io::Error,
    },
    /// The inspectors' address cannot be listened on.
    #[error(
        "failed to listen on {address} for the inspectors' page: {reason}; give another address with --inspectors-listen, or `off`"
    )]
    InspectorsListen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        reason: std::io::Error,
    },
    /// The certificate for TLS, or its key, cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The trace exporter cannot start.
    #[error("--otlp-endpoint: failed to start the trace exporter: {0}")]
    Traces(#[from] opentelemetry_otlp::ExporterBuildError),
}

impl StartError {
    /// Returns whether the configuration must be corrected. A port in use or a certificate that is not valid yet needs only time.
    #[must_use]
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Storage(error) => matches!(error, StorageError::Setup(_)),
            Self::Tls(error) => !matches!(
                error,
                TlsError::NotYetValid(_) | TlsError::Signal(_) | TlsError::Reload(_)
            ),
            Self::Traces(_) => true,
            Self::Db(_) | Self::Listen { .. } | Self::InternalListen { .. } | Self::InspectorsListen { .. } => false,
        }
    }
}

/// A running server.
pub struct RunningServer {
    /// The address it listens on.
    pub address: SocketAddr,
    /// The address of the internal listener.
    pub internal_address: Option<SocketAddr>,
    /// The address of the inspectors' listener.
    pub inspectors_address: Option<SocketAddr>,
    /// The address under which partners reach it.
    pub public_url: String,
    /// The shared state of requests.
    pub context: Context,
    /// The gateway of the partners' API.
    pub gateway: Gateway,
    /// The request log.
    pub request_log: RequestLog,
    /// The current certificate, if the server uses TLS.
    pub tls: Option<Tls>,
    server: Running,
    inspectors: Option<Running>,
    internal: Option<Internal>,
    traces: Option<Traces>,
    background: JoinSet<()>,
    heartbeats: Heartbeats,
    #[cfg(feature = "render")]
    renderers: Renderers,
}

/// Starts a server.
///
/// # Errors
/// If the database does not respond, the address is already in use, or the certificate cannot be used.
pub async fn start(parts: ServerParts) -> Result<RunningServer, StartError> {
    let tls = parts.tls.map(|files| Tls::open(files, is_open_to_others)).transpose()?;
    let traces = parts.traces.as_ref();
    let traces = traces
        .map(|settings| Traces::start(settings, parts.environment))
        .transpose()?;
    // Bound first, because their fixed default ports are the most likely to be in use.
    let internal = parts.internal_listen.map(|address| {
        Listener::bind(address, observability::limits(&parts.trusted_proxies))
            .map_err(|reason| StartError::InternalListen { address, reason })
    });
    let internal = internal.transpose()?;
    let inspectors = parts
        .inspectors_listen
        .zip(parts.inspector_routes)
        .map(|(address, make)| {
            Listener::bind(address, inspectors::limits(&parts.trusted_proxies))
                .map(|listener| (listener, make))
                .map_err(|reason| StartError::InspectorsListen { address, reason })
        });
    let inspectors = inspectors.transpose()?;
    nonces::PARTITIONS.prepare(&parts.admission_pool).await?;
    ANSWER_HISTORY.prepare(&parts.admission_pool).await?;
    // If the shared connections are stalled, the others must suffice for all keys.
    let connections = parts.pool.status().max_size;
    let directory = Directory::load(
        &parts.admission_pool,
        parts.environment,
        parts.master_key.clone(),
        connections - SharedConnections::number(connections),
    )
    .await?;
    let limits = Limits {
        exempt: parts.trusted_proxies.0.clone(),
        ..Limits::default()
    };
    // Bound before anything uses its port; connections wait until it serves.
    let listener = Listener::bind(parts.listen, limits).map_err(|reason| StartError::Listen {
        address: parts.listen,
        reason,
    })?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let public_url = parts
        .public_url
        .unwrap_or_else(|| format!("{scheme}://{}", listener.address()))
        .trim_end_matches('/')
        .to_string();
    let settings = Settings {
        environment: parts.environment,
        trusted_proxies: parts.trusted_proxies,
        body_timeout: parts.body_timeout,
        request_timeout: parts.request_timeout,
    };
    let meter = Meter::default();
    let admission = Admission::start(parts.admission_pool.clone(), meter.clone());
    let mut pools = vec![
        ("requests", parts.pool.clone()),
        ("admission", parts.admission_pool.clone()),
        ("recorder", parts.recorder_pool.clone()),
    ];
    let request_log_days = parts.request_log.as_ref().map(|(_, days)| *days);
    let request_log = match parts.request_log {
        Some((pool, days)) => {
            pools.push(("request_log", pool.clone()));
            RequestLog::start(pool, days)
        }
        None => RequestLog::off(),
    };
    // The pools of the primary.
    let connections = NOTIFICATIONS + pools.iter().map(|(_, pool)| pool.status().max_size).sum::<usize>();
    if let Some(standbys) = &parts.standbys {
        pools.push(("standbys", standbys.pool()));
    }
    let instruments = Instruments::default();
    let services = BlockingServices {
        pool: parts.pool.clone(),
        shared: SharedConnections::new(parts.pool.clone()),
        standbys: parts.standbys.clone(),
        recorder: Recorder::start(parts.recorder_pool, recorder::ATTEMPT_TIMEOUT),
    };
    let state = State {
        instruments: instruments.clone(),
        storage: (parts.storage)(&public_url)?,
        public_url: public_url.clone(),
        environment: parts.environment,
        cursor_key: parts.master_key.derive(purpose::CURSORS),
    };
    let context = Context::new(services, state);
    let reporter = Reporter::new(request_log.clone(), instruments);
    let trusted_proxies = settings.trusted_proxies.clone();
    let gateway = Gateway::new(GatewayParts {
        settings,
        ip_limit: IpLimit::new(parts.ip_limit),
        directory: directory.clone(),
        admission,
        reporter: reporter.clone(),
        pool: parts.pool.clone(),
        pages: (parts.pages)(&Addresses {
            public_url: public_url.clone(),
            inspectors: inspectors.as_ref().map(|(listener, _)| listener.address()),
        }),
        context: context.clone(),
        traces: traces.clone(),
    });
    let serving = gateway.clone();
    let handler = move |peer, request| serving.clone().respond(peer, request);
    let mut background = JoinSet::new();
    let server = match tls.clone() {
        None => listener.serve(handler),
        Some(tls) => {
            background.spawn(tls.clone().watch_files()?);
            listener.serve_tls(tls, handler)
        }
    };
    let inspectors = inspectors.map(|(listener, make)| {
        let routes = make(InspectorState {
            context: context.clone(),
            pool: parts.pool.clone(),
            reporter,
            trusted_proxies,
            body_timeout: parts.body_timeout,
        });
        listener.serve(move |peer, request| routes(peer, request))
    });
    let internal = internal.map(|listener| {
        let (watching, measured) = (gateway.clone(), context.clone());
        let watched = Watched {
            environment: parts.environment,
            pools,
            instruments: context.instruments.clone(),
            in_memory: Box::new(move || {
                let load = watching.load();
                InMemory {
                    admission_waiting: load.admission_waiting,
                    unverified_bytes: load.unverified_bytes,
                    measurements: measured.measurements_in_flight(),
                }
            }),
            directory: directory.clone(),
            meter: meter.clone(),
            request_log: request_log.clone(),
            connections: server.watch(),
            tls: tls.clone(),
        };
        let pool = parts.pool.clone();
        let (internal, sampling) = observability::start(listener, watched, pool, request_log_days);
        background.spawn(sampling);
        internal
    });
    background.spawn(directory.keep_fresh(parts.admission_pool.clone(), parts.database, directory::POLL));
    if let Some(standbys) = parts.standbys {
        background.spawn(standbys.watch(parts.admission_pool.clone()));
    }
    let heartbeats = Heartbeats::start(
        parts.admission_pool.clone(),
        server.address,
        parts.environment,
        &parts.master_key,
        connections,
        meter.health().clone(),
    );
    background.spawn(ANSWER_HISTORY.maintain_forever(parts.admission_pool.clone(), ANSWER_HISTORY_INTERVAL));
    background.spawn(nonces::PARTITIONS.maintain_forever(parts.admission_pool, nonces::MAINTENANCE));
    #[cfg(feature = "render")]
    let renderers = Renderers::start(parts.renderers, &parts.pool, &context.storage);
    Ok(RunningServer {
        address: server.address,
        internal_address: internal.as_ref().map(Internal::address),
        inspectors_address: inspectors.as_ref().map(|running| running.address),
        public_url,
        context,
        gateway,
        request_log,
        tls,
        server,
        inspectors,
        internal,
        traces,
        background,
        heartbeats,
        #[cfg(feature = "render")]
        renderers,
    })
}

impl RunningServer {
    /// Makes `/ready` return 503 from now on, so that load balancers move their traffic. Requests are still served.
    pub fn set_not_ready(&self) {
        if let Some(internal) = &self.internal {
            internal.set_not_ready();
        }
    }

    /// Stops accepting requests, waits until `deadline` for running ones, flushes the request log, and returns whether all
    /// requests finished.
    pub async fn stop(mut self, deadline: Duration) -> bool {
        let began = Instant::now();
        // Before the listener closes, so that a proxy's health check notices in time.
        self.set_not_ready();
        self.background.abort_all();
        #[cfg(feature = "render")]
        let (all, ()) = tokio::join!(self.server.stop(deadline), self.renderers.stop());
        #[cfg(not(feature = "render"))]
        let all = self.server.stop(deadline).await;
        if !all {
            tracing::warn!(?deadline, "requests were still running at the shutdown deadline");
        }
        let left = deadline.saturating_sub(began.elapsed()).max(REQUEST_LOG_FLUSH);
        self.request_log.stop(left).await;
        if let Some(traces) = self.traces {
            traces.stop().await;
        }
        if let Some(inspectors) = self.inspectors {
            inspectors.stop(observability::STOP_TIMEOUT).await;
        }
        if let Some(internal) = self.internal {
            internal.stop().await;
        }
        self.heartbeats.stop().await;
        all
    }
}
