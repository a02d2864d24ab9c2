//! The options that a test starts a service with.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bounded_listener::tls::TlsFiles;
use partner_api::storage::S3Settings;
use partner_api::traces;
use partner_api_gateway::TrustedProxies;
use partner_api_gateway::pages::Pages;
use partner_api_signing::Environment;
use partner_api_store::secrets::MasterKey;
use partner_api_store::standby::Standbys;

use crate::fixture;

/// Options of the service; the defaults are those of the tests.
#[derive(Clone, Debug)]
pub struct Options {
    /// The deployment's environment.
    pub environment: Environment,
    /// Requests per minute and address; 0 means no limit.
    pub ip_limit: u32,
    /// Trusted proxies.
    pub trusted_proxies: TrustedProxies,
    /// The timeout for a request's body.
    pub body_timeout: Duration,
    /// The number of reports that are rendered concurrently.
    pub renderers: usize,
    /// Decrypts the secrets of the fixture data.
    pub master_key: MasterKey,
    /// The retention of the request log in days.
    pub request_log_days: u32,
    /// Standbys, for reads that may lag behind the primary.
    pub standbys: Option<Arc<Standbys>>,
    /// The address of the partners' API.
    pub listen: SocketAddr,
    /// The address of the inspectors' page and API.
    pub inspectors_listen: SocketAddr,
    /// The address of `/live`, `/ready` and `/metrics`.
    pub internal_listen: Option<SocketAddr>,
    /// The collector of traces.
    pub traces: Option<traces::Settings>,
    /// The certificate for TLS. [`Service::send`](crate::Service::send) does not use it;
    /// [`Service::client_over`](crate::Service::client_over) does.
    pub tls: Option<TlsFiles>,
    /// The S3-compatible service with the objects, instead of a folder.
    pub s3: Option<S3Settings>,
    /// The routes beside the API.
    pub pages: Pages,
}

/// A loopback address with a port that the system assigns.
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

impl Default for Options {
    fn default() -> Self {
        Self {
            environment: Environment::Test,
            ip_limit: 0,
            trusted_proxies: TrustedProxies::default(),
            body_timeout: Duration::from_secs(30),
            // A test that needs a rendered report renders it itself.
            renderers: 0,
            master_key: fixture::master_key(),
            request_log_days: 90,
            standbys: None,
            listen: ANY_PORT,
            inspectors_listen: ANY_PORT,
            internal_listen: Some(ANY_PORT),
            traces: None,
            tls: None,
            s3: None,
            pages: Pages::default(),
        }
    }
}
