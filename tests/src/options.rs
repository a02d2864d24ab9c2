//! What a test sets of a service.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use partner_api::db::standby::Standbys;
use partner_api::front_door::address::TrustedProxies;
use partner_api::front_door::pages::Pages;
use partner_api::secrets::MasterKey;
use partner_api::tls::TlsFiles;
use partner_api::traces;
use partner_api_signing::Environment;

use crate::fixture;

/// What an operator could set, as tests want it by default.
#[derive(Clone, Debug)]
pub struct Options {
    /// The deployment's environment.
    pub environment: Environment,
    /// Requests a minute and address; 0 is off.
    pub ip_limit: u32,
    /// Proxies that are believed.
    pub trusted_proxies: TrustedProxies,
    /// The time in which a body must have arrived.
    pub body_timeout: Duration,
    /// How many reports are rendered at the same time.
    pub renderers: usize,
    /// Opens the secrets of the world.
    pub master_key: MasterKey,
    /// How many days of the request log are kept.
    pub request_log_days: u32,
    /// Where reads go that may be a little behind.
    pub standbys: Option<Arc<Standbys>>,
    /// Where `/live`, `/ready` and `/metrics` are read.
    pub internal_listen: Option<SocketAddr>,
    /// Where traces are sent.
    pub traces: Option<traces::Settings>,
    /// The certificate for TLS. [`Service::send`](crate::Service::send) does not speak it;
    /// [`Service::client_over`](crate::Service::client_over) does.
    pub tls: Option<TlsFiles>,
    /// What is served beside the API.
    pub pages: Pages,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            environment: Environment::Test,
            ip_limit: 0,
            trusted_proxies: TrustedProxies::default(),
            body_timeout: Duration::from_secs(30),
            // A test that wants a report rendered says when.
            renderers: 0,
            master_key: fixture::master_key(),
            request_log_days: 90,
            standbys: None,
            internal_listen: Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)),
            traces: None,
            tls: None,
            pages: Pages::default(),
        }
    }
}
