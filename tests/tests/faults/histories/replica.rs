//! Replicas as processes, so that they can be killed and suspended.
//!
//! The process is this test program itself, which executes only [`a_replica_serves_until_its_input_ends`].

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use partner_api_store::pool;
use partner_api_tests::port::free_address;
use partner_api_tests::{Options, Service};
use rand::Rng as _;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::setting::ObjectStore;

/// Contains the URL of the database of a replica.
const DATABASE: &str = "HISTORY_DATABASE";

/// Contains the URL of the object store of a replica; without it, the objects are in a folder.
pub const OBJECT_STORE: &str = "HISTORY_OBJECT_STORE";

/// Contain the addresses of a replica.
const PUBLIC: &str = "HISTORY_PUBLIC";
const INSPECTORS: &str = "HISTORY_INSPECTORS";

/// Is in the output of a replica that serves.
const SERVING: &str = "the replica serves";

/// The addresses of a replica, which it keeps over a restart.
///
/// They are on a loopback address of its own. While a killed replica starts again, no other server of the suite can respond to its
/// clients.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// Of the public listener.
    pub public: SocketAddr,
    /// Of the inspectors' listener.
    pub inspectors: SocketAddr,
}

impl Addresses {
    /// Returns addresses that no server uses.
    pub fn new() -> Self {
        let own = Ipv4Addr::from_bits(rand::rng().random_range(0x7f01_0000..0x7fff_0000));
        let [public, inspectors] = [free_address(), free_address()].map(|free| SocketAddr::from((own, free.port())));
        Self { public, inspectors }
    }
}

/// A running replica. It is killed when it is dropped.
pub struct Replica {
    process: Child,
    // Held open, because the process writes a line when its test ends.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Replica {
    /// Starts a replica at these addresses with its files in `folder`, and waits until it serves.
    pub async fn start(addresses: Addresses, database: &str, folder: &Path, environment: &[(&str, OsString)]) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "histories::replica::a_replica_serves_until_its_input_ends"])
            .args(["--include-ignored", "--nocapture"])
            .env(DATABASE, database)
            .env(PUBLIC, addresses.public.to_string())
            .env(INSPECTORS, addresses.inspectors.to_string())
            .env("TMPDIR", folder)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap()).lines();
        while !output
            .next_line()
            .await
            .unwrap()
            .expect("the replica starts")
            .contains(SERVING)
        {}
        Self {
            process,
            _output: output,
        }
    }

    /// Sends a signal to it.
    pub fn signal(&self, signal: Signal) {
        let id = self.process.id().expect("it has not been waited for");
        kill(Pid::from_raw(id.try_into().unwrap()), signal).unwrap();
    }

    /// Kills it, and waits for its end.
    pub async fn kill(mut self) {
        self.process.kill().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "is the process of a replica, which the histories start"]
async fn a_replica_serves_until_its_input_ends() {
    let Ok(database) = std::env::var(DATABASE) else {
        return;
    };
    let address = |name| std::env::var(name).unwrap().parse().unwrap();
    let options = Options {
        listen: address(PUBLIC),
        inspectors_listen: address(INSPECTORS),
        s3: std::env::var(OBJECT_STORE).ok().map(|url| ObjectStore::settings(&url)),
        ..Options::default()
    };
    let _service = Service::start_on_with(pool::parse_url(&database).unwrap(), options).await;
    println!("{SERVING}");
    let input_ends = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    input_ends.await.unwrap().unwrap();
}
