//! A client of the inspectors' API (`spec/inspector-api.yaml`).
//!
//! [`Client`] has one generated method per operation, named like its `operationId`. After [`sign_in`], every call carries the session.

#[rustfmt::skip]
#[allow(unused_imports)] // The generated prelude is not used.
mod generated;
mod hooks;

use std::time::Duration;

pub use generated::{Client, ResponseValue, builder, types};
pub use hooks::{Exchange, Hooks, Observer};
pub use progenitor_client::Error;

/// The timeout of connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time without data after which a response fails. A stream sends data every 15 s.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Creates a client of the service whose inspectors' listener is at `base_url`. It is not signed in yet.
///
/// # Errors
/// The HTTP client could not be created.
pub fn connect(base_url: &str) -> Result<Client, reqwest::Error> {
    Ok(Client::new_with_client(base_url, http_client()?, Hooks::default()))
}

/// Creates a client like [`connect`], with an observer of every response.
///
/// # Errors
/// As [`connect`].
pub fn connect_observed(base_url: &str, observer: impl Observer) -> Result<Client, reqwest::Error> {
    Ok(Client::new_with_client(
        base_url,
        http_client()?,
        Hooks::observed_by(observer),
    ))
}

/// Creates the HTTP client. It has no timeout for whole responses, because a stream has no end.
fn http_client() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .build()
}

/// Signs in with a token. The client's later calls carry the inspector's session.
///
/// # Errors
/// The service rejected the token or could not be reached.
pub async fn sign_in(client: &Client, token: &str) -> Result<types::SessionData, Error<types::Error>> {
    let body = types::SignIn::builder().token(token);
    let session = client.sign_in().body(body).send().await?.into_inner().data;
    client.hooks().set_csrf_token(&session.csrf_token);
    Ok(session)
}

impl Client {
    /// The hooks that all calls share.
    fn hooks(&self) -> &Hooks {
        progenitor_client::ClientInfo::inner(self)
    }
}
