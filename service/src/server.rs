//! The running service.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool_postgres::Pool;
use partner_api_signing::Environment;
use thiserror::Error;
use tokio::task::JoinSet;

use crate::admission::{Admission, Meter, nonces};
use crate::context::{Context, State, WaitedFor};
use crate::db::DbError;
use crate::db::standby::Standbys;
use crate::directory::{self, Directory};
use crate::front_door::address::TrustedProxies;
use crate::front_door::pages::Pages;
use crate::front_door::{self, FrontDoor, IpLimit, Settings};
use crate::listener::{Limits, Listener, Running};
use crate::observability::{self, Instruments, Internal, Watched};
#[cfg(feature = "render")]
use crate::publishing::Renderers;
use crate::recorder::{self, Recorder};
use crate::replicas;
use crate::request_log::RequestLog;
use crate::secrets::{MasterKey, purpose};
use crate::storage::{Storage, StorageError};
use crate::tls::{Tls, TlsError, TlsFiles};
use crate::traces::{self, Traces};

/// The time that the request log is given at a stop, even where requests took all that there was.
const LAST_ENTRIES: Duration = Duration::from_secs(1);

/// Opens the object storage, given the public URL under which its links are served.
pub type OpenStorage = Box<dyn FnOnce(&str) -> Result<Storage, StorageError> + Send>;

/// Where a server is, once it is bound.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// The address under which partners reach it.
    pub public_url: String,
    /// Where the internal listener is, if there is one.
    pub internal: Option<SocketAddr>,
}

/// Makes the pages that are served beside the API, given where they will be.
pub type MakePages = Box<dyn FnOnce(&Addresses) -> Pages + Send>;

/// Makes what answers on the internal listener beside `/live`, `/ready` and `/metrics`, given what its requests work with.
pub type MakeElsewhere = Box<dyn FnOnce(Elsewhere) -> observability::Elsewhere + Send>;

/// What the requests of the internal listener's other paths work with.
pub struct Elsewhere {
    /// The state of the service.
    pub context: Context,
    /// Connections for requests.
    pub pool: Pool,
    /// The time in which a body must have arrived.
    pub body_timeout: Duration,
}

/// What a server is made of.
pub struct ServerParts {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where `/live`, `/ready` and `/metrics` are read; none leaves them out.
    pub internal_listen: Option<SocketAddr>,
    /// The address under which partners reach it; `None` is `http://`, or `https://` with TLS, and where it listens.
    pub public_url: Option<String>,
    /// The certificate for TLS and its key; `None` is HTTP without TLS.
    pub tls: Option<TlsFiles>,
    /// The deployment's environment.
    pub environment: Environment,
    /// Connections for requests.
    pub pool: Pool,
    /// Connections for admission and the keys, so that neither waits behind requests.
    pub admission_pool: Pool,
    /// Connections for recording measurements, so that reads do not wait behind it.
    pub recorder_pool: Pool,
    /// How to connect to the database, for what needs a connection of its own.
    pub database: tokio_postgres::Config,
    /// Connections for writing the request log, and how many days of it are kept; none keeps no log.
    pub request_log: Option<(Pool, u32)>,
    /// Standbys for reads; none: the requests' pool serves them.
    pub standbys: Option<Arc<Standbys>>,
    /// Makes the object storage, given the public URL under which links are served.
    pub storage: OpenStorage,
    /// Makes the pages that are served beside the API.
    pub pages: MakePages,
    /// Makes what is served on the internal listener beside what machines ask; none: nothing.
    pub elsewhere: Option<MakeElsewhere>,
    /// Opens secrets, and derives the key of cursors.
    pub master_key: MasterKey,
    /// Requests per minute and address; 0 is no limit.
    pub ip_limit: u32,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: TrustedProxies,
    /// The time in which a body must have arrived.
    pub body_timeout: Duration,
    /// The time in which a request must have been answered.
    pub request_timeout: Duration,
    /// Where traces are sent; none does not.
    pub traces: Option<traces::Settings>,
    /// How many reports are rendered at the same time; none leaves that to other replicas.
    #[cfg(feature = "render")]
    pub renderers: usize,
}

/// Why a server did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The database did not answer, or is not migrated.
    #[error("the database cannot be used: {0}")]
    Db(#[from] DbError),
    /// The object storage cannot be used.
    #[error("the object storage cannot be used: {0}")]
    Storage(#[from] StorageError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        reason: std::io::Error,
    },
    /// The internal address cannot be listened on.
    #[error(
        "cannot listen on {address} for /live, /ready and /metrics: {reason}; give another address with --internal-listen, or \
         `off`"
    )]
    InternalListen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        reason: std::io::Error,
    },
    /// The certificate for TLS, or its key, cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Traces cannot be sent.
    #[error("--otlp-endpoint: traces cannot be sent: {0}")]
    Traces(#[from] opentelemetry_otlp::ExporterBuildError),
}

/// A server at work.
pub struct RunningServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where `/live`, `/ready` and `/metrics` are read.
    pub internal_address: Option<SocketAddr>,
    /// The address under which partners reach it.
    pub public_url: String,
    /// The state that its requests share.
    pub context: Context,
    /// What it keeps of requests.
    pub request_log: RequestLog,
    /// The certificate in force, where TLS is spoken.
    pub tls: Option<Tls>,
    server: Running,
    internal: Option<Internal>,
    traces: Option<Traces>,
    background: JoinSet<()>,
    #[cfg(feature = "render")]
    renderers: Renderers,
}

