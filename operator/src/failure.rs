//! Why a command was not done.

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
    #[error("there is no {kind} `{name}`{}", suggested(.suggestions, .kind))]
    NotFound {
        /// What was looked for, such as `partner`.
        kind: &'static str,
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

fn suggested(suggestions: &[String], kind: &str) -> String {
    match suggestions {
        [] => format!(
            "; list them with: partner-api {} list",
            kind.split(' ').next().unwrap_or(kind)
        ),
        [one] => format!("; did you mean `{one}`?"),
        [others @ .., last] => format!("; did you mean `{}` or `{last}`?", others.join("`, `")),
    }
}
