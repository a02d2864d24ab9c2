//! Processes of the database that hang, for a while.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio_postgres::Client;

use crate::wait::until;

/// Processes that are stopped, and go on when the test is over.
pub struct Stopped(Vec<Pid>);

impl Stopped {
    /// Stops the sessions of the client's own database, but the client's, of which this holds. The cluster is everybody's: those
    /// of other databases are other tests'.
    ///
    /// # Panics
    /// Where there is none.
    pub async fn sessions(client: &Client, holds: &str) -> Self {
        let found = Self::found(client, holds).await;
        found.unwrap_or_else(|| panic!("no session of which {holds}"))
    }

    /// The same, of what holds of a session once `ask` was answered. Others of the service may use that session next, before it is
    /// looked for: it is asked again until one is found.
    ///
    /// # Panics
    /// Where there is none after many tries.
    pub async fn sessions_after(client: &Client, holds: &str, ask: impl AsyncFn()) -> Self {
        let asked = async || {
            ask().await;
            Self::found(client, holds).await
        };
        until(Duration::from_secs(10), asked).await
    }

    async fn found(client: &Client, holds: &str) -> Option<Self> {
        let query = format!(
            "SELECT pid FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND ({holds})"
        );
        let rows = client.query(&query, &[]).await.unwrap();
        let pids: Vec<Pid> = rows.iter().map(|row| Pid::from_raw(row.get(0))).collect();
        (!pids.is_empty()).then(|| Self::processes(pids))
    }

    /// Stops processes, of a cluster of the test's own.
    pub fn processes(pids: Vec<Pid>) -> Self {
        for pid in &pids {
            kill(*pid, Signal::SIGSTOP).unwrap();
        }
        Stopped(pids)
    }

    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for pid in &self.0 {
            // One that was hung up on ends by itself when it goes on.
            let _ = kill(*pid, Signal::SIGCONT);
        }
    }
}
