//! The database connection of operator commands.

use std::time::Duration;

use deadpool_postgres::Pool;
use partner_api_store::connection::Connection;
use partner_api_store::deployment;
use partner_api_store::migrate;
use partner_api_store::pool::{PoolSettings, pool};

use super::StartupError;
use super::cluster::Cluster;
use crate::config::Config;

/// The number of connections of an operator command, and the timeout to get one.
const COMMAND_POOL_SIZE: usize = 2;
const COMMAND_WAIT: Duration = Duration::from_secs(10);

/// The database of an operator command. A private cluster is started for the command if it is not running.
#[derive(Debug)]
pub struct CommandDatabase {
    cluster: Cluster,
    /// The connection settings.
    pub target: tokio_postgres::Config,
    /// Connections for the command.
    pub pool: Pool,
}

impl CommandDatabase {
    /// Opens the database and checks that its schema matches this program and that it belongs to the configured deployment.
    ///
    /// # Errors
    /// If there is no database, its schema is older or newer, or it belongs to another deployment.
    pub async fn open(config: &Config) -> Result<Self, StartupError> {
        let database = Self::open_unchecked(config).await?;
        match database.check(config).await {
            Ok(()) => Ok(database),
            Err(error) => {
                database.close().await;
                Err(error)
            }
        }
    }

    async fn check(&self, config: &Config) -> Result<(), StartupError> {
        let migrations = migrate::status(&self.target).await;
        migrations
            .and_then(migrate::ensure_current)
            .map_err(StartupError::Schema)?;
        let connection = Connection::take(&self.pool, COMMAND_WAIT).await?;
        deployment::verify(&connection, config.deployment()).await?;
        Ok(())
    }

    /// Opens the database without checking its schema and deployment.
    ///
    /// # Errors
    /// If there is no database.
    pub async fn open_unchecked(config: &Config) -> Result<Self, StartupError> {
        let (cluster, target) = match Cluster::running(config)? {
            Some(target) => (Cluster::external(), target),
            None => Cluster::of(config).await?,
        };
        let settings = PoolSettings {
            size: COMMAND_POOL_SIZE,
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
