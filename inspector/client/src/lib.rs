//! A client of the inspectors' API (`spec/inspector-api.yaml`): one generated method of [`Client`] per operation, named as its
//! `operationId`, and a session that goes along with each call once [`sign_in`] has made one.

#[rustfmt::skip]
#[allow(unused_imports)] // Its prelude, which this crate does not need.
mod generated;
mod hooks;

pub use generated::{Client, ResponseValue, builder, types};
pub use hooks::{Exchange, Hooks, Observer};
pub use progenitor_client::Error;

/// A client for the service whose internal listener is at `base_url`; nobody is signed in yet.
pub fn connect(base_url: &str) -> Client {
    Client::new(base_url, Hooks::default())
}

/// The same, with somebody who is told of every answer.
pub fn connect_observed(base_url: &str, observer: impl Observer) -> Client {
    Client::new(base_url, Hooks::observed_by(observer))
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
