//! Processes of the database that hang, for a while.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio_postgres::Client;

/// Processes that are stopped, and go on when the test is over.
pub struct Stopped(Vec<Pid>);

impl Stopped {
    /// Stops the sessions of the client's own database, but the client's, of which this holds. The cluster is everybody's: those
    /// of other databases are other tests'.
    ///
    /// # Panics
    /// Where there is none.
    pub async fn sessions(client: &Client, holds: &str) -> Self {
        let query = format!(
            "SELECT pid FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND ({holds})"
        );
        let rows = client.query(&query, &[]).await.unwrap();
        assert!(!rows.is_empty(), "no session of which {holds}");
        Self::processes(rows.iter().map(|row| Pid::from_raw(row.get(0))).collect())
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
