//! Processes of the database that a test suspends.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio_postgres::Client;

use crate::wait::until;

/// Suspended processes; they resume when this value is dropped.
pub struct SuspendedProcesses(Vec<Pid>);

impl SuspendedProcesses {
    /// Suspends the sessions of the client's database that fulfill a condition, except the client's own. Sessions of other
    /// databases belong to other tests.
    ///
    /// # Panics
    /// If there is none.
    pub async fn sessions(client: &Client, holds: &str) -> Self {
        let found = Self::found(client, holds).await;
        found.unwrap_or_else(|| panic!("no session of which {holds}"))
    }

    /// The same for sessions that fulfill the condition after `ask`. The service may use the session for something else before it
    /// is found; then this asks again.
    ///
    /// # Panics
    /// If there is none after ten seconds.
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

    /// Suspends processes of the test's own cluster.
    pub fn processes(pids: Vec<Pid>) -> Self {
        for pid in &pids {
            kill(*pid, Signal::SIGSTOP).unwrap();
        }
        SuspendedProcesses(pids)
    }

    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl Drop for SuspendedProcesses {
    fn drop(&mut self) {
        for pid in &self.0 {
            // A process whose connection was closed meanwhile ends by itself.
            let _ = kill(*pid, Signal::SIGCONT);
        }
    }
}
