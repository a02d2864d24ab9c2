//! The private cluster, used when no database URL is configured.

#[cfg(feature = "embedded-postgres")]
use std::path::PathBuf;

#[cfg(feature = "embedded-postgres")]
use embedded_postgres::{EmbeddedPostgres, EmbeddedPostgresError, Options};
use partner_api_store::pool::parse_url;

use super::StartupError;
use crate::config::{Config, Database};

/// The name of the private database and its owner.
#[cfg(feature = "embedded-postgres")]
const APPLICATION: &str = "partner-api";

/// Returns the folder of the private cluster.
#[cfg(feature = "embedded-postgres")]
fn private_folder(config: &Config) -> PathBuf {
    config.options.data_dir.join("postgres")
}

/// Returns the options that help on a machine without PostgreSQL.
#[cfg(feature = "embedded-postgres")]
pub(super) fn remedy(error: &EmbeddedPostgresError) -> &'static str {
    match error {
        EmbeddedPostgresError::NotInstalled { .. } => " (--postgres-bin), or a database of your own (--database-url)",
        _ => "",
    }
}

/// The private cluster, if this process runs one.
#[derive(Debug)]
pub(super) struct Cluster {
    #[cfg(feature = "embedded-postgres")]
    private: Option<EmbeddedPostgres>,
}

impl Cluster {
    /// Starts the private cluster if there is no database URL. Also returns the connection settings.
    pub(super) async fn of(config: &Config) -> Result<(Self, tokio_postgres::Config), StartupError> {
        match &config.database {
            Database::Url(url) => Ok((Self::external(), parse_url(url.expose())?)),
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

    /// Returns a database that this process does not run.
    pub(super) fn external() -> Self {
        Self {
            #[cfg(feature = "embedded-postgres")]
            private: None,
        }
    }

    /// Returns the connection settings of the private cluster, if another process runs it.
    #[cfg(feature = "embedded-postgres")]
    pub(super) fn running(config: &Config) -> Result<Option<tokio_postgres::Config>, StartupError> {
        match &config.database {
            Database::Url(_) => Ok(None),
            Database::Embedded { .. } => Ok(EmbeddedPostgres::find_running(
                &private_folder(config),
                &Options::of(APPLICATION),
            )?),
        }
    }

    #[cfg(not(feature = "embedded-postgres"))]
    #[allow(clippy::unnecessary_wraps, reason = "the signature with the feature")]
    pub(super) fn running(_: &Config) -> Result<Option<tokio_postgres::Config>, StartupError> {
        Ok(None)
    }

    pub(super) async fn stop(self) {
        #[cfg(feature = "embedded-postgres")]
        if let Some(private) = self.private {
            private.stop().await;
        }
    }
}
