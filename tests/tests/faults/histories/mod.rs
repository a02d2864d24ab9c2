//! Seeded fault histories: several clients send measurements, reads and replays to two replicas while faults are injected, and
//! afterwards nothing is lost, doubled or invented.
//!
//! A seed determines the kind of its faults, the faults, and what each client does. The order in which the requests of different
//! clients arrive is not determined, so a failure may need several runs of its seed. `script/histories --seeds A..B` runs any
//! number of seeds.

mod clients;
mod inspectors;
mod proxy;
mod reconnecting;
mod replica;
mod setting;

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::geteuid;
use partner_api_tests::cluster::{Database, SERVER};
use partner_api_tests::suspended_processes::SuspendedProcesses;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::time::{sleep, timeout};
use tokio_postgres::config::Host;

use self::clients::History;
use self::proxy::{Action, Place, Proxy, Trap};
use self::replica::{Addresses, OBJECT_STORE, Replica};
use self::setting::{Setting, StoreFault, faketime, set_clock};

/// The seeds to run, such as `0..1000`; by default [`SEEDS`].
const VARIABLE: &str = "HISTORY_SEEDS";
const SEEDS: Range<u64> = 0..20;

/// The number of replicas.
const REPLICAS: usize = 2;

/// The maximum time until a trapped statement is executed.
const PATIENCE: Duration = Duration::from_secs(2);

/// The kinds of faults. Seed `n` has the kind `n % 5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Connections,
    Database,
    Replicas,
    Storage,
    Clocks,
}

const KINDS: [Kind; 5] = [
    Kind::Connections,
    Kind::Database,
    Kind::Replicas,
    Kind::Storage,
    Kind::Clocks,
];

/// The statements whose connections are cut: the commit and the beginning of the shared transactions, admission, and the record
/// of pending measurements.
const STATEMENTS: [&str; 4] = ["COMMIT", "BEGIN", "WITH sent AS", "WITH found AS"];

/// A fault, and how long it lasts.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Trapped(usize, Trap),
    Cut(usize),
    BlackHole(usize, Duration),
    Refused(usize, Duration),
    DatabaseKilled(Duration),
    DatabaseFrozen(Duration),
    ReplicaKilled(usize),
    ReplicaFrozen(usize, Duration),
    DiskFull(Duration),
    ObjectStoreFails(StoreFault, Duration),
    /// The seconds by which the clock of the database is wrong.
    DatabaseClock(i32, Duration),
}

impl Kind {
    fn of(seed: u64) -> Self {
        KINDS[usize::try_from(seed).unwrap() % KINDS.len()]
    }

    fn fault(self, random: &mut ChaCha8Rng) -> Fault {
        let replica = random.random_range(0..REPLICAS);
        let time = Duration::from_millis(*[100, 400, 1_000, 2_500].choose(random).unwrap());
        match (self, random.random_range(0..10)) {
            (Kind::Connections, 0) => Fault::Cut(replica),
            (Kind::Connections, 1) => Fault::BlackHole(replica, time),
            (Kind::Connections, 2) => Fault::Refused(replica, time),
            (Kind::Connections, _) => {
                let place = *[Place::Before, Place::Within, Place::After].choose(random).unwrap();
                let action = *[Action::Cut, Action::Delay(time), Action::Swallow(time)]
                    .choose(random)
                    .unwrap();
                let statement = STATEMENTS.choose(random).unwrap();
                let trap = Trap {
                    statement,
                    place,
                    action,
                };
                Fault::Trapped(replica, trap)
            }
            (Kind::Database, 0..5) => Fault::DatabaseFrozen(time),
            (Kind::Database, _) => Fault::DatabaseKilled(time),
            (Kind::Replicas, 0..4) => Fault::ReplicaFrozen(replica, time),
            (Kind::Replicas, _) => Fault::ReplicaKilled(replica),
            (Kind::Storage, 0..5) => {
                let fault = [StoreFault::Closes, StoreFault::Responds500, StoreFault::Hangs];
                Fault::ObjectStoreFails(*fault.choose(random).unwrap(), time)
            }
            (Kind::Storage, _) => Fault::DiskFull(time),
            (Kind::Clocks, _) => {
                // Nothing is admitted while the clock is behind by more than the retention of nonces.
                let seconds = *[-4_000, -600, -60, -20, 20, 60, 600].choose(random).unwrap();
                Fault::DatabaseClock(seconds, time)
            }
        }
    }

