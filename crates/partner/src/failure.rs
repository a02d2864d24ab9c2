//! Failures of commands, and their exit codes.

use std::io;
use std::path::Path;

use partner_api_client::{ConnectError, Problem};
use serde_json::{Value, json};
use thiserror::Error;

/// The reason why a command failed. Each message says what is wrong, where, and what to do next.
#[derive(Debug, Error)]
pub enum Failure {
    /// An argument or option is invalid.
    #[error("{0}")]
    Usage(String),
    /// A local file, profile or name does not exist.
    #[error("{0}")]
    NotFound(String),
    /// A rule forbids the command, for example because a file would be overwritten.
    #[error("{0}")]
    Rejected(String),
    /// A request failed.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// The client could not be created.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Something on this machine failed; the message says what.
    #[error("{0}")]
    Failed(String),
    /// The output could not be written.
    #[error("failed to write the output: {0}")]
    Output(#[from] io::Error),
    /// The local copy could not be read or written.
    #[error("failed to access the copy: {0}")]
    Copy(#[from] rusqlite::Error),
}

/// The exit codes, as the help lists them.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  failure of the network, the service, this machine or a scenario, or a
     wrong signature (explain); the message says which
  2  invalid argument or option, or a request that the service rejected as invalid
  3  not found (a report, a file, a name), or not accessible with this key
  4  rejected: the key, its scope, or a file that would be overwritten";

impl Failure {
    /// Names the file or folder of an I/O error.
    pub(crate) fn of(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| {
            let message = format!("{}: {error}", path.display());
            match error.kind() {
                io::ErrorKind::NotFound => Self::NotFound(message),
                _ => Self::Failed(message),
            }
        }
    }

    /// Returns the exit code, see [`EXIT_CODES`].
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Connect(_) => 2,
            Self::NotFound(_) => 3,
            Self::Rejected(_) => 4,
            Self::Problem(problem) => match problem.status().map(|status| status.as_u16()) {
                Some(400 | 413) => 2,
                Some(404) => 3,
                Some(401 | 403) => 4,
                _ if matches!(problem, Problem::InvalidRequest(_)) => 2,
                _ => 1,
            },
            Self::Failed(_) | Self::Output(_) | Self::Copy(_) => 1,
        }
    }

    /// Returns the failure as JSON, in the format of the service's errors.
    pub fn json(&self) -> Value {
        let problem = match self {
            Self::Problem(problem) => Some(problem),
            _ => None,
        };
        let rejection = problem.and_then(Problem::rejection);
        json!({ "error": {
            "code": rejection.map(|rejection| rejection.code.as_str()),
            "message": self.to_string(),
            "field": rejection.and_then(|rejection| rejection.field.as_deref()),
            "details": rejection.map_or_else(Default::default, |rejection| rejection.details.as_slice()),
            "request_id": problem.and_then(Problem::request_id),
        }})
    }

    /// Returns all errors of a rejected request, one per line, if the message names only the first of several.
    pub fn details(&self) -> String {
        match self {
            Self::Problem(problem) => details(problem),
            _ => String::new(),
        }
    }
}

/// Returns all errors of a rejected request, each on an indented line, if there are several. The message names only the first.
pub(crate) fn details(problem: &Problem) -> String {
    let details = problem
        .rejection()
        .map_or_else(Default::default, |rejection| rejection.details.as_slice());
    match details {
        [] | [_] => String::new(),
        several => several
            .iter()
            .map(|detail| format!("\n    {}: {}", detail.field, detail.message))
            .collect(),
    }
}
