//! The log: to standard error, as text on a terminal and as one JSON object a line otherwise.
//!
//! Who writes a line does not wait for who reads it: lines go through a bounded buffer to a thread of their own. A pipe that
//! nobody reads, a full disk or a terminal that was stopped holds up that thread alone; what finds no room in the buffer is
//! dropped and counted, and the count is the next thing that is written.

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

/// Lines that may wait for who reads the log: some megabytes, which is half a second of the most that one replica writes.
const WAITING_LINES: usize = 8_192;

/// Libraries that say at `info` what is our own business; a level given for them wins.
const QUIET: &str = "refinery_core=warn,tokio_postgres=warn";

/// Counts the lines that found no room; a process has one log.
static DROPPED: OnceLock<ErrorCounter> = OnceLock::new();

/// How many lines of the process's log were dropped so far, because nobody read it for too long.
pub fn dropped_lines() -> usize {
    DROPPED.get().map_or(0, ErrorCounter::dropped_lines)
}

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

/// The log of a process. What is waiting is written when it is dropped, unless that takes longer than a second.
#[must_use = "what is written after this is dropped is lost"]
pub struct Log {
    _writer: WorkerGuard,
}

/// Sets up the log for the whole process, panics included.
///
/// `level` is `error`, `warn`, `info`, `debug` or `trace`, or a list of such per module (`info,partner_api=debug`).
///
/// # Errors
/// The level is not one, or the log was set up before.
pub fn init(level: &str, format: LogFormat) -> Result<Log, LoggingError> {
    let filter = filter(level)?;
    let looks = Looks {
        format,
        terminal: io::stderr().is_terminal(),
    };
    let (lines, writer) = NonBlockingBuilder::default()
        .buffered_lines_limit(WAITING_LINES)
        .thread_name("log")
        .finish(Sink {
            buffer: BufWriter::new(io::stderr()),
            looks,
            told: 0,
        });
    let counter = lines.error_counter();
    Registry::default().with(looks.layer(lines)).with(filter).try_init()?;
    // It is the first one, or there would have been an error.
    let _ = DROPPED.set(counter);
    log_panics();
    Ok(Log { _writer: writer })
}

/// Panics are lines of the log: the standard library's own would be written by who panicked, and wait for the reader.
fn log_panics() {
    let otherwise = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !tracing::enabled!(tracing::Level::ERROR) {
            return otherwise(panic);
        }
        tracing::error!(%panic, backtrace = %Backtrace::capture(), "a panic");
    }));
}

/// Where lines end up, in the thread that writes them.
struct Sink {
    buffer: BufWriter<Stderr>,
    looks: Looks,
    /// How many of the dropped lines the log knows of.
    told: usize,
}

impl Sink {
    /// Writes how many lines were dropped since it was told last. A line like the others, past their buffer.
    fn tell(&mut self) -> io::Result<()> {
        let dropped = dropped_lines();
        let lines = dropped.saturating_sub(self.told);
        if lines == 0 {
            return Ok(());
        }
        self.buffer.flush()?;
        self.told = dropped;
        // It is there for this line only, for as long as it is there all others are asked whether they are wanted.
        let directly = Registry::default()
            .with(self.looks.layer(io::stderr))
            .with(LevelFilter::WARN);
        tracing::subscriber::with_default(directly, || {
            tracing::warn!(lines, "lines of this log were dropped: nobody read it for too long");
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
        self.tell()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.buffer.flush()
    }
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

/// What lines look like.
#[derive(Clone, Copy)]
struct Looks {
    format: LogFormat,
    terminal: bool,
}

impl Looks {
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