/// Starts a server.
///
/// # Errors
/// When the database does not answer, the address is taken, or there is something wrong with the certificate.
pub async fn start(parts: ServerParts) -> Result<RunningServer, StartError> {
    let tls = parts.tls.map(Tls::open).transpose()?;
    let traces = parts.traces.as_ref();
    let traces = traces
        .map(|settings| Traces::start(settings, parts.environment))
        .transpose()?;
    // Before anything else: it is the one that somebody else may have.
    let bind_internal = |address| bind_internal(address, parts.elsewhere.is_some());
    let internal = parts.internal_listen.map(bind_internal).transpose()?;
    nonces::PARTITIONS.prepare(&parts.admission_pool).await?;
    let directory = Directory::load(
        &parts.admission_pool,
        parts.environment,
        parts.master_key.clone(),
        parts.pool.status().max_size,
    )
    .await?;
    let limits = Limits {
        exempt: parts.trusted_proxies.0.clone(),
        ..Limits::default()
    };
    // Bound before anything is made that names its port; connections wait until it serves.
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
    if let Some(standbys) = &parts.standbys {
        pools.push(("standbys", standbys.pool()));
    }
    let request_log_days = parts.request_log.as_ref().map(|(_, days)| *days);
    let request_log = match parts.request_log {
        Some((pool, days)) => {
            pools.push(("request_log", pool.clone()));
            RequestLog::start(pool, days)
        }
        None => RequestLog::off(),
    };
    let front_door = FrontDoor::new(
        settings,
        IpLimit::new(parts.ip_limit),
        directory.clone(),
        admission,
        request_log.clone(),
    );
    let waited_for = WaitedFor {
        pool: parts.pool.clone(),
        standbys: parts.standbys.clone(),
        recorder: Recorder::start(parts.recorder_pool, recorder::ATTEMPT_WITHIN),
    };
    let state = State {
        instruments: Instruments::default(),
        storage: (parts.storage)(&public_url)?,
        public_url: public_url.clone(),
        environment: parts.environment,
        cursor_key: parts.master_key.derive(purpose::CURSORS),
        pages: (parts.pages)(&Addresses {
            public_url: public_url.clone(),
            internal: internal.as_ref().map(Listener::address),
        }),
        front_door,
        traces: traces.clone(),
    };
    let context = Context::new(waited_for, state);
    let shared = context.clone();
    let handler = move |peer, request| front_door::answer(shared.clone(), peer, request);
    let mut background = JoinSet::new();
    let server = match tls.clone() {
        None => listener.serve(handler),
        Some(tls) => {
            background.spawn(tls.clone().keep_fresh()?);
            listener.serve_tls(tls, handler)
        }
    };
    let internal = internal.map(|listener| {
        let watched = Watched {
            environment: parts.environment,
            pools,
            context: context.clone(),
            directory: directory.clone(),
            meter: meter.clone(),
            request_log: request_log.clone(),
            connections: server.watch(),
            tls: tls.clone(),
        };
        let elsewhere = parts.elsewhere.map(|make| {
            make(Elsewhere {
                context: context.clone(),
                pool: parts.pool.clone(),
                body_timeout: parts.body_timeout,
            })
        });
        let pool = parts.pool.clone();
        let (internal, sampling) = observability::start(listener, watched, pool, request_log_days, elsewhere);
        background.spawn(sampling);
        internal
    });
    background.spawn(directory.keep_fresh(parts.admission_pool.clone(), parts.database, directory::POLL));
    if let Some(standbys) = parts.standbys {
        background.spawn(standbys.watch(parts.admission_pool.clone()));
    }
    background.spawn(replicas::keep_seen(
        parts.admission_pool.clone(),
        server.address,
        parts.environment,
        parts.master_key,
        meter.lately().clone(),
    ));
    background.spawn(nonces::PARTITIONS.keep(parts.admission_pool, nonces::MAINTENANCE));
    #[cfg(feature = "render")]
    let renderers = Renderers::start(parts.renderers, &parts.pool, &context.storage);
    Ok(RunningServer {
        address: server.address,
        internal_address: internal.as_ref().map(Internal::address),
        public_url,
        context,
        request_log,
        tls,
        server,
        internal,
        traces,
        background,
        #[cfg(feature = "render")]
        renderers,
    })
}

fn bind_internal(address: SocketAddr, elsewhere: bool) -> Result<Listener, StartError> {
    Listener::bind(address, observability::limits(elsewhere))
        .map_err(|reason| StartError::InternalListen { address, reason })
}

impl RunningServer {
    /// From here on `/ready` is 503, so that balancers send requests elsewhere; those that come are answered as before.
    pub fn not_ready_any_more(&self) {
        if let Some(internal) = &self.internal {
            internal.not_ready_any_more();
        }
    }

    /// Stops taking requests, lets those under way finish until `deadline`, and returns whether all did. What they leave in
    /// the request log is written by then, too, or within the first moment after.
    pub async fn stop(mut self, deadline: Duration) -> bool {
        let began = Instant::now();
        // Before connections are turned away, so that a proxy that looks finds out by then.
        self.not_ready_any_more();
        self.background.abort_all();
        #[cfg(feature = "render")]
        let (all, ()) = tokio::join!(self.server.stop(deadline), self.renderers.stop());
        #[cfg(not(feature = "render"))]
        let all = self.server.stop(deadline).await;
        if !all {
            tracing::warn!(?deadline, "requests were still under way at the deadline");
        }
        let left = deadline.saturating_sub(began.elapsed()).max(LAST_ENTRIES);
        self.request_log.stop(left).await;
        if let Some(traces) = self.traces {
            traces.stop().await;
        }
        if let Some(internal) = self.internal {
            internal.stop().await;
        }
        all
    }
}
