//! The database connection of operator commands.

use std::time::Duration;

use deadpool_postgres::Pool;
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
    /// Opens the database and checks that its schema matches this program.
    ///
    /// # Errors
    /// If there is no database, or its schema is older or newer.
    pub async fn open(config: &Config) -> Result<Self, StartupError> {
        let database = Self::open_unchecked(config).await?;
        match migrate::status(&database.target)
            .await
            .and_then(migrate::ensure_current)
        {
            Ok(()) => Ok(database),
            Err(error) => {
                database.close().await;
                Err(StartupError::Schema(error))
            }
        }
    }

    /// Opens the database without checking its schema.
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
