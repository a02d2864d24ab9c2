//! The database of an operator's command.

use std::time::Duration;

use deadpool_postgres::Pool;

use super::StartupError;
use super::cluster::Cluster;
use crate::config::Config;
use crate::db::migrate;
use crate::db::pool::{PoolSettings, pool};

/// Connections for an operator's command, and how long it waits for one.
const COMMAND_POOL: usize = 2;
const COMMAND_WAIT: Duration = Duration::from_secs(10);

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
