//! From a configuration to a running service.

mod cluster;
mod command;
mod signals;

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
#[cfg(feature = "embedded-postgres")]
use embedded_postgres::EmbeddedPostgresError;
use partner_api_signing::Environment;
use thiserror::Error;

pub use self::command::CommandDatabase;
pub use self::signals::StopSignals;

use self::cluster::Cluster;
use crate::config::{Config, Switch};
use crate::db::connection::Connection;
use crate::db::migrate::{MigrateError, migrate};
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

/// How long a start waits for what it notes in the database.
const SETTINGS_WAIT: Duration = Duration::from_secs(10);

/// Why the service does not run. Each message says what to do.
#[derive(Debug, Error)]
pub enum StartupError {
    /// The private database did not start.
    #[cfg(feature = "embedded-postgres")]
    #[error("{0}{hint}", hint = cluster::choices(.0))]
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
