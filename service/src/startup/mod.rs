//! Starts the service from a configuration.

mod cluster;
mod command;
mod signals;

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
#[cfg(feature = "embedded-postgres")]
use embedded_postgres::EmbeddedPostgresError;
use partner_api_domain::report_link;
use partner_api_gateway::TrustedProxies;
use partner_api_signing::Environment;
use thiserror::Error;

pub use self::command::CommandDatabase;
pub use self::signals::StopSignals;

use partner_api_store::connection::Connection;
use partner_api_store::deployment::{self, Deployment, DeploymentError};
use partner_api_store::migrate::{MigrateError, migrate};
use partner_api_store::pacing::Pacer;
use partner_api_store::pool::{PoolSettings, PoolSetupError, parse_url, pool};
use partner_api_store::secrets::{MasterKey, MasterKeyError, purpose};
use partner_api_store::standby::Standbys;
use partner_api_store::{DbError, public_reports};

use self::cluster::Cluster;
use crate::config::{Config, Switch};
use crate::gateway::REPORT_PAGES;
use crate::inspectors::MakeInspectorRoutes;
use crate::recorder;
use crate::request_log;
use crate::server::{MakePages, RunningServer, ServerParts, StartError, start};

/// Connections for admission and the keys.
const ADMISSION_POOL_SIZE: usize = 4;

/// The timeout for storing settings in the database at startup.
const SETTINGS_TIMEOUT: Duration = Duration::from_secs(10);

