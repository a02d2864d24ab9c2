//! What can go wrong.

use std::{io, path::PathBuf};

use thiserror::Error;

/// Why the private cluster could not be started, used or stopped.
#[derive(Debug, Error)]
pub enum EmbeddedPostgresError {
    /// No PostgreSQL server programs were found; the message says what to install.
    #[error(
        "no PostgreSQL server was found (searched: {}).\n\
         Install one, then start again:\n  \
           Debian, Ubuntu:  apt-get install postgresql\n  \
           macOS:           brew install postgresql@17\n\
         or name the folder that holds postgres, initdb and pg_ctl",
        display_all(searched)
    )]
    NotInstalled {
        /// The folders that were looked into, in order.
        searched: Vec<PathBuf>,
    },
    /// The cluster belongs to a major version that is not installed.
    #[error(
        "the cluster in {} was made by PostgreSQL {needed}, but installed is only: {found}. \
         Install PostgreSQL {needed} (apt-get install postgresql-{needed}, brew install postgresql@{needed}), \
         or delete that folder to begin anew",
        cluster.display()
    )]
    VersionMissing {
        /// The cluster's data folder.
        cluster: PathBuf,
        /// Its major version.
        needed: u32,
        /// What is installed.
        found: String,
    },
    /// Another process runs the cluster of this data folder.
    #[error("the data folder {} is in use by another process{holder}; stop it, or choose another folder", data_dir.display())]
    InUse {
        /// The data folder.
        data_dir: PathBuf,
        /// ` (process <id>)`, where it is known.
        holder: String,
    },
    /// Started as root, and there is no other user to run Postgres as.
    #[error("PostgreSQL does not run as root, and this machine has neither a user `postgres` nor a user `nobody`")]
    NoAccount,
    /// Started as root, and no folder was found that the other user can reach.
    #[error(
        "PostgreSQL runs as the user `{account}`, which can reach none of: {}",
        display_all(tried)
    )]
    Unreachable {
        /// The user Postgres would run as.
        account: String,
        /// The folders that were tried.
        tried: Vec<PathBuf>,
    },
    /// The folder in which the cluster was kept is gone.
    #[error(
        "the cluster of this data folder was kept in {}, which is gone; delete {} to begin anew",
        location.display(), note.display()
    )]
    LocationGone {
        /// Where the cluster was.
        location: PathBuf,
        /// The file that remembers it.
        note: PathBuf,
    },
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb phrase.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// One of Postgres's programs failed.
    #[error("{program} failed ({status}): {output}")]
    Program {
        /// The program's name.
        program: &'static str,
        /// Its exit status, or that it ran out of time.
        status: String,
        /// What it printed.
        output: String,
    },
    /// The server did not come up.
    #[error("PostgreSQL {reason}; the end of its log ({}):\n{tail}", log.display())]
    Start {
        /// What happened, as a predicate.
        reason: String,
        /// The server's log file.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// The running server refused a statement.
    #[error("PostgreSQL refused: {}", describe(.0))]
    Query(#[from] tokio_postgres::Error),
}

impl EmbeddedPostgresError {
    /// For `map_err` on a file operation.
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

/// The server's own words where there are any: tokio-postgres shows only "db error".
fn describe(error: &tokio_postgres::Error) -> String {
    error
        .as_db_error()
        .map_or_else(|| error.to_string(), ToString::to_string)
}
