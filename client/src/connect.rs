//! Creates a client from a URL, a key ID and a secret.

use std::time::Duration;

use partner_api_signing::{InvalidKeyId, InvalidSecret};
use url::Url;

use crate::generated::Client;
use crate::hooks::{Hooks, Observer, SIGNED_PREFIX};
use crate::retry::{Pause, RetryPolicy};

/// Timeout for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Creates a client with the default [`RetryPolicy`] for the service at `base_url` (without `/api/v1/partner`). Sends nothing yet.
///
/// # Errors
/// [`ConnectError`] if the URL, the key ID or the secret is invalid.
pub fn connect(base_url: &str, key_id: &str, secret: &str) -> Result<Client, ConnectError> {
    Connector::new(base_url, key_id, secret)?.connect()
}

/// The reason why a client could not be created. Its messages never contain the secret.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The base URL is invalid.
    #[error("the base URL {0}")]
    BaseUrl(String),
    /// The key ID is invalid.
    #[error(transparent)]
    KeyId(#[from] InvalidKeyId),
    /// The secret is invalid.
    #[error(transparent)]
    Secret(#[from] InvalidSecret),
    /// The HTTP client could not be created.
    #[error("failed to create the HTTP client: {0}")]
    Http(#[source] reqwest::Error),
}

/// A builder of clients with more options than [`connect`].
#[derive(Clone, Debug)]
pub struct Connector {
    base_url: String,
    hooks: Hooks,
    http: Option<reqwest::Client>,
}

impl Connector {
    /// Creates a connector for the service at `base_url`, an `http` or `https` URL. Its path, if it has one, is not signed.
    ///
    /// # Errors
    /// [`ConnectError`] if the URL, the key ID or the secret is invalid.
    pub fn new(base_url: &str, key_id: &str, secret: &str) -> Result<Self, ConnectError> {
        let invalid = |reason: &str| Err(ConnectError::BaseUrl(reason.to_owned()));
        let has_scheme = ["http://", "https://"].iter().any(|scheme| {
            base_url
                .get(..scheme.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        });
        if !has_scheme {
            return invalid("must begin with http:// or https://");
        }
        let url = Url::parse(base_url).map_err(|error| ConnectError::BaseUrl(format!("is not valid: {error}")))?;
        if url.query().is_some() || url.fragment().is_some() {
            return invalid("must have no query and no fragment");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return invalid("must have no user and no password");
        }
        if url.path().trim_end_matches('/').ends_with(SIGNED_PREFIX) {
            return invalid("must not end with /api/v1/partner, which each request adds");
        }
        Ok(Self {
            base_url: url.as_str().trim_end_matches('/').to_owned(),
            hooks: Hooks::new(key_id.parse()?, secret.parse()?),
            http: None,
        })
    }

    /// Sets the retry policy.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.hooks = self.hooks.with_retry(policy);
        self
    }

    /// Sets an observer of all attempts.
    #[must_use]
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.hooks = self.hooks.with_observer(observer);
        self
    }

    /// Sets a function that is called before each pause, for example to tell a person why nothing happens.
    #[must_use]
    pub fn on_pause(mut self, callback: impl Fn(&Pause) + Send + Sync + 'static) -> Self {
        self.hooks = self.hooks.with_pause_callback(callback);
        self
    }

    /// Sets the HTTP client. It must not follow redirects, because a signature covers one path only.
    #[must_use]
    pub fn http_client(mut self, http: reqwest::Client) -> Self {
        self.http = Some(http);
        self
    }

    /// Creates the client. Sends nothing yet.
    ///
    /// # Errors
    /// [`ConnectError::Http`] if the HTTP client could not be created, for example without a usable certificate store.
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
    fn trailing_slashes_of_the_base_url_are_removed() {
        for (given, expected) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
            (
                "https://gateway.example/inspection//",
                "https://gateway.example/inspection",
            ),
        ] {
            assert_eq!(
                Connector::new(given, KEY_ID, SECRET).unwrap().base_url,
                expected,
                "{given}"
            );
        }
    }

    #[test]
    fn an_invalid_base_url_is_rejected_with_the_reason() {
        for (given, reason) in [
            ("127.0.0.1:8080", "must begin with http://"),
            ("localhost:8080", "must begin with http://"),
            ("http://", "is not valid"),
            (
                "https://host.example/api/v1/partner/",
                "must not end with /api/v1/partner",
            ),
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
    fn neither_debug_output_nor_errors_contain_the_secret() {
        let connector = Connector::new("http://127.0.0.1:1", KEY_ID, SECRET).unwrap();
        assert!(!format!("{connector:?}").contains(SECRET));
        let client = connector.connect().unwrap();
        assert!(!format!("{client:?}").contains(SECRET));
        assert!(!format!("{:?}", client.get_health()).contains(SECRET));
        let invalid = connect("http://127.0.0.1:1", KEY_ID, &SECRET.to_lowercase()).unwrap_err();
        assert!(!format!("{invalid:?} {invalid}").contains(&SECRET.to_lowercase()));
    }
}
