//! Dropshot's own servers, which serve the same gateways as the service's listeners.
//!
//! With `PARTNER_API_TEST_SERVER=dropshot`, [`Service::send`](crate::Service::send) and the generated clients send the requests for
//! the two APIs there. `script/dropshot` runs the conformance tests in this way.

use std::net::{Ipv4Addr, SocketAddr};

use dropshot::{ApiDescription, ConfigDropshot, HttpServer, ServerBuilder, ServerContext};
use partner_api::gateway::Gateway;
use partner_api::inspectors::InspectorState;
use partner_api_inspector::gateway::Gateway as InspectorGateway;

/// The variable that selects the server.
const VARIABLE: &str = "PARTNER_API_TEST_SERVER";

/// A Dropshot server for each contract.
pub(crate) struct DropshotServers {
    partners: HttpServer<Gateway>,
    inspectors: HttpServer<InspectorGateway>,
}

impl DropshotServers {
    /// Starts both, if the environment selects them.
    pub fn start_if_selected(partners: &Gateway, inspectors: impl FnOnce() -> InspectorState) -> Option<Self> {
        let selected = std::env::var(VARIABLE).ok()?;
        assert_eq!(selected, "dropshot", "{VARIABLE}");
        Some(DropshotServers {
            partners: start(
                partner_api::generated::dispatch::description().unwrap(),
                partners.clone(),
            ),
            inspectors: start(
                partner_api_inspector::generated::dispatch::description().unwrap(),
                InspectorGateway::new(inspectors()),
            ),
        })
    }

    /// Returns the server for a path of one of the APIs.
    pub fn address(&self, path: &str) -> Option<SocketAddr> {
        let is_below = |root: &str| {
            path.strip_prefix(root)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if is_below(partner_api::gateway::API_ROOT) {
            return Some(self.partners());
        }
        is_below(partner_api_inspector::gateway::API_ROOT).then(|| self.inspectors.local_addr())
    }

    /// Returns the server of the partners' API.
    pub fn partners(&self) -> SocketAddr {
        self.partners.local_addr()
    }
}

fn start<C: ServerContext>(description: ApiDescription<C>, context: C) -> HttpServer<C> {
    let config = ConfigDropshot {
        bind_address: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
        ..ConfigDropshot::default()
    };
    let log = slog::Logger::root(slog::Discard, slog::o!());
    ServerBuilder::new(description, context, log)
        .config(config)
        .start()
        .unwrap()
}
