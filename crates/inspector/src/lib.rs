//! The inspectors' API and web page, where reports are edited and pending measurements are applied.
//!
//! The API has a separate contract (`spec/inspector-api.yaml`), from which the code is generated as for the partners' API. The
//! inspectors' listener serves it ([`serve`]). A request passes through three layers: [`gateway`], [`endpoints`], [`db`]. The steps of
//! the gateway, the application of measurements, the storage and the request log are shared with the partners' API.

pub mod caller;
pub mod context;
mod cookie_lookups;
pub mod db;
pub mod endpoints;
pub mod error;
pub mod gateway;
#[rustfmt::skip]
pub mod generated;
mod page;
pub mod photo;
pub mod rules;
mod watch;

use partner_api::inspectors::{InspectorRoutes, InspectorState};

use gateway::Gateway;

/// The contract as written.
pub const SPEC_YAML: &str = include_str!("../../../spec/inspector-api.yaml");

/// Returns the routes of the inspectors' listener.
pub fn serve(state: InspectorState) -> InspectorRoutes {
    Gateway::new(state).into_routes()
}
