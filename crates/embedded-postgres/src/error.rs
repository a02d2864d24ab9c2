//! The error type.

use std::{io, path::PathBuf};

use thiserror::Error;

/// An error while starting, using or stopping the private cluster.
#[derive(Debug, Error)]
pub enum EmbeddedPostgresError {
    /// No PostgreSQL server programs were found. The message names the packages to install.
    #[error(
        "no PostgreSQL server was found (searched: {}).\n\
         Install one, then start again:\n  \
           Debian, Ubuntu:  apt-get install postgresql\n  \
           macOS:           brew install postgresql@17\n\
         or configure the folder that contains postgres, initdb and pg_ctl",
        display_all(searched)
    )]
    NotInstalled {
        /// The searched folders, in order.
        searched: Vec<PathBuf>,
    },
    /// The cluster belongs to a major version that is not installed.
    #[error(
        "the cluster in {} was created by PostgreSQL {needed}, but only {found} is installed. \
         Install PostgreSQL {needed} (apt-get install postgresql-{needed}, brew install postgresql@{needed}), \
         or delete that folder to start with an empty cluster",
        cluster.display()
    )]
    VersionMissing {
        /// The data folder of the cluster.
        cluster: PathBuf,
        /// The major version of the cluster.
        needed: u32,
        /// The installed versions.
        found: String,
    },
    /// Another process runs the cluster of this data folder.
    #[error("the data folder {} is in use by another process{holder}; stop it, or choose another folder", data_dir.display())]
    InUse {
        /// The data folder.
        data_dir: PathBuf,
        /// ` (process <id>)`, if it is known.
        holder: String,
    },
    /// The process runs as root, and there is no other user to run PostgreSQL as.
    #[error("PostgreSQL does not run as root, and this machine has neither a user `postgres` nor a user `nobody`")]
    NoAccount,
    /// The process runs as root, and no folder was found that the other user can access.
    #[error(
        "PostgreSQL runs as the user `{account}`, who cannot write to any of these folders: {}",
        display_all(tried)
    )]
    Unreachable {
        /// The user that PostgreSQL would run as.
        account: String,
        /// The folders that were tried.
        tried: Vec<PathBuf>,
    },
    /// The folder that contained the cluster does not exist anymore.
    #[error(
        "the cluster of this data folder was stored in {}, which does not exist anymore; \
         delete {} to start with an empty cluster",
        location.display(), location_file.display()
    )]
    LocationGone {
        /// The missing folder.
        location: PathBuf,
        /// The file that contains its path.
        location_file: PathBuf,
    },
    /// A file operation failed.
    #[error("failed to {action} {}: {source}", path.display())]
    Io {
        /// The operation, as a verb phrase.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// One of PostgreSQL's programs failed.
    #[error("{program} failed ({status}): {output}")]
    Program {
        /// The name of the program.
        program: &'static str,
        /// The exit status, or that the program timed out.
        status: String,
        /// The output of the program.
        output: String,
    },
    /// The server did not start.
    #[error("PostgreSQL {reason}; the end of its log ({}):\n{tail}", log.display())]
    Start {
        /// The failure, as a verb phrase.
        reason: String,
        /// The server's log file.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },
    /// The running server rejected a statement.
    #[error("PostgreSQL rejected a statement: {}", describe(.0))]
    Query(#[from] tokio_postgres::Error),
}

impl EmbeddedPostgresError {
    /// Returns a function for `map_err` on a file operation.
    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

fn display_all(paths: &[PathBuf]) -> String {
    let shown: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    if shown.is_empty() {
        "nothing".to_owned()
    } else {
        shown.join(", ")
    }
}

/// Returns the server's message if there is one, because tokio-postgres shows only "db error".
fn describe(error: &tokio_postgres::Error) -> String {
    error
        .as_db_error()
        .map_or_else(|| error.to_string(), ToString::to_string)
}
