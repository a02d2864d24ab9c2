//! The process's file descriptors: every connection takes one.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// How many descriptors the process may have open.
#[derive(Clone, Copy, Debug)]
pub struct Descriptors {
    /// The limit that was found.
    pub before: u64,
    /// The limit that holds now.
    pub limit: u64,
}

impl Descriptors {
    /// Raises the soft limit to the hard one. The soft limit of 1,024 is there for programs that call `select`, which
    /// nothing here does.
    ///
    /// # Errors
    /// When the operating system does not tell the limits. One that does not let them be raised keeps them.
    pub fn raise() -> io::Result<Self> {
        let (before, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
        let limit = match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
            Ok(()) => hard,
            Err(_) => before,
        };
        Ok(Descriptors { before, limit })
    }
}