    /// Panics if the machine lacks something, because a history that does not run must not pass.
    fn require(self) {
        match self {
            Kind::Storage => assert!(
                geteuid().is_root(),
                "only root can mount the small file system; script/test and script/histories leave this test out otherwise"
            ),
            Kind::Clocks => assert!(
                faketime().is_some(),
                "libfaketime must be installed; script/setup --tests installs it"
            ),
            Kind::Connections | Kind::Database | Kind::Replicas => {}
        }
    }
}

/// SVC-2, KEY-6, MEA-10
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_while_connections_fail() {
    run(Kind::Connections).await;
}

/// SVC-2, KEY-6, MEA-10
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_while_the_database_is_killed_and_frozen() {
    run(Kind::Database).await;
}

/// SVC-2, KEY-6, MEA-10
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_while_replicas_are_killed_and_frozen() {
    run(Kind::Replicas).await;
}

/// SVC-2, KEY-6, MEA-10
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(target_os = "linux"), ignore = "mounts a tmpfs")]
async fn nothing_is_lost_or_doubled_while_the_disk_is_full_and_the_object_store_fails() {
    run(Kind::Storage).await;
}

/// SVC-2, KEY-6, MEA-10
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(target_os = "linux"), ignore = "preloads libfaketime")]
async fn nothing_is_lost_or_doubled_while_clocks_are_wrong() {
    run(Kind::Clocks).await;
}

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var(VARIABLE) else {
        return SEEDS;
    };
    let bounds = text
        .split_once("..")
        .and_then(|(begin, end)| Some(begin.parse().ok()?..end.parse().ok()?));
    bounds.unwrap_or_else(|| panic!("{VARIABLE} must have the form 0..1000"))
}

