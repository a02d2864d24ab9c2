//! Errors of the benchmark.

use std::io;

use embedded_postgres::EmbeddedPostgresError;
use partner_api_store::DbError;
use partner_api_store::pool::PoolSetupError;
use thiserror::Error;

/// An error that prevents a measurement.
#[derive(Debug, Error)]
pub enum BenchError {
    /// The private cluster failed to start.
    #[error(transparent)]
    Postgres(#[from] EmbeddedPostgresError),
    /// The data cannot be created.
    #[error("failed to create the data: {0}")]
    Data(#[from] DbError),
    /// The sandbox's data cannot be created.
    #[error("failed to create the sandbox's data: {0}")]
    Sandbox(#[from] partner_api_sandbox::SandboxError),
    /// The pool that fills the database cannot be created.
    #[error(transparent)]
    Pool(#[from] PoolSetupError),
    /// An operation on a file, a process or a socket failed.
    #[error("failed to {what}: {source}")]
    Io {
        /// The operation.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// Something else is not as the benchmark needs it.
    #[error("{0}")]
    Unexpected(String),
}

impl BenchError {
    /// Returns a function that wraps the error of an operation, such as "read a file".
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
