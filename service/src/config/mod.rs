//! The configuration. Flags override environment variables, which override the TOML file, which overrides the defaults. All sources
//! are resolved once, into one [`Config`].

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use bounded_listener::tls::TlsFiles;
use partner_api_signing::KeyId;
use partner_api_store::deployment::Configured;
use partner_api_store::pool::{self, PoolSettings};
use partner_api_store::secrets::{Derived, MASTER_KEY_VARIABLE, MasterKey, MasterKeyError};
use partner_api_store::standby::MIN_LAG_LIMIT;
use thiserror::Error;
use url::Url;

mod choices;
mod options;
mod sources;
#[cfg(test)]
mod tests;
mod types;

pub use choices::{ReadDatabase, StorageChoice};
pub use options::{Layer, Options};
pub use sources::ServeArgs;
pub use types::{Hidden, MaybeListen, PublicReportUrl, Span, Switch};

use crate::{
    logging,
    storage::{Storage, StorageError},
    traces,
};

/// The environment variable that names the configuration file.
const CONFIG_VARIABLE: &str = "PARTNER_API_CONFIG";
/// The maximum size of the pool. Beyond it, PostgreSQL itself is the bottleneck.
const MAX_POOL_SIZE: usize = 1000;
/// The default number of reports that a replica renders in parallel.
const RENDERERS: usize = if cfg!(feature = "render") { 1 } else { 0 };

/// The maximum retention of the request log in days (SVC-8). Each day is a partition.
const MAX_REQUEST_LOG_DAYS: u32 = 3650;

/// The maximum retention of reports and of operators' changes in years, and of measurements in no report in days (OPS-11).
const MAX_RETENTION_YEARS: u32 = 100;
const MAX_UNUSED_MEASUREMENT_DAYS: u32 = 3650;

/// An error in the configuration.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("failed to read the configuration file {path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// The file is not valid.
    #[error("configuration file {path}, {reason}")]
    Toml {
        /// The file.
        path: String,
        /// The line and its error.
        reason: String,
    },
    /// An environment variable's value is not valid.
    #[error("environment variable {name}: {reason}")]
    Variable {
        /// The variable.
        name: String,
        /// The reason, without the value.
        reason: String,
    },
    /// An option's value is not valid, whatever its source.
    #[error("{option}: {reason}")]
    Option {
        /// The name of the option as a flag.
        option: &'static str,
        /// The reason.
        reason: String,
    },
}

impl ConfigError {
    fn option(option: &'static str, reason: impl ToString) -> Self {
        Self::Option {
            option,
            reason: reason.to_string(),
        }
    }
}

/// The database of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Database {
    /// A private cluster in the data folder.
    Embedded {
        /// The folder with the server programs; `None` searches for them.
        postgres_bin: Option<PathBuf>,
    },
    /// The database at this URL.
    Url(Hidden),
}

/// The source of the master key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MasterKeySource {
    /// Given in the environment.
    Given(Hidden),
    /// In a file.
    File(PathBuf),
    /// In a file that is created if it does not exist, for sandboxes.
    FileOrNew(PathBuf),
}

/// The whole configuration, resolved and checked. Its debug output shows no secret.
#[derive(Clone, Debug)]
pub struct Config {
    /// All options with their defaults applied.
    pub options: Options,
    /// The database.
    pub database: Database,
    /// The standbys that serve reads.
    pub read_database: Option<ReadDatabase>,
    /// The certificate and key; `None` serves HTTP without TLS.
    pub tls: Option<TlsFiles>,
    /// The object store for photos and PDFs.
    pub storage: StorageChoice,
    /// The source of the master key; only `migrate` works without one.
    pub master_key: Option<MasterKeySource>,
    /// The collector that receives traces; `None` sends none.
    pub traces: Option<traces::Settings>,
}

impl Config {
    /// Reads the configuration of `serve` and `migrate` from the flags, this process's environment and the file.
    ///
    /// # Errors
    /// If a setting is invalid; the error names its source.
    pub fn load(args: &ServeArgs) -> Result<Self, ConfigError> {
        let variable = |name: &str| env::var(name).ok();
        let path = args
            .config
            .clone()
            .or_else(|| env::var_os(CONFIG_VARIABLE).map(PathBuf::from));
        let file = path.as_deref().map(read_file).transpose()?.unwrap_or_default();
        Self::resolve(args.flags.clone(), Layer::from_environment(variable)?, file)
    }

    /// Resolves the three sources: a flag overrides the environment, and the environment overrides the file.
    ///
    /// # Errors
    /// If an option's value is not valid.
    pub fn resolve(flags: Layer, environment: Layer, file: Layer) -> Result<Self, ConfigError> {
        for (option, url) in [
            ("--database-url", &flags.database_url),
            ("--read-database-url", &flags.read_database_url),
        ] {
            if let Some(url) = url
                && pool::parse_url(url.expose()).is_ok_and(|config| config.get_password().is_some())
            {
                let variable = sources::variable_name(&option[2..].replace('-', "_"));
                let reason = format!(
                    "other users can see a password in a flag by listing processes; put the URL into {variable} or the \
                     configuration file"
                );
                return Err(ConfigError::option(option, reason));
            }
        }
        // The key and its file count as one option. The first source that sets either of them is used. In the environment, the key
        // takes precedence.
        let master_key = flags
            .master_key_file
            .clone()
            .map(MasterKeySource::File)
            .or_else(|| environment.master_key.clone().map(MasterKeySource::Given));
        let given = flags.over(environment).over(file);
        let mut options = given.clone().with_defaults();
        if let Some(url) = &mut options.public_url {
            *url = url.trim_end_matches('/').to_owned();
        }
        let config = Self {
            database: match &options.database_url {
                Some(url) => Database::Url(url.clone()),
                None => Database::Embedded {
                    postgres_bin: options.postgres_bin.clone(),
                },
            },
            read_database: choices::read_database(&given, &options)?,
            tls: choices::tls(&options)?,
            storage: choices::storage(&options)?,
            master_key: master_key.or_else(|| options.master_key_file.clone().map(MasterKeySource::File)),
            traces: choices::traces(&given, &options)?,
            options,
        };
        config.check()?;
        Ok(config)
    }

