//! Suspension of database processes.

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

    /// Calls `trigger`, and suspends the sessions that then fulfill the condition. If the service uses such a session for another
    /// purpose before it is found, `trigger` is called again.
    ///
    /// # Panics
    /// If there is none after ten seconds.
    pub async fn sessions_after(client: &Client, holds: &str, trigger: impl AsyncFn()) -> Self {
        let attempt = async || {
            trigger().await;
            Self::found(client, holds).await
        };
        until(Duration::from_secs(10), attempt).await
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

    /// Returns the number of processes.
    #[expect(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl Drop for SuspendedProcesses {
    fn drop(&mut self) {
        for pid in &self.0 {
            // A process whose connection was closed in the meantime ends by itself.
            let _ = kill(*pid, Signal::SIGCONT);
        }
    }
}
