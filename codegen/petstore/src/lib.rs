//! Petstore 1.0.0.

use dropshot::{ConfigDropshot, ConfigLogging, ConfigLoggingLevel, HttpServer, ServerBuilder};

pub mod context;
pub mod endpoints;
pub mod error;
pub mod gateway;
#[rustfmt::skip]
pub mod generated;

/// Starts the server.
///
/// # Errors
/// If the address is not available, or Dropshot rejects a route.
pub fn serve(
    config: ConfigDropshot,
) -> Result<HttpServer<context::Context>, Box<dyn std::error::Error>> {
    let level = ConfigLoggingLevel::Info;
    let log = ConfigLogging::StderrTerminal { level }.to_logger("petstore")?;
    let api = generated::dispatch::description()?;
    Ok(ServerBuilder::new(api, context::Context::default(), log)
        .config(config)
        .start()?)
}
