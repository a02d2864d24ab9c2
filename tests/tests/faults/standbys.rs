//! Reads from a standby that responds and whose lag is small enough.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool_postgres::Pool;
use embedded_postgres::{Binaries, EmbeddedPostgres, Options as Postgres, standard_folders};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use partner_api_store::pool::{self, PoolSettings};
use partner_api_store::standby::{StandbyError, Standbys};
use partner_api_tests::options::Options;
use partner_api_tests::{ALPHA, Service, cluster};
use tempfile::TempDir;
use tokio_postgres::config::Host;

use super::durable_cluster::DurableCluster;

const ORGANIZATIONS: &str = "/api/v1/partner/organizations";
const RENAME: &str = "UPDATE organizations SET name = 'Renamed'";

/// The maximum time of a response: 2 s on an idle machine.
const BOUND: Duration = Duration::from_secs(5);

/// A hot standby of a cluster.
struct Standby {
    // In this order: the server stops before its folder is removed.
    postgres: EmbeddedPostgres,
    _folder: TempDir,
}

impl Standby {
    async fn of(primary: &DurableCluster) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let home = folder.path().join("postgres");
        fs::DirBuilder::new().mode(0o700).create(&home).unwrap();
        // As root, PostgreSQL runs as another user, who must own the copy.
        let owner = fs::metadata(primary.data()).unwrap();
        chown(&home, Some(owner.uid()), Some(owner.gid())).unwrap();
        let config = primary.config();
        let [Host::Unix(socket)] = config.get_hosts() else {
            panic!("a private cluster has one socket");
        };
        let program = Binaries::find(&standard_folders(), None)
            .unwrap()
            .program("pg_basebackup");
        let mut command = Command::new(program);
        command.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--pgdata"]);
        command.arg(home.join("data")).arg("--host").arg(socket);
        command.arg("--username").arg(config.get_user().unwrap());
        command.current_dir(&home).uid(owner.uid()).gid(owner.gid());
        let copied = tokio::task::spawn_blocking(move || command.output())
            .await
            .unwrap()
            .unwrap();
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        let postgres = EmbeddedPostgres::start(folder.path(), Postgres::of("partner-api"))
            .await
            .unwrap();
        Self {
            postgres,
            _folder: folder,
        }
    }

    fn with_max_lag(&self, lag: Duration) -> Arc<Standbys> {
        Standbys::new(pool_of(self.postgres.config()), lag)
    }

    /// A service that reads from it while it lags by at most `lag`. Returns once the standby is usable.
    async fn serving(&self, primary: &DurableCluster, lag: Duration) -> (Service, Arc<Standbys>) {
        let standbys = self.with_max_lag(lag);
        let options = Options {
            standbys: Some(standbys.clone()),
            ..Options::default()
        };
        let service = Service::start_on_with(primary.config(), options).await;
        service.eventually(async || standbys.is_usable()).await;
        (service, standbys)
    }

    /// Pauses the replay; earlier data can still be read.
    async fn pause(&self) {
        let client = cluster::connect(&self.postgres.config()).await;
        client.batch_execute("SELECT pg_wal_replay_pause()").await.unwrap();
        let paused = "SELECT pg_get_wal_replay_pause_state() = 'paused'";
        while !client.query_one(paused, &[]).await.unwrap().get::<_, bool>(0) {
            tokio::task::yield_now().await;
        }
    }

    async fn resume(&self) {
        let client = cluster::connect(&self.postgres.config()).await;
        client.batch_execute("SELECT pg_wal_replay_resume()").await.unwrap();
    }

    async fn is_renamed(&self) -> bool {
        let client = cluster::connect(&self.postgres.config()).await;
        let renamed = "SELECT EXISTS (SELECT FROM organizations WHERE name = 'Renamed')";
        client.query_one(renamed, &[]).await.unwrap().get(0)
    }

    /// Sends a signal to all of its processes.
    async fn signal(&self, signal: Signal) -> Vec<Pid> {
        let client = cluster::connect(&self.postgres.config()).await;
        let children = client.query("SELECT pid FROM pg_stat_activity", &[]).await.unwrap();
        let file = fs::read_to_string(self.postgres.folder().join("data/postmaster.pid")).unwrap();
        let postmaster: i32 = file.lines().next().unwrap().parse().unwrap();
        let children = children.iter().map(|child| child.get(0));
        let processes: Vec<Pid> = std::iter::once(postmaster).chain(children).map(Pid::from_raw).collect();
        for process in &processes {
            // A process may have ended by itself.
            let _ = kill(*process, signal);
        }
        processes
    }
}

fn pool_of(config: tokio_postgres::Config) -> Pool {
    let settings = PoolSettings {
        size: 3,
        ..PoolSettings::default()
    };
    pool::pool(config, &settings).unwrap()
}

