//! The log: to standard error, as text on a terminal and as one JSON object a line otherwise.

use std::io::{self, IsTerminal};

use thiserror::Error;
use tracing_subscriber::{EnvFilter, filter::ParseError, util::TryInitError};
use tracing_subscriber::{Layer, Registry, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// Libraries that say at `info` what is our own business; a level given for them wins.
const QUIET: &str = "refinery_core=warn,tokio_postgres=warn";

/// How a log line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// Text, for people.
    Text,
    /// One JSON object a line, for collectors.
    Json,
}

/// Why there is no log.
#[derive(Debug, Error)]
pub enum LoggingError {
    /// The level is not one.
    #[error("the log level {0:?} is not usable ({1}); expected for example `info`, or `info,partner_api=debug`")]
    Level(String, ParseError),
    /// Somebody else logs already.
    #[error("the log is already set up: {0}")]
    Already(#[from] TryInitError),
}

/// Sets up the log for the whole process.
///
/// `level` is `error`, `warn`, `info`, `debug` or `trace`, or a list of such per module (`info,partner_api=debug`).
///
/// # Errors
/// The level is not one, or the log was set up before.
pub fn init(level: &str, format: LogFormat) -> Result<(), LoggingError> {
    let filter = filter(level)?;
    let terminal = io::stderr().is_terminal();
    Registry::default()
        .with(layer(format, terminal))
        .with(filter)
        .try_init()?;
    Ok(())
}

/// Checks a level without setting anything up.
///
/// # Errors
/// The level is not one.
pub fn filter(level: &str) -> Result<EnvFilter, LoggingError> {
    EnvFilter::builder()
        .parse(format!("{QUIET},{level}"))
        .map_err(|error| LoggingError::Level(level.to_owned(), error))
}

fn layer(format: LogFormat, terminal: bool) -> Box<dyn Layer<Registry> + Send + Sync> {
    match format {
        LogFormat::Json => json(),
        LogFormat::Auto if !terminal => json(),
        LogFormat::Auto | LogFormat::Text => Box::new(fmt::layer().with_writer(io::stderr).with_ansi(terminal)),
    }
}

fn json() -> Box<dyn Layer<Registry> + Send + Sync> {
    Box::new(
        fmt::layer()
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .with_writer(io::stderr),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_checked_and_an_error_names_them() {
        for level in ["info", "warn,partner_api=debug", "off"] {
            assert!(filter(level).is_ok(), "{level}");
        }
        let error = filter("info,partner_api=loud").unwrap_err().to_string();
        assert!(error.contains("loud"), "{error}");
    }
}
