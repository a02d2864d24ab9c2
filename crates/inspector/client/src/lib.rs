//! A client of the inspectors' API (`spec/inspector-api.yaml`): one generated method of [`Client`] per operation, named as its
//! `operationId`, and a session that goes along with each call once [`sign_in`] has made one.

#[rustfmt::skip]
#[allow(unused_imports)] // Its prelude, which this crate does not need.
mod generated;
mod hooks;

use std::time::Duration;

pub use generated::{Client, ResponseValue, builder, types};
pub use hooks::{Exchange, Hooks, Observer};
pub use progenitor_client::Error;

/// How long a connection may take to be made.
const CONNECTING: Duration = Duration::from_secs(10);
/// How long an answer may say nothing: a stream says something every 15 s.
const SILENCE: Duration = Duration::from_secs(60);

/// A client for the service whose internal listener is at `base_url`; nobody is signed in yet.
///
/// # Errors
/// The HTTP client could not be set up.
pub fn connect(base_url: &str) -> Result<Client, reqwest::Error> {
    Ok(Client::new_with_client(base_url, http_client()?, Hooks::default()))
}

/// The same, with somebody who is told of every answer.
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

/// A stream has no end, so there is no time for a whole answer; but a service that says nothing for so long is not there.
fn http_client() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .connect_timeout(CONNECTING)
        .read_timeout(SILENCE)
        .build()
}

/// Signs in with a token: the client's calls are the inspector's from then on.
///
/// # Errors
/// What the service says of the token, or that it says nothing.
pub async fn sign_in(client: &Client, token: &str) -> Result<types::SessionData, Error<types::Error>> {
    let body = types::SignIn::builder().token(token);
    let session = client.sign_in().body(body).send().await?.into_inner().data;
    client.hooks().carry(&session.csrf_token);
    Ok(session)
}

impl Client {
    /// What goes along with the calls.
    fn hooks(&self) -> &Hooks {
        progenitor_client::ClientInfo::inner(self)
    }
}