    /// Returns the deployment that the database must belong to.
    #[must_use]
    pub fn deployment(&self) -> Configured {
        Configured {
            environment: self.options.environment,
            id: self.options.deployment,
        }
    }

    /// Returns the pool's settings.
    #[must_use]
    pub fn pool_settings(&self) -> PoolSettings {
        PoolSettings {
            size: self.options.pool_size,
            wait: *self.options.pool_wait,
            statement_timeout: *self.options.statement_timeout,
            ..PoolSettings::default()
        }
    }

    /// Reads the master key.
    ///
    /// # Errors
    /// If there is none, or it is malformed.
    pub fn master_key(&self) -> Result<MasterKey, MasterKeyError> {
        let key = match &self.master_key {
            Some(MasterKeySource::Given(hex)) => MasterKey::from_hex(hex.expose(), MASTER_KEY_VARIABLE),
            Some(MasterKeySource::File(path)) => MasterKey::from_file(path),
            Some(MasterKeySource::FileOrNew(path)) => MasterKey::from_file_or_new(path),
            None => Err(MasterKeyError::Missing),
        }?;
        match &self.options.other_master_key_file {
            Some(path) => Ok(key.accepting(&MasterKey::from_file(path)?)),
            None => Ok(key),
        }
    }

    /// Opens the object store. Links to files in a folder start with `public_url` and are signed with `link_key`.
    ///
    /// # Errors
    /// If the folder or the bucket's settings cannot be used.
    pub fn open_storage(&self, public_url: &str, link_key: Derived) -> Result<Storage, StorageError> {
        match &self.storage {
            StorageChoice::Folder(folder) => Storage::folder(folder, public_url, link_key),
            StorageChoice::S3(settings) => Storage::s3(settings),
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let options = &self.options;
        if let Some(text) = &options.public_url {
            let url: Url = text
                .parse()
                .map_err(|error| ConfigError::option("--public-url", error))?;
            let bare = url.query().is_none() && url.fragment().is_none() && url.host().is_some();
            if !matches!(url.scheme(), "http" | "https") || !bare {
                return Err(ConfigError::option(
                    "--public-url",
                    "expected a URL like https://api.example.org",
                ));
            }
        } else if options.listen.ip().is_unspecified() {
            let reason = format!("required, because partners cannot connect to {}", options.listen);
            return Err(ConfigError::option("--public-url", reason));
        }
        KeyId::generate(&options.key_prefix, options.environment, &Default::default())
            .map_err(|error| ConfigError::option("--key-prefix", error))?;
        if let Database::Url(url) = &self.database {
            pool::parse_url(url.expose()).map_err(|error| ConfigError::option("--database-url", error))?;
        }
        if let Some(read) = &self.read_database {
            pool::parse_url(read.url.expose()).map_err(|error| ConfigError::option("--read-database-url", error))?;
            if *read.max_lag < MIN_LAG_LIMIT {
                let reason = format!("expected {MIN_LAG_LIMIT:?} or more");
                return Err(ConfigError::option("--read-max-lag", reason));
            }
        }
        if !(1..=MAX_POOL_SIZE).contains(&options.pool_size) {
            return Err(ConfigError::option(
                "--pool-size",
                format!("expected 1 to {MAX_POOL_SIZE}"),
            ));
        }
        if options.renderers > RENDERERS && !cfg!(feature = "render") {
            let reason = "this program was built without rendering (feature `render`); leave it to other replicas";
            return Err(ConfigError::option("--renderers", reason));
        }
        if !(1..=MAX_REQUEST_LOG_DAYS).contains(&options.request_log_days) {
            return Err(ConfigError::option(
                "--request-log-days",
                format!("expected 1 to {MAX_REQUEST_LOG_DAYS}"),
            ));
        }
        for (name, value, max) in [
            ("--report-years", options.report_years, MAX_RETENTION_YEARS),
            ("--audit-years", options.audit_years, MAX_RETENTION_YEARS),
            (
                "--unused-measurement-days",
                options.unused_measurement_days,
                MAX_UNUSED_MEASUREMENT_DAYS,
            ),
        ] {
            if value.is_some_and(|value| !(1..=max).contains(&value)) {
                return Err(ConfigError::option(name, format!("expected 1 to {max}")));
            }
        }
        logging::filter(&options.log_level).map_err(|error| ConfigError::option("--log-level", error))?;
        Ok(())
    }
}

fn read_file(path: &Path) -> Result<Layer, ConfigError> {
    let shown = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|source| ConfigError::File {
        path: shown.clone(),
        source,
    })?;
    Layer::from_toml(&text).map_err(|reason| ConfigError::Toml { path: shown, reason })
}
