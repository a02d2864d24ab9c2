//! Why there is no measurement.

use std::io;

use embedded_postgres::EmbeddedPostgresError;
use partner_api_store::DbError;
use partner_api_store::pool::PoolSetupError;
use thiserror::Error;

/// Why there is no measurement.
#[derive(Debug, Error)]
pub enum BenchError {
    /// The private cluster does not start.
    #[error(transparent)]
    Postgres(#[from] EmbeddedPostgresError),
    /// The data cannot be made.
    #[error("the data cannot be made: {0}")]
    Data(#[from] DbError),
    /// The sandbox's data cannot be made.
    #[error("the sandbox's data cannot be made: {0}")]
    Sandbox(#[from] partner_api_sandbox::SandboxError),
    /// The pool that fills the database cannot be made.
    #[error(transparent)]
    Pool(#[from] PoolSetupError),
    /// A file, a process or a socket.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// Something is not as the benchmark needs it; the text says what.
    #[error("{0}")]
    Unexpected(String),
}

impl BenchError {
    /// An operation of the system that failed.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

impl From<tokio_postgres::Error> for BenchError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Data(error.into())
    }
}
