//! Logs to standard error: text on a terminal, one JSON object per line otherwise.
//!
//! A dedicated thread writes the lines from a bounded buffer. Logging therefore never blocks on an unread pipe, a full disk or
//! a stopped terminal. Lines that do not fit into the buffer are dropped, and a warning reports their number.

use std::backtrace::Backtrace;
use std::io::{self, BufWriter, IsTerminal, Stderr, Write};
use std::panic;
use std::sync::OnceLock;

use thiserror::Error;
use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::{EnvFilter, filter::ParseError, util::TryInitError};
use tracing_subscriber::{Layer, Registry, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// The capacity of the buffer in lines: some megabytes, or half a second at the maximum rate of a replica.
const WAITING_LINES: usize = 8_192;

/// Levels for libraries that are too verbose at `info`; the configured level can override them.
const LIBRARY_LEVELS: &str = "refinery_core=warn,tokio_postgres=warn";

/// Counts dropped lines; a process has one log.
static DROPPED: OnceLock<ErrorCounter> = OnceLock::new();

/// Returns the number of lines dropped so far because the log's reader was too slow.
pub fn dropped_lines() -> usize {
    DROPPED.get().map_or(0, ErrorCounter::dropped_lines)
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// Text, for people.
    Text,
    /// One JSON object per line, for collectors.
    Json,
}

/// An error while setting up the log.
#[derive(Debug, Error)]
pub enum LoggingError {
    /// The level is not valid.
    #[error("log level {0:?} is not valid ({1}); expected for example `info` or `info,partner_api=debug`")]
    Level(String, ParseError),
    /// A log is already set up.
    #[error("the log is already set up: {0}")]
    Already(#[from] TryInitError),
}

/// The log of a process. Dropping it writes the buffered lines, for up to a second.
#[must_use = "lines logged after this is dropped are lost"]
pub struct Log {
    _writer: WorkerGuard,
}

/// Sets up the log for the whole process, panics included.
///
/// `level` is `error`, `warn`, `info`, `debug` or `trace`, or a list of levels per module (`info,partner_api=debug`).
///
/// # Errors
/// If the level is not valid, or a log is already set up.
pub fn init(level: &str, format: LogFormat) -> Result<Log, LoggingError> {
    let filter = filter(level)?;
    let style = Style {
        format,
        terminal: io::stderr().is_terminal(),
    };
    let (lines, writer) = NonBlockingBuilder::default()
        .buffered_lines_limit(WAITING_LINES)
        .thread_name("log")
        .finish(Sink {
            buffer: BufWriter::new(io::stderr()),
            style,
            reported: 0,
        });
    let counter = lines.error_counter();
    Registry::default().with(style.layer(lines)).with(filter).try_init()?;
    // This is the first log, or `try_init` would have failed.
    let _ = DROPPED.set(counter);
    log_panics();
    Ok(Log { _writer: writer })
}

/// Logs panics. The standard library's own hook would write from the panicking thread and block on the reader.
fn log_panics() {
    let otherwise = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !tracing::enabled!(tracing::Level::ERROR) {
            return otherwise(panic);
        }
        tracing::error!(%panic, backtrace = %Backtrace::capture(), "panic");
    }));
}

/// Writes lines to standard error, in the dedicated thread.
struct Sink {
    buffer: BufWriter<Stderr>,
    style: Style,
    /// The dropped lines reported so far.
    reported: usize,
}

impl Sink {
    /// Logs how many lines were dropped since the last report, bypassing the buffer.
    fn report_dropped(&mut self) -> io::Result<()> {
        let dropped = dropped_lines();
        let lines = dropped.saturating_sub(self.reported);
        if lines == 0 {
            return Ok(());
        }
        self.buffer.flush()?;
        self.reported = dropped;
        // Callsite interest is cached per subscriber, so the cache is rebuilt after this temporary one.
        let directly = Registry::default()
            .with(self.style.layer(io::stderr))
            .with(LevelFilter::WARN);
        tracing::subscriber::with_default(directly, || {
            tracing::warn!(lines, "log lines were dropped because the log's reader was too slow");
        });
        tracing::callsite::rebuild_interest_cache();
        Ok(())
    }
}

impl Write for Sink {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.write_all(line)?;
        Ok(line.len())
    }

    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        self.buffer.write_all(line)?;
        self.report_dropped()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.buffer.flush()
    }
}

/// Parses a level.
///
/// # Errors
/// If the level is not valid.
pub fn filter(level: &str) -> Result<EnvFilter, LoggingError> {
    EnvFilter::builder()
        .parse(format!("{LIBRARY_LEVELS},{level}"))
        .map_err(|error| LoggingError::Level(level.to_owned(), error))
}

/// The style of log lines.
#[derive(Clone, Copy)]
struct Style {
    format: LogFormat,
    terminal: bool,
}

impl Style {
    fn layer<W>(self, writer: W) -> Box<dyn Layer<Registry> + Send + Sync>
    where
        W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
    {
        let is_json = match self.format {
            LogFormat::Json => true,
            LogFormat::Auto => !self.terminal,
            LogFormat::Text => false,
        };
        if !is_json {
            return Box::new(fmt::layer().with_writer(writer).with_ansi(self.terminal));
        }
        let lines = fmt::layer().json().flatten_event(true).with_span_list(false);
        Box::new(lines.with_writer(writer))
    }
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
