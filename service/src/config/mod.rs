//! The configuration: flags over environment over TOML file over defaults, resolved once into one [`Config`].

use std::{
    env, fs, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use ipnet::IpNet;
use partner_api_signing::{Environment, KeyId};
use serde::{Serialize, Serializer};
use thiserror::Error;
use url::Url;

mod args;
mod choices;
mod layer;
#[cfg(test)]
mod tests;
mod types;

pub use args::ServeArgs;
pub use choices::{ReadDatabase, StorageChoice};
pub use layer::Layer;
pub use types::{Hidden, MaybeListen, PublicReportUrl, Span, Switch};

use crate::{
    db::pool::{self, PoolSettings},
    db::standby::SMALLEST_LAG,
    logging::{self, LogFormat},
    secrets::{Derived, MASTER_KEY_VARIABLE, MasterKey, MasterKeyError},
    storage::{Storage, StorageError},
    tls::TlsFiles,
    traces,
};

/// Where the name of the configuration file may stand.
const CONFIG_VARIABLE: &str = "PARTNER_API_CONFIG";
/// The largest pool: beyond it, Postgres itself is the bottleneck.
const LARGEST_POOL: usize = 1000;
/// Where metrics and readiness are read, unless told.
const INTERNAL_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);
/// Reports that are rendered at the same time, unless told.
const RENDERERS: usize = if cfg!(feature = "render") { 1 } else { 0 };

/// Days that the request log is kept (SVC-8), unless told, and at most: each is a table.
const REQUEST_LOG_DAYS: u32 = 90;
const MOST_REQUEST_LOG_DAYS: u32 = 3650;

/// What is wrong with the configuration.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration file {path}: {source}")]
    File {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The file says something that is not understood.
    #[error("the configuration file {path}, {reason}")]
    Toml {
        /// The file.
        path: String,
        /// The line and what is wrong there.
        reason: String,
    },
    /// An environment variable's value cannot be used.
    #[error("the environment variable {name}: {reason}")]
    Variable {
        /// The variable.
        name: String,
        /// What is wrong with its value.
        reason: String,
    },
    /// An option's value cannot be used, wherever it came from.
    #[error("{option}: {reason}")]
    Option {
        /// The option, as a flag.
        option: &'static str,
        /// What is wrong.
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

/// Which database is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Database {
    /// A private cluster in the data folder.
    Embedded {
        /// The folder with the server programs; none: searched.
        postgres_bin: Option<PathBuf>,
    },
    /// The one with this URL.
    Url(Hidden),
}

/// Where the master key comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MasterKeySource {
    /// Given in the environment.
    Given(Hidden),
    /// In a file.
    File(PathBuf),
    /// In a file that is made if it does not exist: for a sandbox.
    FileOrNew(PathBuf),
}

/// The whole configuration, resolved and checked. Printing or serialising it shows no secret.
#[derive(Clone, Debug, Serialize)]
pub struct Config {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Where metrics and readiness are read.
    pub internal_listen: MaybeListen,
    /// The URL under which partners reach the service, without a slash at its end; none: the address listened on.
    pub public_url: Option<String>,
    /// The address of reports' public pages; none: what the database has stays.
    pub public_report_url: Option<PublicReportUrl>,
    /// The certificate for TLS and its key; none: HTTP without TLS.
    pub tls: Option<TlsFiles>,
    /// The deployment's environment.
    #[serde(serialize_with = "as_text")]
    pub environment: Environment,
    /// What new key ids begin with.
    pub key_prefix: String,
    /// The database.
    pub database: Database,
    /// The standbys that reads go to; none: they go to the database.
    pub read_database: Option<ReadDatabase>,
    /// The folder for what is kept on this machine.
    pub data_dir: PathBuf,
    /// Database connections for requests.
    pub pool_size: usize,
    /// How long a request waits for one.
    pub pool_wait: Span,
    /// How long Postgres works on one statement.
    pub statement_timeout: Span,
    /// Requests per minute and address; 0 is no limit.
    pub ip_limit: u32,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The time in which a body must have arrived.
    pub body_timeout: Span,
    /// The time in which a request must have been answered.
    pub request_timeout: Span,
    /// The time that running requests are given when the service stops.
    pub shutdown_deadline: Span,
    /// The time before that in which it says that it is not ready, and serves on; none: it stops at once.
    pub drain: Option<Span>,
    /// How many reports are rendered at the same time; 0 leaves that to other replicas.
    pub renderers: usize,
    /// Where photos and PDFs are kept.
    pub storage: StorageChoice,
    /// Where the master key comes from; none was given, which only `migrate` does without.
    pub master_key: Option<MasterKeySource>,
    /// A second master key that is accepted while one takes the other's place.
    pub other_master_key_file: Option<PathBuf>,
    /// The log's level.
    pub log_level: String,
    /// The log's format.
    pub log_format: LogFormat,
    /// Whether a row of each request is kept.
    pub request_log: Switch,
    /// How many days before today those rows are kept.
    pub request_log_days: u32,
    /// Where traces go; none: nowhere.
    pub traces: Option<traces::Settings>,
}

