//! The inspectors' listener. The crate `partner-api-inspector` provides its routes.
//!
//! It is separate from the [internal listener](crate::observability), so that its clients cannot delay probes and scrapes (OPS-6).

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bounded_listener::{Limits, RequestBody};
use deadpool_postgres::Pool;
use dropshot::Body;
use http::{Request, Response};
use partner_api_gateway::TrustedProxies;

use crate::context::Context;
use crate::gateway::Reporter;

/// Handles all requests of the inspectors' listener.
pub type InspectorRoutes =
    Arc<dyn Fn(SocketAddr, Request<RequestBody>) -> Pin<Box<dyn Future<Output = Response<Body>> + Send>> + Send + Sync>;

/// Creates the routes.
pub type MakeInspectorRoutes = fn(InspectorState) -> InspectorRoutes;

/// The state that the routes share.
pub struct InspectorState {
    /// The state of the service.
    pub context: Context,
    /// Connections for requests.
    pub pool: Pool,
    /// Reports completed requests.
    pub reporter: Reporter,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: TrustedProxies,
    /// The timeout for receiving a request's body.
    pub body_timeout: Duration,
}

/// Returns the limits of the inspectors' listener. A branch may share one address, and each tab of a browser keeps a stream
/// open; trusted proxies are exempt from the limits per address.
pub(crate) fn limits(trusted_proxies: &TrustedProxies) -> Limits {
    Limits {
        connections: 1_024,
        connections_per_address: 256,
        exempt: trusted_proxies.0.clone(),
        first_request: Duration::from_secs(5),
        head: Duration::from_secs(5),
        idle: Duration::from_secs(120),
        stalled_response: Duration::from_secs(10),
        detached: 256,
        http1_buffer: 16 * 1024,
        ..Limits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// INS-9
    #[test]
    fn a_rejected_photo_may_be_sent_to_its_end() {
        let (default, inspectors) = (Limits::default(), limits(&TrustedProxies::default()));
        assert_eq!(
            (inspectors.linger_bytes, inspectors.linger),
            (default.linger_bytes, default.linger)
        );
    }
}
