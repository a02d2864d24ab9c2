//! Errors of operator commands.

use std::fmt;

use partner_api::config::ConfigError;
use partner_api::startup::StartupError;
use partner_api_store::DbError;
use partner_api_store::pool::DedicatedError;
use partner_api_store::secrets::MasterKeyError;
use thiserror::Error;
use tokio_postgres::error::SqlState;

/// An error of an operator command. Each message describes the problem and its remedy.
#[derive(Debug, Error)]
pub enum Failure {
    /// An argument or option is not valid.
    #[error("{0}")]
    Usage(String),
    /// There is no object with this name.
    #[error("there is no {kind} `{name}`{}", suggested(.suggestions, *kind))]
    NotFound {
        /// The kind of the object.
        kind: Kind,
        /// The name that was given.
        name: String,
        /// Similar names.
        suggestions: Vec<String>,
    },
    /// A rule forbids the command.
    #[error("{0}")]
    Rejected(String),
    /// The configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The database cannot be opened.
    #[error(transparent)]
    Startup(#[from] StartupError),
    /// The master key is missing, or cannot decrypt a stored secret.
    #[error(transparent)]
    MasterKey(#[from] MasterKeyError),
    /// The database cannot be reached.
    #[error(transparent)]
    Dedicated(#[from] DedicatedError),
    /// Lines of a file are not valid. The message has the number, the field and the expected value of each.
    #[error("{0}")]
    InvalidLines(String),
    /// The command was interrupted; the message says what was committed.
    #[error("{0}")]
    Stopped(String),
    /// A statement failed.
    #[error("{}", statement_failed(.0))]
    Db(#[from] DbError),
    /// A search of the request log exceeded its time limit.
    #[error("the search took too long; use a shorter --since, or name a --partner or a --key")]
    SearchTimedOut,
    /// The outcome of a commit is unknown.
    #[error("the database did not respond in time, so the outcome is unknown; check with: partner-api audit list")]
    Unknown,
    /// A check of `doctor` failed; its result was printed.
    #[error("{0}")]
    Unhealthy(String),
    /// The result could not be written.
    #[error("failed to write the output: {0}")]
    Output(std::io::Error),
}

/// The exit codes (OPS-4).
pub const EXIT_CODES: &str = "\
Exit codes:
  0  success, including when there was nothing to do
  1  failure of the database or a file; see the message
  2  invalid argument, option, configuration or line of a file
  3  not found
  4  forbidden by a rule";

impl Failure {
    /// Returns the exit code, as listed in [`EXIT_CODES`].
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::InvalidLines(_) | Self::Config(_) => 2,
            Self::Startup(error) if error.is_configuration() => 2,
            Self::MasterKey(error) if error.is_configuration() => 2,
            Self::NotFound { .. } => 3,
            Self::Rejected(_) => 4,
            Self::Startup(_)
            | Self::MasterKey(_)
            | Self::Dedicated(_)
            | Self::Stopped(_)
            | Self::Db(_)
            | Self::SearchTimedOut
            | Self::Unknown
            | Self::Unhealthy(_)
            | Self::Output(_) => 1,
        }
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Db(error.into())
    }
}

/// The kinds of objects that a name can refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A partner.
    Partner,
    /// A partner's key.
    Key,
    /// An organization.
    Organization,
    /// A branch of an organization.
    Branch,
    /// An inspector.
    Inspector,
    /// Thresholds of a measurement point.
    Threshold,
    /// A plausible range of a measurement point.
    Range,
    /// A measurement.
    Measurement,
    /// A request in the log.
    Request,
    /// A report.
    Report,
    /// A published PDF of a report.
    PublishedPdf,
    /// A vehicle.
    Vehicle,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Partner => "partner",
            Self::Key => "key",
            Self::Organization => "organization",
            Self::Branch => "branch",
            Self::Inspector => "inspector",
            Self::Threshold => "threshold",
            Self::Range => "range",
            Self::Measurement => "measurement",
            Self::Request => "request",
            Self::Report => "report",
            Self::PublishedPdf => "published PDF",
            Self::Vehicle => "vehicle",
        })
    }
}

impl Kind {
    /// Returns the advice for the case that no name is similar.
    fn advice(self) -> &'static str {
        match self {
            Self::Partner => "list them with: partner-api partner list",
            Self::Key => "list them with: partner-api key list",
            Self::Organization => "list them with: partner-api organization list",
            Self::Branch => "list them with: partner-api branch list",
            Self::Inspector => "list them with: partner-api inspector list",
            Self::Threshold => "list them with: partner-api threshold list",
            Self::Range => "list them with: partner-api range list",
            Self::Measurement => "list them with: partner-api measurement list",
            Self::Request => "list them with: partner-api request list",
            Self::Report => "expected the number or ID that partners see and that is printed on the PDF",
            Self::Vehicle => "expected a VIN, a plate or an ID; list them with: partner-api export - --kind vehicles",
            Self::PublishedPdf => {
                "the file was not published by this service, or was altered; list a report's PDFs with: partner-api report show REPORT"
            }
        }
    }
}

/// Explains a statement that the database stopped; other errors describe themselves.
fn statement_failed(error: &DbError) -> String {
    match error.rejection() {
        Some(&SqlState::QUERY_CANCELED) => {
            "the database stopped a statement after its time limit; try again later, or raise statement_timeout"
                .to_owned()
        }
        Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            "another transaction holds a row or table that the command needs; try again in a moment".to_owned()
        }
        _ => error.to_string(),
    }
}

fn suggested(suggestions: &[String], kind: Kind) -> String {
    match suggestions {
        [] => format!("; {}", kind.advice()),
        [one] => format!("; did you mean `{one}`?"),
        [others @ .., last] => format!("; did you mean `{}` or `{last}`?", others.join("`, `")),
    }
}
