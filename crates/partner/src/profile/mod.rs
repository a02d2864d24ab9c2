//! Selection of the service and the key from flags, the environment, a sandbox.json or a profile of the configuration.

mod file;
mod sandbox;
mod secret;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use partner_api_client::{Client, Connector, KeyId, Pause, RetryPolicy, Secret};

use crate::failure::Failure;
use file::Config;
pub(crate) use file::{NewProfile, add, list};
pub(crate) use sandbox::OpenReport;
use secret::Source;

/// The options that all commands share: the service, the key, and the output format.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Common options")]
pub struct Connect {
    /// A profile of the configuration [default: PARTNER_PROFILE, then the default in the file]
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "sandbox")]
    pub profile: Option<String>,
    /// A sandbox.json; selects its partner `alpha` unless --as names another
    #[arg(long, global = true, value_name = "FILE")]
    pub sandbox: Option<PathBuf>,
    /// The partner of the sandbox
    #[arg(long = "as", global = true, value_name = "PARTNER", requires = "sandbox")]
    pub partner: Option<String>,
    /// The service's URL, without /api/v1/partner [env: PARTNER_BASE_URL]
    #[arg(long, global = true, value_name = "URL")]
    pub base_url: Option<String>,
    /// The key's public ID [env: PARTNER_KEY_ID]
    #[arg(long, global = true, value_name = "ID")]
    pub key_id: Option<String>,
    /// A file with the secret, readable only by its owner [env: PARTNER_SECRET_FILE, or the secret itself in PARTNER_SECRET]
    #[arg(long, global = true, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// The configuration file [env: PARTNER_CONFIG] [default: ~/.config/partner/config.toml]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long, global = true)]
    pub json: bool,
}

/// A service and a key. Its `Debug` output does not contain the secret.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) base_url: String,
    pub(crate) key_id: KeyId,
    pub(crate) secret: Secret,
    /// An open report for measurements, from a sandbox.json.
    pub(crate) open_report: Option<OpenReport>,
}

impl Account {
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        self.client_with(RetryPolicy::default())
    }

    pub(crate) fn client_with(&self, retry: RetryPolicy) -> Result<Client, Failure> {
        let connector = Connector::new(&self.base_url, self.key_id.as_str(), self.secret.expose())?;
        Ok(connector.retry(retry).on_pause(print_pause).connect()?)
    }
}

/// Tells the user why nothing happens. Short pauses are not worth a line.
pub(crate) fn print_pause(pause: &Pause) {
    if pause.duration >= Duration::from_secs(1) {
        eprintln!("{}; waiting {} s", pause.reason, pause.duration.as_secs());
    }
}

/// The account's settings in one source: a sandbox.json, a profile, or the environment. The secret is not read yet.
#[derive(Default)]
struct PartialAccount {
    base_url: Option<String>,
    key_id: Option<String>,
    secret: Option<Source>,
    open_report: Option<OpenReport>,
}

impl Connect {
    /// Returns a client of the account.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        self.account()?.client()
    }

    /// Returns the account. Flags have precedence over the selected sandbox.json or profile. If none is selected, the
    /// environment is used, then the default profile.
    pub(crate) fn account(&self) -> Result<Account, Failure> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let named = self.profile.clone().or_else(|| variable("PARTNER_PROFILE"));
        let found = match (&self.sandbox, &named) {
            (Some(path), _) => sandbox::read(path, self.partner.as_deref().unwrap_or("alpha"))?,
            (None, Some(name)) => self.config()?.profile(Some(name))?,
            (None, None) => {
                let from_environment = PartialAccount {
                    base_url: variable("PARTNER_BASE_URL"),
                    key_id: variable("PARTNER_KEY_ID"),
                    secret: variable("PARTNER_SECRET_FILE")
                        .map(|path| Source::File(path.into()))
                        .or_else(|| variable("PARTNER_SECRET").map(|_| Source::Variable("PARTNER_SECRET".to_owned()))),
                    open_report: None,
                };
                let has_address = from_environment.base_url.is_some() || self.base_url.is_some();
                let has_key = from_environment.key_id.is_some() || self.key_id.is_some();
                let has_secret = from_environment.secret.is_some() || self.secret_file.is_some();
                if has_address && has_key && has_secret {
                    from_environment
                } else {
                    self.config()?.profile(None)?
                }
            }
        };
        let missing = |what: &str| {
            Failure::Usage(format!(
                "{what} is missing; select a profile (partner profile add), pass --sandbox FILE, or set PARTNER_BASE_URL, \
                 PARTNER_KEY_ID and PARTNER_SECRET"
            ))
        };
        let base_url = self
            .base_url
            .clone()
            .or(found.base_url)
            .ok_or_else(|| missing("the service's URL"))?;
        let key_id = self
            .key_id
            .clone()
            .or(found.key_id)
            .ok_or_else(|| missing("the key ID"))?;
        let source = self.secret_file.clone().map(Source::File).or(found.secret);
        Ok(Account {
            base_url: base_url.trim_end_matches('/').to_owned(),
            key_id: key_id
                .parse()
                .map_err(|error| Failure::Usage(format!("{key_id}: {error}")))?,
            secret: source.ok_or_else(|| missing("the secret"))?.open()?,
            open_report: found.open_report,
        })
    }

    pub(crate) fn config(&self) -> Result<Config, Failure> {
        Config::read(file::path(self.config.as_deref())?)
    }
}
