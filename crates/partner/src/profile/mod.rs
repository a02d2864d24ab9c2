//! Which service, with which key: from flags, the environment, a sandbox's file or the profiles of the configuration.

mod file;
mod sandbox;
mod secret;

use std::path::PathBuf;

use clap::Args;
use partner_api_client::{Client, Connector, KeyId, RetryPolicy, Secret};

use crate::failure::Failure;
use file::Config;
pub(crate) use file::{NewProfile, add, list};
pub(crate) use sandbox::OpenReport;
use secret::Source;

/// Which service, with which key, and how to print.
#[derive(Args, Clone, Debug, Default)]
pub struct Connect {
    /// A profile of the configuration [default: that of PARTNER_PROFILE, else the file's default]
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "sandbox")]
    pub profile: Option<String>,
    /// A sandbox's sandbox.json, with its partner `alpha` unless --as says another
    #[arg(long, global = true, value_name = "FILE")]
    pub sandbox: Option<PathBuf>,
    /// Of the sandbox, the partner of this name
    #[arg(long = "as", global = true, value_name = "PARTNER", requires = "sandbox")]
    pub partner: Option<String>,
    /// Where the service is, without /api/v1/partner [env: PARTNER_BASE_URL]
    #[arg(long, global = true, value_name = "URL")]
    pub base_url: Option<String>,
    /// The key's public id [env: PARTNER_KEY_ID]
    #[arg(long, global = true, value_name = "ID")]
    pub key_id: Option<String>,
    /// A file with the key's secret, which its owner alone can read [env: PARTNER_SECRET_FILE, or PARTNER_SECRET itself]
    #[arg(long, global = true, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// The configuration [env: PARTNER_CONFIG] [default: ~/.config/partner/config.toml]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long, global = true)]
    pub json: bool,
}

/// A service and a key. `Debug` shows no secret.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) base_url: String,
    pub(crate) key_id: KeyId,
    pub(crate) secret: Secret,
    /// What a sandbox's file says of a report that measurements reach.
    pub(crate) open_report: Option<OpenReport>,
}

impl Account {
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        self.client_with(RetryPolicy::default())
    }

    pub(crate) fn client_with(&self, retry: RetryPolicy) -> Result<Client, Failure> {
        let connector = Connector::new(&self.base_url, self.key_id.as_str(), self.secret.expose())?;
        Ok(connector.retry(retry).connect()?)
    }
}

/// What is known before the secret is opened; each part by the first who has it.
#[derive(Default)]
struct Found {
    base_url: Option<String>,
    key_id: Option<String>,
    secret: Option<Source>,
    open_report: Option<OpenReport>,
}

impl Connect {
    /// The client of the account.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        self.account()?.client()
    }

    /// The account: flags first, then the sandbox's file or the profile that was asked for, else the environment, else the
    /// configuration's default profile.
    pub(crate) fn account(&self) -> Result<Account, Failure> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let named = self.profile.clone().or_else(|| variable("PARTNER_PROFILE"));
        let found = match (&self.sandbox, &named) {
            (Some(path), _) => sandbox::read(path, self.partner.as_deref().unwrap_or("alpha"))?,
            (None, Some(name)) => self.config()?.profile(Some(name))?,
            (None, None) => {
                let from_environment = Found {
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
                "no {what} is known: name a profile (partner profile add), give --sandbox FILE, or set PARTNER_BASE_URL, \
                 PARTNER_KEY_ID and PARTNER_SECRET"
            ))
        };
        let base_url = self
            .base_url
            .clone()
            .or(found.base_url)
            .ok_or_else(|| missing("address"))?;
        let key_id = self.key_id.clone().or(found.key_id).ok_or_else(|| missing("key id"))?;
        let source = self.secret_file.clone().map(Source::File).or(found.secret);
        Ok(Account {
            base_url: base_url.trim_end_matches('/').to_owned(),
            key_id: key_id
                .parse()
                .map_err(|error| Failure::Usage(format!("{key_id}: {error}")))?,
            secret: source.ok_or_else(|| missing("secret"))?.open()?,
            open_report: found.open_report,
        })
    }

    pub(crate) fn config(&self) -> Result<Config, Failure> {
        Config::read(file::path(self.config.as_deref())?)
    }
}
