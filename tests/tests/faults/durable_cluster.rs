//! A PostgreSQL cluster for one test, which the test kills and restarts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use embedded_postgres::{EmbeddedPostgres, Options};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use partner_api_store::migrate::migrate;
use partner_api_tests::wait::until;
use partner_api_tests::{cluster, fixture};
use tempfile::TempDir;
use tokio_postgres::{Config, NoTls};

/// A cluster whose commits survive a crash, with the fixture data.
pub struct DurableCluster {
    // In this order: the server stops before its folder is removed.
    postgres: Option<EmbeddedPostgres>,
    folder: TempDir,
    options: Options,
}

impl DurableCluster {
    pub async fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), Options::of("partner-api")).await
    }

    pub async fn start_in(folder: TempDir, options: Options) -> Self {
        // As root, PostgreSQL runs as another user, who must be able to enter.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let postgres = EmbeddedPostgres::start(folder.path(), options.clone()).await.unwrap();
        migrate(&postgres.config()).await.unwrap();
        fixture::fill(&cluster::connect(&postgres.config()).await).await;
        Self {
            postgres: Some(postgres),
            folder,
            options,
        }
    }

    /// Creates a database as a copy of the one with the fixture data.
    pub async fn copy(&self, name: &str) -> Config {
        let original = self.config();
        let ended = async || {
            let copied = self
                .running()
                .create_database_from(name, original.get_dbname().unwrap())
                .await;
            // The session that has filled the original may not have ended yet.
            copied.ok()
        };
        until(Duration::from_secs(30), ended).await
    }

    /// Removes a copy.
    pub async fn remove(&self, name: &str) {
        let client = cluster::connect(&self.running().config_of("postgres")).await;
        let drop = format!("DROP DATABASE {name} WITH (FORCE)");
        client.batch_execute(&drop).await.unwrap();
    }

    fn running(&self) -> &EmbeddedPostgres {
        self.postgres.as_ref().unwrap()
    }

    pub fn config(&self) -> Config {
        self.running().config()
    }

    /// Its data folder.
    pub fn data(&self) -> PathBuf {
        self.running().folder().join("data")
    }

    /// The server's processes, beginning with the postmaster.
    pub async fn processes(&self) -> Vec<Pid> {
        let client = cluster::connect(&self.config()).await;
        // Without this session, which ends now.
        let others = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
        let children = client.query(others, &[]).await.unwrap();
        let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let postmaster: i32 = file.lines().next().unwrap().parse().unwrap();
        let children = children.iter().map(|child| child.get(0));
        std::iter::once(postmaster).chain(children).map(Pid::from_raw).collect()
    }

    /// Whether it serves or recovers: a server that has stopped does not start by itself.
    pub async fn accepts_connections(&self) -> bool {
        for _ in 0..20 {
            if self.config().connect(NoTls).await.is_ok() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        false
    }

    /// Kills the server and all of its processes; nothing more is flushed.
    pub async fn kill(&self) {
        // The postmaster first, so that it does not start children again.
        for process in self.processes().await {
            // A child may have ended by itself.
            let _ = kill(process, Signal::SIGKILL);
        }
    }

    /// Starts the server again, which recovers what was flushed.
    pub async fn restart(&mut self) {
        self.postgres = None;
        self.postgres = Some(
            EmbeddedPostgres::start(self.folder.path(), self.options.clone())
                .await
                .unwrap(),
        );
    }
}
