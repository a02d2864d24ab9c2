//! Why a command was not done.

use std::fmt;

use partner_api::config::ConfigError;
use partner_api::db::DbError;
use partner_api::db::pool::DedicatedError;
use partner_api::secrets::MasterKeyError;
use partner_api::startup::StartupError;
use thiserror::Error;

/// Why a command was not done. Each message says what is wrong, where, and what to do next.
#[derive(Debug, Error)]
pub enum Failure {
    /// A value cannot be meant.
    #[error("{0}")]
    Usage(String),
    /// There is nothing of that name.
    #[error("there is no {kind} `{name}`{}", suggested(.suggestions, *kind))]
    NotFound {
        /// What was looked for.
        kind: Kind,
        /// The name as it was given.
        name: String,
        /// Names that look like it.
        suggestions: Vec<String>,
    },
    /// A rule forbids it.
    #[error("{0}")]
    Refused(String),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The database cannot be opened.
    #[error(transparent)]
    Startup(#[from] StartupError),
    /// The master key is missing, or is not the one that sealed what is stored.
    #[error(transparent)]
    MasterKey(#[from] MasterKeyError),
    /// The database cannot be reached.
    #[error(transparent)]
    Dedicated(#[from] DedicatedError),
    /// Lines of a file cannot be taken: each with its number, the field and what was expected.
    #[error("{0}")]
    BadLines(String),
    /// It was stopped, or came to an end in its midst; the message says what stands.
    #[error("{0}")]
    Stopped(String),
    /// The database failed.
    #[error("the database: {0}")]
    Db(#[from] DbError),
    /// A commit was not answered.
    #[error("the database did not answer in time: whether it is done is not known; look with: partner-api audit list")]
    Unknown,
    /// Something is not as the service needs it; what it is was printed.
    #[error("{0}")]
    Unhealthy(String),
    /// What it gives cannot be printed or written.
    #[error("cannot write: {0}")]
    Output(std::io::Error),
}

/// What a command's end says to a script (OPS-4).
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done, or there was nothing to do
  1  failed: the database, the configuration or a file; the message says which
  2  a value, an option or a line of a file cannot be meant
  3  there is nothing of that name
  4  refused by a rule";

impl Failure {
    /// See [`EXIT_CODES`].
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::BadLines(_) => 2,
            Self::NotFound { .. } => 3,
            Self::Refused(_) => 4,
            Self::Config(_)
            | Self::Startup(_)
            | Self::MasterKey(_)
            | Self::Dedicated(_)
            | Self::Stopped(_)
            | Self::Db(_)
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

/// What can be looked for and not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A partner.
    Partner,
    /// A partner's key.
    Key,
    /// An organisation.
    Organization,
    /// A branch of an organisation.
    Branch,
    /// An inspector.
    Inspector,
    /// Limits of a measurement point.
    Threshold,
    /// What an organisation takes for possible of a measurement point.
    Range,
    /// A measurement.
    Measurement,
    /// A request in the log.
    Request,
    /// A report.
    Report,
    /// A PDF that a report has or had.
    PublishedPdf,
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
        })
    }
}

impl Kind {
    /// What to do where no name is like the one that was given.
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
            Self::Report => "its number or id is wanted, as partners read it, and as it is printed on its PDF",
            Self::PublishedPdf => {
                "the file is not ours, or was altered; what a report published is shown by: partner-api report show REPORT"
            }
        }
    }
}

fn suggested(suggestions: &[String], kind: Kind) -> String {
    match suggestions {
        [] => format!("; {}", kind.advice()),
        [one] => format!("; did you mean `{one}`?"),
        [others @ .., last] => format!("; did you mean `{}` or `{last}`?", others.join("`, `")),
    }
}
