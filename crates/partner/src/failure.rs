//! Why a command was not done.

use std::io;
use std::path::Path;

use partner_api_client::{ConnectError, Problem};
use serde_json::{Value, json};
use thiserror::Error;

/// Why a command was not done. Each message says what is wrong, where, and what to do next.
#[derive(Debug, Error)]
pub enum Failure {
    /// A value cannot be meant.
    #[error("{0}")]
    Usage(String),
    /// There is nothing of that name on this machine.
    #[error("{0}")]
    NotFound(String),
    /// A rule forbids it: nothing is overwritten, nobody else is let in.
    #[error("{0}")]
    Refused(String),
    /// The service gave nothing.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// No client can be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Something of this machine failed; the message says what.
    #[error("{0}")]
    Failed(String),
    /// What a command gives cannot be printed.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
    /// The local copy cannot be read or written.
    #[error("the copy: {0}")]
    Copy(#[from] rusqlite::Error),
}

/// What a command's end says to a script.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed: the network, the service, this machine or a scenario; the message says which
  2  a value or an option cannot be meant, or the service calls the request invalid
  3  there is nothing of that name, or it is not open to you
  4  refused: the key, its scope, or a file that would be overwritten";

impl Failure {
    /// A file or folder, and what happened to it.
    pub(crate) fn of(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Failed(format!("{}: {error}", path.display()))
    }

    /// See [`EXIT_CODES`].
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Connect(_) => 2,
            Self::NotFound(_) => 3,
            Self::Refused(_) => 4,
            Self::Problem(problem) => match problem.status().map(|status| status.as_u16()) {
                Some(400 | 413) => 2,
                Some(404) => 3,
                Some(401 | 403) => 4,
                _ if matches!(problem, Problem::Unsendable(_)) => 2,
                _ => 1,
            },
            Self::Failed(_) | Self::Output(_) | Self::Copy(_) => 1,
        }
    }

    /// The same for programs, in the form of the service's own errors.
    pub fn json(&self) -> Value {
        let problem = match self {
            Self::Problem(problem) => Some(problem),
            _ => None,
        };
        json!({ "error": {
            "code": problem.and_then(|problem| problem.code().map(ToString::to_string)),
            "message": self.to_string(),
            "request_id": problem.and_then(Problem::request_id),
        }})
    }
}