/// An error at startup. Each message contains the remedy.
#[derive(Debug, Error)]
pub enum StartupError {
    /// The private database did not start.
    #[cfg(feature = "embedded-postgres")]
    #[error("{0}{hint}", hint = cluster::remedy(.0))]
    EmbeddedPostgres(#[from] EmbeddedPostgresError),
    /// There is no database to use.
    #[cfg(not(feature = "embedded-postgres"))]
    #[error(
        "--database-url: required, because this program was built without a private database (feature `embedded-postgres`)"
    )]
    NoDatabase,
    /// The pool cannot be created.
    #[error("failed to set up the database connections: {0}")]
    Pool(#[from] PoolSetupError),
    /// The schema cannot be migrated.
    #[error("failed to migrate the database's schema: {0}")]
    Migrate(#[from] MigrateError),
    /// The schema does not match this program.
    #[error(transparent)]
    Schema(MigrateError),
    /// The database belongs to another deployment.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The settings that all replicas share cannot be read or stored.
    #[error("failed to read or store the settings in the database: {0}")]
    Settings(#[from] DbError),
    /// There is no usable master key.
    #[error(transparent)]
    MasterKey(#[from] MasterKeyError),
    /// The server did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The signal handlers cannot be installed.
    #[error("failed to install the signal handlers: {0}")]
    Signals(std::io::Error),
}

impl StartupError {
    /// Returns whether the configuration must be corrected, so that another attempt does not help.
    #[must_use]
    pub fn is_configuration(&self) -> bool {
        match self {
            #[cfg(not(feature = "embedded-postgres"))]
            Self::NoDatabase => true,
            Self::Pool(PoolSetupError::Url(_)) => true,
            Self::Deployment(error) => error.is_configuration(),
            Self::MasterKey(error) => error.is_configuration(),
            _ => false,
        }
    }
}

/// A migrated database with its connection pools.
#[derive(Debug)]
pub struct OpenDatabase {
    /// Stopped with [`OpenDatabase::close`].
    cluster: Cluster,
    /// The connection settings.
    pub target: tokio_postgres::Config,
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
    /// The migrations that were just applied.
    pub applied: Vec<String>,
    /// The deployment that the database belongs to.
    pub deployment: Deployment,
}

/// A migrated database's pools.
struct Prepared {
    pool: Pool,
    admission_pool: Pool,
    recorder_pool: Pool,
    log_pool: Pool,
    standbys: Option<Arc<Standbys>>,
    applied: Vec<String>,
    deployment: Deployment,
}

impl OpenDatabase {
    /// Starts the private cluster if there is no database URL, and migrates the schema.
    ///
    /// # Errors
    /// If there is no database, or it cannot be migrated.
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
                deployment,
            }) => Ok(OpenDatabase {
                cluster,
                target,
                pool,
                admission_pool,
                recorder_pool,
                log_pool,
                standbys,
                applied,
                deployment,
            }),
            Err(error) => {
                cluster.stop().await;
                Err(error)
            }
        }
    }

    async fn prepare(config: &Config, target: tokio_postgres::Config) -> Result<Prepared, StartupError> {
        deployment::check_before_migrating(&target, config.deployment()).await?;
        let applied = migrate(&target).await?;
        let settings = config.pool_settings();
        let admission = PoolSettings {
            size: ADMISSION_POOL_SIZE,
            ..settings.clone()
        };
        let standbys = match &config.read_database {
            None => None,
            Some(read) => {
                // Standbys may be unreachable while the primary is not.
                let settings = PoolSettings {
                    pacer: Pacer::default(),
                    ..settings.clone()
                };
                let pool = pool(parse_url(read.url.expose())?, &settings)?;
                Some(Standbys::new(pool, *read.max_lag))
            }
        };
        let requests = pool(target.clone(), &settings)?;
        let connection = Connection::take(&requests, SETTINGS_TIMEOUT).await?;
        let deployment = deployment::claim(&connection, config.deployment()).await?;
        Ok(Prepared {
            standbys,
            deployment,
            pool: requests,
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

/// Returns the maximum number of connections of a replica to the primary.
#[must_use]
pub fn connections_of_replica(config: &Config) -> usize {
    /// The session that listens for changes of keys and grants.
    const NOTIFICATIONS: usize = 1;
    let settings = config.pool_settings();
    let log = match config.options.request_log {
        Switch::On => request_log::pool_settings(&settings).size,
        Switch::Off => 0,
    };
    settings.size + ADMISSION_POOL_SIZE + recorder::pool_settings(&settings).size + log + NOTIFICATIONS
}

/// The pages and routes that are served in addition to the API.
pub struct Extensions {
    /// Creates the pages of the public listener.
    pub pages: MakePages,
    /// Creates the routes of the inspectors' listener.
    pub inspector_routes: Option<MakeInspectorRoutes>,
}

/// Returns the address of the service's own public pages, with the placeholder for the slug, if it fits a QR code.
fn own_report_pages(public_url: &str) -> Option<String> {
    let address = format!(
        "{}{REPORT_PAGES}{}",
        public_url.trim_end_matches('/'),
        report_link::SLUG
    );
    report_link::problem(&address).is_none().then_some(address)
}

/// Starts the server on an open database.
///
/// # Errors
/// If the address is already in use, or the storage cannot be used.
pub async fn serve(
    config: &Config,
    database: &OpenDatabase,
    master_key: MasterKey,
    extensions: Extensions,
) -> Result<RunningServer, StartupError> {
    let client = Connection::take(&database.pool, SETTINGS_TIMEOUT).await?;
    let own_pages = config.options.public_url.as_deref().and_then(own_report_pages);
    let address = match (&config.options.public_report_url, own_pages) {
        (Some(address), _) => {
            let is_changed = public_reports::set_address(&client, address.address()).await?;
            is_changed.then(|| address.address().unwrap_or("off").to_owned())
        }
        (None, Some(own)) => {
            let is_changed = public_reports::set_default_address(&client, &own).await?;
            is_changed.then_some(own)
        }
        (None, None) => None,
    };
    drop(client);
    if let Some(public_report_url) = address {
        tracing::info!(
            public_report_url,
            "the URL of public reports changed; their PDFs will be rendered again"
        );
    }
    let links = master_key.derive(purpose::LINKS);
    let storage_config = config.clone();
    let parts = ServerParts {
        listen: config.options.listen,
        internal_listen: config.options.internal_listen.address(),
        inspectors_listen: config.options.inspectors_listen.address(),
        public_url: config.options.public_url.clone(),
        tls: config.tls.clone(),
        environment: config.options.environment,
        pool: database.pool.clone(),
        admission_pool: database.admission_pool.clone(),
        recorder_pool: database.recorder_pool.clone(),
        database: database.target.clone(),
        request_log: match config.options.request_log {
            Switch::On => Some((database.log_pool.clone(), config.options.request_log_days)),
            Switch::Off => None,
        },
        standbys: database.standbys.clone(),
        storage: Box::new(move |public_url| storage_config.open_storage(public_url, links)),
        pages: extensions.pages,
        inspector_routes: extensions.inspector_routes,
        master_key,
        ip_limit: config.options.ip_limit,
        trusted_proxies: TrustedProxies(config.options.trusted_proxies.clone().unwrap_or_default()),
        body_timeout: *config.options.body_timeout,
        request_timeout: *config.options.request_timeout,
        traces: config.traces.clone(),
        #[cfg(feature = "render")]
        renderers: config.options.renderers,
    };
    let running = start(parts).await?;
    tracing::info!(
        address = %running.address,
        internal_address = running.internal_address.map(tracing::field::display),
        inspectors_address = running.inspectors_address.map(tracing::field::display),
        public_url = running.public_url,
        environment = match config.options.environment { Environment::Test => "test", Environment::Live => "live" },
        renderers = config.options.renderers,
        "serving"
    );
    if config.options.renderers == 0 {
        let reason = if cfg!(feature = "render") {
            "--renderers is 0"
        } else {
            "built without the feature `render`"
        };
        tracing::info!(reason, "this replica does not render PDFs");
    }
    Ok(running)
}

#[cfg(test)]
mod tests {
    use super::own_report_pages;

    /// REP-20
    #[test]
    fn the_public_pages_are_below_the_public_url() {
        let own = |url: &str| own_report_pages(url);
        let expected = Some("https://api.example.org/r/{slug}".to_owned());
        assert_eq!(own("https://api.example.org"), expected);
        assert_eq!(own("https://api.example.org/"), expected);
        assert_eq!(own(&format!("https://{}.example", "x".repeat(200))), None);
    }
}
