//! Replicas as processes, so that they can be killed and suspended.
//!
//! The process is this test program itself, which executes only [`a_replica_serves_until_its_input_ends`].

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use partner_api_store::pool;
use partner_api_tests::Service;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// Contains the URL of the database of a replica.
const DATABASE: &str = "HISTORY_DATABASE";

/// Introduces the address and the folder of the objects in the output of a replica.
const SERVING: &str = "serving at ";

/// A running replica. It is killed when it is dropped.
pub struct Replica {
    /// Its public address.
    pub address: SocketAddr,
    /// The folder of its photos and PDFs.
    pub objects: PathBuf,
    process: Child,
    // Held open, because the process writes a line when its test ends.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Replica {
    /// Starts a replica with its files in `folder`, and waits until it serves.
    pub async fn start(database: &str, folder: &Path, environment: &[(&str, OsString)]) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "histories::replica::a_replica_serves_until_its_input_ends"])
            .args(["--include-ignored", "--nocapture"])
            .env(DATABASE, database)
            .env("TMPDIR", folder)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap()).lines();
        let (address, objects) = loop {
            let line = output.next_line().await.unwrap().expect("the replica starts");
            if let Some((_, serving)) = line.split_once(SERVING) {
                let (address, objects) = serving.split_once(' ').unwrap();
                break (address.parse().unwrap(), objects.into());
            }
        };
        Self {
            address,
            objects,
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
    let service = Service::start_on(pool::parse_url(&database).unwrap()).await;
    let address = service.address("/api/v1/partner/health");
    println!("{SERVING}{address} {}", service.objects().display());
    let input_ends = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    input_ends.await.unwrap().unwrap();
}