/// Runs the histories of a kind, one after another, and fails with the violations of all of them.
async fn run(kind: Kind) {
    let seeds = seeds().filter(|seed| Kind::of(*seed) == kind);
    kind.require();
    let mut place = None;
    let mut failures = String::new();
    for seed in seeds {
        if place.is_none() {
            place = Some(Setting::new(kind).await);
        }
        let violations = history(seed, kind, place.as_mut().unwrap()).await;
        if !violations.is_empty() {
            failures += &format!(
                "seed {seed}: {}\n  run it again: script/histories --seeds {seed}..{}\n",
                violations.join("\n  "),
                seed + 1
            );
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// Runs a history; returns its violations.
async fn history(seed: u64, kind: Kind, setting: &mut Setting) -> Vec<String> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let faults: Vec<Fault> = (0..random.random_range(2..5))
        .map(|_| kind.fault(&mut random))
        .collect();
    // Dropped after the replicas.
    let (database, _of_the_suite) = match &setting.cluster {
        Some(cluster) => (cluster.copy(&format!("history_{seed}")).await, None),
        None => {
            let database = Database::create().await;
            (database.config(), Some(database))
        }
    };
    let user = match &setting.cluster {
        Some(_) => database.get_user().unwrap(),
        None => SERVER,
    };
    let [Host::Unix(socket)] = database.get_hosts() else {
        panic!("a private cluster has one socket");
    };
    let mut proxies = Vec::new();
    let mut replicas = Vec::new();
    for number in 0..REPLICAS {
        let proxy = Proxy::start(socket.join(".s.PGSQL.5432")).await;
        let name = database.get_dbname().unwrap();
        let url = format!("postgresql://{user}@{}/{name}?sslmode=disable", proxy.address);
        replicas.push(Restartable::start(url, setting, kind, number).await);
        proxies.push(proxy);
    }
    let history = History::new(
        seed,
        replicas.iter().map(|replica| replica.addresses).collect(),
        kind == Kind::Clocks,
    );
    let clients = history.run(database.clone(), kind == Kind::Storage);
    let strikes = async {
        let mut missed = 0;
        for fault in &faults {
            // In the middle of the traffic.
            let mut responses = history.responses.subscribe();
            let enough = *responses.borrow() + random.random_range(3..15);
            let _ = timeout(PATIENCE, responses.wait_for(|responses| *responses >= enough)).await;
            let has_struck = strike(*fault, setting, &proxies, &mut replicas).await;
            missed += usize::from(!has_struck);
        }
        history.faults_are_over.store(true, Ordering::SeqCst);
        missed
    };
    let ((), missed) = futures::join!(clients, strikes);
    let objects = setting.objects.as_ref().map(|objects| objects.folder.clone());
    let (violations, counts) = history.check(&database, objects.as_deref()).await;
    drop((replicas, proxies));
    if let Some(cluster) = &setting.cluster {
        cluster.remove(database.get_dbname().unwrap()).await;
    }
    println!("seed {seed}: {counts}, faults: {faults:?}, of which {missed} did not strike");
    violations
}

/// Lets a fault strike, waits for its end, and repairs what does not repair itself. Returns whether it struck.
async fn strike(fault: Fault, setting: &mut Setting, proxies: &[Proxy], replicas: &mut [Restartable]) -> bool {
    match fault {
        Fault::Trapped(replica, trap) => return proxies[replica].trap(trap, PATIENCE).await,
        Fault::Cut(replica) => proxies[replica].cut(),
        Fault::BlackHole(replica, time) => proxies[replica].black_hole(time).await,
        Fault::Refused(replica, time) => proxies[replica].refuse(time).await,
        Fault::DatabaseKilled(time) => {
            let cluster = setting.cluster.as_mut().unwrap();
            cluster.kill().await;
            sleep(time).await;
            cluster.restart().await;
        }
        Fault::DatabaseFrozen(time) => {
            let processes = setting.cluster.as_ref().unwrap().processes().await;
            let frozen = SuspendedProcesses::processes(processes);
            sleep(time).await;
            drop(frozen);
        }
        Fault::ReplicaKilled(replica) => replicas[replica].restart().await,
        Fault::ReplicaFrozen(replica, time) => {
            replicas[replica].running().signal(Signal::SIGSTOP);
            sleep(time).await;
            replicas[replica].running().signal(Signal::SIGCONT);
        }
        Fault::DiskFull(time) => {
            let disk = setting.disk.as_ref().unwrap();
            disk.fill();
            sleep(time).await;
            disk.free();
            // Without space for its log, PostgreSQL stops, and cannot recover until there is space.
            let cluster = setting.cluster.as_mut().unwrap();
            if !cluster.accepts_connections().await {
                cluster.restart().await;
            }
        }
        Fault::ObjectStoreFails(fault, time) => setting.objects.as_ref().unwrap().fail(fault, time).await,
        Fault::DatabaseClock(seconds, time) => {
            set_clock(setting.folder.path(), seconds);
            sleep(time).await;
            set_clock(setting.folder.path(), 0);
        }
    }
    true
}

/// A replica that is restarted with the same settings.
struct Restartable {
    url: String,
    folder: PathBuf,
    environment: Vec<(&'static str, OsString)>,
    addresses: Addresses,
    running: Option<Replica>,
}

impl Restartable {
    async fn start(url: String, setting: &Setting, kind: Kind, number: usize) -> Self {
        let folder = setting.folder.path();
        // The clocks of replicas and of their partners may differ by up to 300 s.
        let mut environment = match kind {
            Kind::Clocks => vec![
                ("LD_PRELOAD", faketime().unwrap().into_os_string()),
                ("FAKETIME", ["-100", "+100"][number].into()),
                ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
            ],
            _ => Vec::new(),
        };
        if let Some(objects) = &setting.objects {
            environment.push((OBJECT_STORE, objects.url.clone().into()));
        }
        let addresses = Addresses::new();
        let replica = Replica::start(addresses, &url, folder, &environment).await;
        Self {
            url,
            folder: folder.to_owned(),
            environment,
            addresses,
            running: Some(replica),
        }
    }

    fn running(&self) -> &Replica {
        self.running.as_ref().unwrap()
    }

    async fn restart(&mut self) {
        self.running.take().unwrap().kill().await;
        let replica = Replica::start(self.addresses, &self.url, &self.folder, &self.environment).await;
        self.running = Some(replica);
    }
}
