//! From a configuration to a running service.

#[cfg(feature = "embedded-postgres")]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
#[cfg(feature = "embedded-postgres")]
use embedded_postgres::{EmbeddedPostgres, EmbeddedPostgresError, Options};
use partner_api_signing::Environment;
use thiserror::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::{Config, Database, Switch};
use crate::db::connection::Connection;
use crate::db::migrate::{self, MigrateError, migrate};
use crate::db::pool::{PoolSettings, PoolSetupError, parse_url, pool};
use crate::db::standby::Standbys;
use crate::db::{DbError, report_settings};
use crate::front_door::address::TrustedProxies;
use crate::recorder;
use crate::request_log;
use crate::secrets::{MasterKey, MasterKeyError, purpose};
use crate::server::{MakeElsewhere, MakePages, RunningServer, ServerParts, StartError, start};

/// Connections for admission and the keys.
const ADMISSION_POOL: usize = 4;

/// Connections for an operator's command, and how long it waits for one.
const COMMAND_POOL: usize = 2;
const COMMAND_WAIT: Duration = Duration::from_secs(10);

/// How long a start waits for what it notes in the database.
const SETTINGS_WAIT: Duration = Duration::from_secs(10);

/// The private database's and its owner's name.
#[cfg(feature = "embedded-postgres")]
const APPLICATION: &str = "partner-api";

