//! The private cluster, started where no database is named.

#[cfg(feature = "embedded-postgres")]
use std::path::PathBuf;

#[cfg(feature = "embedded-postgres")]
use embedded_postgres::{EmbeddedPostgres, EmbeddedPostgresError, Options};

use super::StartupError;
use crate::config::{Config, Database};
use crate::db::pool::parse_url;

/// The private database's and its owner's name.
#[cfg(feature = "embedded-postgres")]
const APPLICATION: &str = "partner-api";

/// Where the private cluster is.
#[cfg(feature = "embedded-postgres")]
fn private_folder(config: &Config) -> PathBuf {
    config.data_dir.join("postgres")
}

/// The options with which a machine without PostgreSQL's programs will do.
#[cfg(feature = "embedded-postgres")]
pub(super) fn choices(error: &EmbeddedPostgresError) -> &'static str {
    match error {
        EmbeddedPostgresError::NotInstalled { .. } => " (--postgres-bin), or a database of your own (--database-url)",
        _ => "",
    }
}

/// The private cluster, where it is one.
#[derive(Debug)]
pub(super) struct Cluster {
    #[cfg(feature = "embedded-postgres")]
    private: Option<EmbeddedPostgres>,
}

impl Cluster {
    /// Starts it if there is no database URL. Returns how to connect to the database, too.
    pub(super) async fn of(config: &Config) -> Result<(Self, tokio_postgres::Config), StartupError> {
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
    pub(super) fn elsewhere() -> Self {
        Self {
            #[cfg(feature = "embedded-postgres")]
            private: None,
        }
    }

    /// How to connect to the private cluster, if a process runs it.
    #[cfg(feature = "embedded-postgres")]
    pub(super) fn running(config: &Config) -> Result<Option<tokio_postgres::Config>, StartupError> {
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