/// Whether the service shows the new name. Panics if the response is not 200 or late.
async fn shows_renamed(service: &Service) -> bool {
    let since = Instant::now();
    let response = service.get(&ALPHA, ORGANIZATIONS).await;
    response.assert_status(200);
    assert!(since.elapsed() < BOUND, "{:?}", since.elapsed());
    let shown = response.json()["data"].as_array().unwrap().clone();
    assert!(!shown.is_empty());
    shown.iter().all(|organization| organization["name"] == "Renamed")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_uses_a_standby_whose_lag_is_small_enough() {
    let primary = DurableCluster::start().await;
    let standby = Standby::of(&primary).await;
    let (service, standbys) = standby.serving(&primary, Duration::from_secs(3_600)).await;
    standby.pause().await;
    service.db.batch_execute(RENAME).await.unwrap();
    assert!(!shows_renamed(&service).await, "the primary was read");
    assert!(standbys.is_usable());
    standby.resume().await;
    service.eventually(async || shows_renamed(&service).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_that_lags_too_much_is_not_read_until_it_has_caught_up() {
    let primary = DurableCluster::start().await;
    let standby = Standby::of(&primary).await;
    let (service, standbys) = standby.serving(&primary, Duration::from_millis(500)).await;
    standby.pause().await;
    service.db.batch_execute(RENAME).await.unwrap();
    service.eventually(async || shows_renamed(&service).await).await;
    assert!(!standbys.is_usable());
    assert!(!standby.is_renamed().await, "the standby was not behind");
    standby.resume().await;
    service
        .eventually(async || standbys.is_usable() && shows_renamed(&service).await)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_from_a_standby_that_dies_is_served_by_the_primary() {
    let primary = DurableCluster::start().await;
    let standby = Standby::of(&primary).await;
    let (service, standbys) = standby.serving(&primary, Duration::from_secs(3_600)).await;
    service.db.batch_execute(RENAME).await.unwrap();
    assert!(standbys.is_usable());
    standby.signal(Signal::SIGKILL).await;
    assert!(shows_renamed(&service).await);
    assert!(!standbys.is_usable());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_from_a_standby_that_hangs_is_served_by_the_primary_in_time() {
    let primary = DurableCluster::start().await;
    let standby = Standby::of(&primary).await;
    let (service, standbys) = standby.serving(&primary, Duration::from_secs(3_600)).await;
    service.db.batch_execute(RENAME).await.unwrap();
    assert!(standbys.is_usable());
    let suspended = standby.signal(Signal::SIGSTOP).await;
    let answered = shows_renamed(&service).await;
    let is_usable = standbys.is_usable();
    for process in suspended {
        let _ = kill(process, Signal::SIGCONT);
    }
    assert!(answered && !is_usable, "{answered} {is_usable}");
    service.eventually(async || standbys.is_usable()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_the_standby_does_not_finish_is_served_by_the_primary_in_time() {
    let primary = DurableCluster::start().await;
    let standby = Standby::of(&primary).await;
    let (service, standbys) = standby.serving(&primary, Duration::from_secs(3_600)).await;
    let lock = format!("BEGIN; {RENAME}; LOCK TABLE organizations IN ACCESS EXCLUSIVE MODE");
    service.db.batch_execute(&lock).await.unwrap();
    // The lock reaches the standby with the next commit.
    let other = cluster::connect(&primary.config()).await;
    let of_standby = cluster::connect(&standby.postgres.config()).await;
    service
        .eventually(async || {
            other
                .batch_execute("UPDATE report_sweep SET due_at = due_at")
                .await
                .unwrap();
            let locked = "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'organizations'::regclass::oid)";
            of_standby.query_one(locked, &[]).await.unwrap().get(0)
        })
        .await;
    standby.pause().await;
    service.db.batch_execute("COMMIT").await.unwrap();
    assert!(standbys.is_usable());
    assert!(shows_renamed(&service).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_of_another_cluster_and_a_primary_are_not_read() {
    let (primary, other) = tokio::join!(DurableCluster::start(), DurableCluster::start());
    // Far ahead of the first, so that its WAL position alone would be accepted.
    let ahead = cluster::connect(&other.config()).await;
    ahead.batch_execute("SELECT pg_switch_wal()").await.unwrap();
    let standby = Standby::of(&other).await;
    let lag = Duration::from_secs(3_600);
    let of_primary = pool_of(primary.config());
    for foreign in [standby.with_max_lag(lag), Standbys::new(pool_of(primary.config()), lag)] {
        let rejected = foreign.step(&of_primary).await;
        assert!(matches!(rejected, Err(StandbyError::Behind(_))), "{rejected:?}");
        assert!(!foreign.is_usable());
    }
    let own = standby.with_max_lag(lag);
    let of_other = pool_of(other.config());
    // The standby reaches the recorded position a moment later at the latest.
    while own.step(&of_other).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert!(own.is_usable());
}