/// Why the service does not run. Each message says what to do.
#[derive(Debug, Error)]
pub enum StartupError {
    /// The private database did not start.
    #[cfg(feature = "embedded-postgres")]
    #[error("{0}{hint}", hint = choices(.0))]
    EmbeddedPostgres(#[from] EmbeddedPostgresError),
    /// There is no database to use.
    #[cfg(not(feature = "embedded-postgres"))]
    #[error(
        "--database-url: needed, for this program was built without a private database (feature `embedded-postgres`)"
    )]
    NoDatabase,
    /// The pool cannot be made.
    #[error("the database cannot be used: {0}")]
    Pool(#[from] PoolSetupError),
    /// The schema cannot be brought up to date.
    #[error("the database's schema cannot be brought up to date: {0}")]
    Migrate(#[from] MigrateError),
    /// The schema is not the one that this program works on.
    #[error(transparent)]
    Schema(MigrateError),
    /// What is the same for all replicas cannot be noted.
    #[error("the database does not take the address of public reports: {0}")]
    Settings(#[from] DbError),
    /// There is no usable master key.
    #[error(transparent)]
    MasterKey(#[from] MasterKeyError),
    /// The server did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Signals cannot be listened for.
    #[error("signals cannot be listened for: {0}")]
    Signals(std::io::Error),
}

/// Where the private cluster is.
#[cfg(feature = "embedded-postgres")]
fn private_folder(config: &Config) -> PathBuf {
    config.data_dir.join("postgres")
}

/// The options with which a machine without PostgreSQL's programs will do.
#[cfg(feature = "embedded-postgres")]
fn choices(error: &EmbeddedPostgresError) -> &'static str {
    match error {
        EmbeddedPostgresError::NotInstalled { .. } => " (--postgres-bin), or a database of your own (--database-url)",
        _ => "",
    }
}

/// A database that is ready for use: migrated, with pools to it.
#[derive(Debug)]
pub struct OpenDatabase {
    /// Stopped with [`OpenDatabase::close`].
    cluster: Cluster,
    /// How to connect to it.
    target: tokio_postgres::Config,
    /// Connections for requests.
    pub pool: Pool,
    /// Connections for admission and the keys.
    pub admission_pool: Pool,
    /// Connections for recording measurements.
    pub recorder_pool: Pool,
    /// Connections for writing the request log.
    pub log_pool: Pool,
    /// Standbys for reads, if any are configured.
    pub standbys: Option<Arc<Standbys>>,
    /// The migrations that were applied just now.
    pub applied: Vec<String>,
}

/// A migrated database's pools.
struct Prepared {
    pool: Pool,
    admission_pool: Pool,
    recorder_pool: Pool,
    log_pool: Pool,
    standbys: Option<Arc<Standbys>>,
    applied: Vec<String>,
}

/// The private cluster, where it is one.
#[derive(Debug)]
struct Cluster {
    #[cfg(feature = "embedded-postgres")]
    private: Option<EmbeddedPostgres>,
}

impl Cluster {
    /// Starts it if there is no database URL. Returns how to connect to the database, too.
    async fn of(config: &Config) -> Result<(Self, tokio_postgres::Config), StartupError> {
        match &config.database {
            Database::Url(url) => Ok((Self::elsewhere(), parse_url(url.expose())?)),
            #[cfg(feature = "embedded-postgres")]
            Database::Embedded { postgres_bin } => {
                let options = Options {
                    search: postgres_bin.clone().map(|folder| vec![folder]),
                    ..Options::of(APPLICATION)
                };
                let private = EmbeddedPostgres::start(&private_folder(config), options).await?;
                let target = private.config();
                let private = Some(private);
                Ok((Self { private }, target))
            }
            #[cfg(not(feature = "embedded-postgres"))]
            Database::Embedded { .. } => Err(StartupError::NoDatabase),
        }
    }

    /// None of this process.
    fn elsewhere() -> Self {
        Self {
            #[cfg(feature = "embedded-postgres")]
            private: None,
        }
    }

    /// How to connect to the private cluster, if a process runs it.
    #[cfg(feature = "embedded-postgres")]
    fn running(config: &Config) -> Result<Option<tokio_postgres::Config>, StartupError> {
        match &config.database {
            Database::Url(_) => Ok(None),
            Database::Embedded { .. } => Ok(EmbeddedPostgres::of_another_process(
                &private_folder(config),
                &Options::of(APPLICATION),
            )?),
        }
    }

    #[cfg(not(feature = "embedded-postgres"))]
    #[allow(clippy::unnecessary_wraps, reason = "the signature with the feature")]
    fn running(_: &Config) -> Result<Option<tokio_postgres::Config>, StartupError> {
        Ok(None)
    }

    async fn stop(self) {
        #[cfg(feature = "embedded-postgres")]
        if let Some(private) = self.private {
            private.stop().await;
        }
    }
}

/// A database for an operator's command: of the private cluster that runs already, or is started for the command's time.
#[derive(Debug)]
pub struct CommandDatabase {
    cluster: Cluster,
    /// How to connect to it.
    pub target: tokio_postgres::Config,
    /// Connections for the command.
    pub pool: Pool,
}

impl CommandDatabase {
    /// Opens it, if its schema is that of this program.
    ///
    /// # Errors
    /// When there is no database, or its schema is older or newer.
    pub async fn open(config: &Config) -> Result<Self, StartupError> {
        let database = Self::open_as_it_is(config).await?;
        match migrate::status(&database.target).await.and_then(migrate::current) {
            Ok(()) => Ok(database),
            Err(error) => {
                database.close().await;
                Err(StartupError::Schema(error))
            }
        }
    }

    /// Opens it, whatever its schema.
    ///
    /// # Errors
    /// When there is no database.
    pub async fn open_as_it_is(config: &Config) -> Result<Self, StartupError> {
        let (cluster, target) = match Cluster::running(config)? {
            Some(target) => (Cluster::elsewhere(), target),
            None => Cluster::of(config).await?,
        };
        let settings = PoolSettings {
            size: COMMAND_POOL,
            wait: COMMAND_WAIT,
            ..config.pool_settings()
        };
        match pool(target.clone(), &settings) {
            Ok(pool) => Ok(Self { cluster, target, pool }),
            Err(error) => {
                cluster.stop().await;
                Err(error.into())
            }
        }
    }

    /// Closes the connections, and stops the private cluster if it was started for this.
    pub async fn close(self) {
        self.pool.close();
        self.cluster.stop().await;
    }
}

impl OpenDatabase {
    /// Starts the private cluster if there is no database URL, and brings the schema up to date.
    ///
    /// # Errors
    /// When there is no database, or it cannot be migrated.
    pub async fn open(config: &Config) -> Result<Self, StartupError> {
        let (cluster, target) = Cluster::of(config).await?;
        match Self::prepare(config, target.clone()).await {
            Ok(Prepared {
                pool,
                admission_pool,
                recorder_pool,
                log_pool,
                standbys,
                applied,
            }) => Ok(OpenDatabase {
                cluster,
                target,
                pool,
                admission_pool,
                recorder_pool,
                log_pool,
                standbys,
                applied,
            }),
            Err(error) => {
                cluster.stop().await;
                Err(error)
            }
        }
    }

    async fn prepare(config: &Config, target: tokio_postgres::Config) -> Result<Prepared, StartupError> {
        let applied = migrate(&target).await?;
        let settings = config.pool_settings();
        let admission = PoolSettings {
            size: ADMISSION_POOL,
            ..settings.clone()
        };
        let standbys = match &config.read_database {
            None => None,
            Some(read) => {
                let pool = pool(parse_url(read.url.expose())?, &settings)?;
                Some(Standbys::new(pool, *read.max_lag))
            }
        };
        Ok(Prepared {
            standbys,
            pool: pool(target.clone(), &settings)?,
            admission_pool: pool(target.clone(), &admission)?,
            recorder_pool: pool(target.clone(), &recorder::pool_settings(&settings))?,
            log_pool: pool(target, &request_log::pool_settings(&settings))?,
            applied,
        })
    }

    /// Closes the connections, and stops the private cluster.
    pub async fn close(self) {
        self.pool.close();
        self.admission_pool.close();
        self.recorder_pool.close();
        self.log_pool.close();
        if let Some(standbys) = &self.standbys {
            standbys.close();
        }
        self.cluster.stop().await;
    }
}

/// What is served beside the API.
pub struct Beside {
    /// Makes the pages of the public listener.
    pub pages: MakePages,
    /// Makes what the internal listener has beside what machines ask.
    pub elsewhere: Option<MakeElsewhere>,
}

/// Starts the server of a configuration on an open database, with what is served beside the API.
///
/// # Errors
/// When the address is taken, or the storage cannot be used.
pub async fn serve(
    config: &Config,
    database: &OpenDatabase,
    master_key: MasterKey,
    beside: Beside,
) -> Result<RunningServer, StartupError> {
    if let Some(address) = &config.public_report_url {
        let client = Connection::take(&database.pool, SETTINGS_WAIT).await?;
        if report_settings::set_public_report_url(&client, address.address()).await? {
            tracing::info!(public_report_url = ?address, "another address of public reports: their PDFs are rendered anew");
        }
    }
    let links = master_key.derive(purpose::LINKS);
    let for_storage = config.clone();
    let parts = ServerParts {
        listen: config.listen,
        internal_listen: config.internal_listen.address(),
        public_url: config.public_url.clone(),
        tls: config.tls.clone(),
        environment: config.environment,
        pool: database.pool.clone(),
        admission_pool: database.admission_pool.clone(),
        recorder_pool: database.recorder_pool.clone(),
        database: database.target.clone(),
        request_log: match config.request_log {
            Switch::On => Some((database.log_pool.clone(), config.request_log_days)),
            Switch::Off => None,
        },
        standbys: database.standbys.clone(),
        storage: Box::new(move |public_url| for_storage.open_storage(public_url, links)),
        pages: beside.pages,
        elsewhere: beside.elsewhere,
        master_key,
        ip_limit: config.ip_limit,
        trusted_proxies: TrustedProxies(config.trusted_proxies.clone()),
        body_timeout: *config.body_timeout,
        request_timeout: *config.request_timeout,
        traces: config.traces.clone(),
        #[cfg(feature = "render")]
        renderers: config.renderers,
    };
    let running = start(parts).await?;
    tracing::info!(
        address = %running.address,
        internal_address = running.internal_address.map(tracing::field::display),
        public_url = running.public_url,
        environment = match config.environment { Environment::Test => "test", Environment::Live => "live" },
        renderers = config.renderers,
        "serving"
    );
    if config.renderers == 0 {
        let reason = if cfg!(feature = "render") {
            "--renderers is 0"
        } else {
            "it was built without the feature `render`"
        };
        tracing::info!(reason, "this replica renders no PDFs, and leaves them to others");
    }
    Ok(running)
}

/// The signals that ask the service to stop.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    /// Where a hangup is not to end the process.
    hangup: Option<Signal>,
}

impl StopSignals {
    /// Listens from now on, so that a signal during the start is not lost.
    ///
    /// # Errors
    /// When the operating system does not let it.
    pub fn listen() -> Result<Self, StartupError> {
        Ok(StopSignals {
            terminate: signal(SignalKind::terminate()).map_err(StartupError::Signals)?,
            interrupt: signal(SignalKind::interrupt()).map_err(StartupError::Signals)?,
            hangup: None,
        })
    }

    /// The same, for a process that a hangup shall not end: it is what asks a service to read again what it can (OPS-9).
    ///
    /// # Errors
    /// When the operating system does not let it.
    pub fn listen_and_outlive_hangups() -> Result<Self, StartupError> {
        let hangup = signal(SignalKind::hangup()).map_err(StartupError::Signals)?;
        Ok(StopSignals {
            hangup: Some(hangup),
            ..Self::listen()?
        })
    }

    /// Waits for SIGTERM or Ctrl-C.
    pub async fn received(&mut self) {
        let hangups = async {
            match &mut self.hangup {
                Some(hangup) => {
                    while hangup.recv().await.is_some() {
                        tracing::info!(
                            "SIGHUP: the certificate's files are looked at, if there are any; nothing else is read again while the \
                         service runs"
                        );
                    }
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            () = hangups => {}
        }
    }
}
