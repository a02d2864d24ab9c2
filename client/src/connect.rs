//! From an address, a key id and a secret to a client.

use std::time::Duration;

use partner_api_signing::{InvalidKeyId, InvalidSecret};
use url::Url;

use crate::generated::Client;
use crate::hooks::{Hooks, Observer};
use crate::retry::RetryPolicy;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client with the default [`RetryPolicy`], for the service at `base_url` (without `/api/v1/partner`).
///
/// # Errors
/// [`ConnectError`] for an address, a key id or a secret that cannot be one. Nothing is sent yet.
pub fn connect(base_url: &str, key_id: &str, secret: &str) -> Result<Client, ConnectError> {
    Connector::new(base_url, key_id, secret)?.connect()
}

/// Why no client could be made. It never repeats the secret.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The base address is not usable.
    #[error("the base address {0}")]
    BaseUrl(String),
    /// The key id is none.
    #[error(transparent)]
    KeyId(#[from] InvalidKeyId),
    /// The secret is none.
    #[error(transparent)]
    Secret(#[from] InvalidSecret),
    /// The HTTP client could not be set up.
    #[error("the HTTP client could not be set up: {0}")]
    Http(#[source] reqwest::Error),
}

/// [`connect`] with choices.
#[derive(Clone, Debug)]
pub struct Connector {
    base_url: String,
    hooks: Hooks,
    http: Option<reqwest::Client>,
}

impl Connector {
    /// For the service at `base_url`: `http` or `https`, a path of its own is allowed and is not signed.
    ///
    /// # Errors
    /// [`ConnectError`] for an address, a key id or a secret that cannot be one.
    pub fn new(base_url: &str, key_id: &str, secret: &str) -> Result<Self, ConnectError> {
        let url = Url::parse(base_url).map_err(|error| ConnectError::BaseUrl(format!("cannot be read: {error}")))?;
        let wrong = |reason: &str| Err(ConnectError::BaseUrl(reason.to_owned()));
        if !matches!(url.scheme(), "http" | "https") {
            return wrong("must begin with http:// or https://");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return wrong("must have no query and no fragment");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return wrong("must have no user and no password");
        }
        Ok(Self {
            base_url: url.as_str().trim_end_matches('/').to_owned(),
            hooks: Hooks::new(key_id.parse()?, secret.parse()?),
            http: None,
        })
    }

    /// How often and how long to retry.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.hooks = self.hooks.with_retry(policy);
        self
    }

    /// Who is told of every attempt.
    #[must_use]
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.hooks = self.hooks.with_observer(observer);
        self
    }

    /// The HTTP client to use. It must not follow redirects: the signature is for one path only.
    #[must_use]
    pub fn http_client(mut self, http: reqwest::Client) -> Self {
        self.http = Some(http);
        self
    }

    /// The client. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ConnectError::Http`] when the HTTP client cannot be set up (no usable certificate store, for example).
    pub fn connect(self) -> Result<Client, ConnectError> {
        let http = match self.http {
            Some(http) => http,
            None => reqwest::Client::builder()
                .connect_timeout(CONNECT_TIMEOUT)
                .redirect(reqwest::redirect::Policy::none())
                .build()
                .map_err(ConnectError::Http)?,
        };
        Ok(Client::new_with_client(&self.base_url, http, self.hooks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY_ID: &str = "vip_test_ABCDEFGHIJKLMNOPQRSTUV";
    const SECRET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

    #[test]
    fn a_base_address_loses_its_trailing_slashes() {
        for (given, kept) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
            (
                "https://gateway.example/inspection//",
                "https://gateway.example/inspection",
            ),
        ] {
            assert_eq!(Connector::new(given, KEY_ID, SECRET).unwrap().base_url, kept, "{given}");
        }
    }

    #[test]
    fn an_unusable_base_address_is_refused_with_the_reason() {
        for (given, reason) in [
            ("127.0.0.1:8080", "cannot be read"),
            ("ftp://host.example", "http://"),
            ("http://host.example/?a=1", "no query"),
            ("http://host.example/#part", "no fragment"),
            ("http://me:secret@host.example", "no user"),
        ] {
            let error = Connector::new(given, KEY_ID, SECRET).unwrap_err().to_string();
            assert!(error.contains(reason), "{given}: {error}");
        }
    }

    #[test]
    fn nothing_that_can_be_printed_holds_the_secret() {
        let connector = Connector::new("http://127.0.0.1:1", KEY_ID, SECRET).unwrap();
        assert!(!format!("{connector:?}").contains(SECRET));
        let client = connector.connect().unwrap();
        assert!(!format!("{client:?}").contains(SECRET));
        assert!(!format!("{:?}", client.get_health()).contains(SECRET));
        let wrong = connect("http://127.0.0.1:1", KEY_ID, &SECRET.to_lowercase()).unwrap_err();
        assert!(!format!("{wrong:?} {wrong}").contains(&SECRET.to_lowercase()));
    }
}