impl Config {
    /// The configuration of `serve` and `migrate`, from the flags, this process's environment and the file.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn load(args: &ServeArgs) -> Result<Self, ConfigError> {
        let variable = |name: &str| env::var(name).ok();
        let path = args
            .config
            .clone()
            .or_else(|| env::var_os(CONFIG_VARIABLE).map(PathBuf::from));
        let file = path.as_deref().map(read_file).transpose()?.unwrap_or_default();
        Self::resolve(args.flags.clone(), Layer::from_environment(variable)?, file)
    }

    /// The configuration from its three layers.
    ///
    /// # Errors
    /// An option's value cannot be used.
    pub fn resolve(flags: Layer, environment: Layer, file: Layer) -> Result<Self, ConfigError> {
        for (option, url) in [
            ("--database-url", &flags.database_url),
            ("--read-database-url", &flags.read_database_url),
        ] {
            if let Some(url) = url
                && pool::parse_url(url.expose()).is_ok_and(|config| config.get_password().is_some())
            {
                let variable = layer::variable_name(&option[2..].replace('-', "_"));
                let reason = format!(
                    "a password in a flag is seen by everybody who lists processes; put the URL into {variable} or the \
                     configuration file"
                );
                return Err(ConfigError::option(option, reason));
            }
        }
        // The key itself and the key's file are one option: the layer decides, and within the environment the key.
        let master_key = flags
            .master_key_file
            .clone()
            .map(MasterKeySource::File)
            .or_else(|| environment.master_key.clone().map(MasterKeySource::Given));
        let all = flags.over(environment).over(file);
        let data_dir = all.data_dir.clone().unwrap_or_else(|| "data".into());
        let config = Self {
            listen: all.listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 8080).into()),
            internal_listen: all.internal_listen.unwrap_or(MaybeListen::At(INTERNAL_LISTEN)),
            public_url: all.public_url.as_ref().map(|url| url.trim_end_matches('/').to_owned()),
            public_report_url: all.public_report_url.clone(),
            tls: choices::tls(&all)?,
            environment: all.environment.unwrap_or(Environment::Test),
            key_prefix: all.key_prefix.clone().unwrap_or_else(|| "vip".to_owned()),
            database: match &all.database_url {
                Some(url) => Database::Url(url.clone()),
                None => Database::Embedded {
                    postgres_bin: all.postgres_bin.clone(),
                },
            },
            read_database: choices::read_database(&all)?,
            pool_size: all.pool_size.unwrap_or(16),
            pool_wait: all.pool_wait.unwrap_or(Span::millis(250)),
            statement_timeout: all.statement_timeout.unwrap_or(Span::secs(5)),
            ip_limit: all.ip_limit.unwrap_or(1200),
            trusted_proxies: all.trusted_proxies.clone().unwrap_or_default(),
            body_timeout: all.body_timeout.unwrap_or(Span::secs(30)),
            request_timeout: all.request_timeout.unwrap_or(Span::secs(15)),
            shutdown_deadline: all.shutdown_deadline.unwrap_or(Span::secs(20)),
            drain: all.drain,
            renderers: all.renderers.unwrap_or(RENDERERS),
            storage: choices::storage(&all, &data_dir)?,
            master_key: master_key.or_else(|| all.master_key_file.clone().map(MasterKeySource::File)),
            other_master_key_file: all.other_master_key_file.clone(),
            log_level: all.log_level.clone().unwrap_or_else(|| "info".to_owned()),
            log_format: all.log_format.unwrap_or_default(),
            request_log: all.request_log.unwrap_or(Switch::On),
            request_log_days: all.request_log_days.unwrap_or(REQUEST_LOG_DAYS),
            traces: choices::traces(&all)?,
            data_dir,
        };
        config.check()?;
        Ok(config)
    }

    /// The pool's settings.
    #[must_use]
    pub fn pool_settings(&self) -> PoolSettings {
        PoolSettings {
            size: self.pool_size,
            wait: *self.pool_wait,
            statement_timeout: *self.statement_timeout,
            ..PoolSettings::default()
        }
    }

    /// The master key.
    ///
    /// # Errors
    /// There is none, or it is malformed.
    pub fn master_key(&self) -> Result<MasterKey, MasterKeyError> {
        let key = match &self.master_key {
            Some(MasterKeySource::Given(hex)) => MasterKey::from_hex(hex.expose(), MASTER_KEY_VARIABLE),
            Some(MasterKeySource::File(path)) => MasterKey::from_file(path),
            Some(MasterKeySource::FileOrNew(path)) => MasterKey::from_file_or_new(path),
            None => Err(MasterKeyError::Missing),
        }?;
        match &self.other_master_key_file {
            Some(path) => Ok(key.accepting(&MasterKey::from_file(path)?)),
            None => Ok(key),
        }
    }

    /// The object store. `public_url` is what the links of a folder begin with, `link_key` what signs them.
    ///
    /// # Errors
    /// It cannot be set up.
    pub fn open_storage(&self, public_url: &str, link_key: Derived) -> Result<Storage, StorageError> {
        match &self.storage {
            StorageChoice::Folder(folder) => Storage::folder(folder, public_url, link_key),
            StorageChoice::S3(settings) => Storage::s3(settings),
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        if let Some(text) = &self.public_url {
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
        } else if self.listen.ip().is_unspecified() {
            let reason = format!("needed, for {} is no address that partners could reach", self.listen);
            return Err(ConfigError::option("--public-url", reason));
        }
        KeyId::generate(&self.key_prefix, self.environment, &Default::default())
            .map_err(|error| ConfigError::option("--key-prefix", error))?;
        if let Database::Url(url) = &self.database {
            pool::parse_url(url.expose()).map_err(|error| ConfigError::option("--database-url", error))?;
        }
        if let Some(read) = &self.read_database {
            pool::parse_url(read.url.expose()).map_err(|error| ConfigError::option("--read-database-url", error))?;
            if *read.max_lag < SMALLEST_LAG {
                let reason = format!("expected {SMALLEST_LAG:?} or more");
                return Err(ConfigError::option("--read-max-lag", reason));
            }
        }
        if !(1..=LARGEST_POOL).contains(&self.pool_size) {
            return Err(ConfigError::option(
                "--pool-size",
                format!("expected 1 to {LARGEST_POOL}"),
            ));
        }
        if self.renderers > RENDERERS && !cfg!(feature = "render") {
            let reason = "this program was built without rendering (feature `render`): leave it to other replicas";
            return Err(ConfigError::option("--renderers", reason));
        }
        if !(1..=MOST_REQUEST_LOG_DAYS).contains(&self.request_log_days) {
            return Err(ConfigError::option(
                "--request-log-days",
                format!("expected 1 to {MOST_REQUEST_LOG_DAYS}"),
            ));
        }
        logging::filter(&self.log_level).map_err(|error| ConfigError::option("--log-level", error))?;
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

fn as_text<S: Serializer>(environment: &Environment, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(environment.as_str())
}
