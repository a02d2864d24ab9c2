//! The servers under load, which run as separate processes: the service, the minimal server of `examples/hello.rs`, and the peers.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::error::BenchError;

/// The timeout for a server to start, including migrations.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The timeout for a server to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// A running server. Dropping it kills its processes; [`Server::stop`] shuts it down gracefully.
pub struct Server {
    /// The address that it listens on.
    pub address: SocketAddr,
    /// Its process ID.
    pub pid: u32,
    child: Child,
}

/// The options of the service.
pub struct ServiceSetup<'a> {
    /// `partner-api`, a release build.
    pub binary: &'a Path,
    /// The database.
    pub url: &'a str,
    /// The master key, 64 hex digits.
    pub master_key: &'a str,
    /// The folder of photos and PDFs.
    pub storage: &'a Path,
    /// The file of the log.
    pub log: &'a Path,
    /// `info`, the default, or `off`.
    pub log_level: &'a str,
    /// `on`, the default, or `off`.
    pub request_log: &'a str,
}

impl Server {
    /// Starts the service with a JSON log in a file and default settings. Only the limit per address is disabled, because all
    /// load comes from one address.
    ///
    /// # Errors
    /// If it does not start. The message contains its log.
    pub async fn service(setup: &ServiceSetup<'_>) -> Result<Self, BenchError> {
        let shown = setup.log.display();
        let log = File::create(setup.log).map_err(BenchError::io(format!("write {shown}")))?;
        let address = free_address()?;
        let mut command = Command::new(setup.binary);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PARTNER_API_") {
                command.env_remove(name);
            }
        }
        command
            .args([
                "serve",
                "--environment",
                "test",
                "--ip-limit",
                "0",
                "--log-format",
                "json",
            ])
            .args(["--log-level", setup.log_level, "--request-log", setup.request_log])
            .args(["--listen", &address.to_string(), "--internal-listen", "127.0.0.1:0"])
            .args(["--inspectors-listen", "off"])
            .arg("--storage-dir")
            .arg(setup.storage)
            .env("PARTNER_API_DATABASE_URL", setup.url)
            .env("PARTNER_API_MASTER_KEY", setup.master_key)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let server = Self::spawn(command, setup.binary, address)?;
        server.when_listening("the service", setup.log).await
    }

    /// Starts a peer with its settings in `config`.
    ///
    /// # Errors
    /// If it does not start. The message contains its log.
    pub async fn peer(mut command: Command, config: &Path, log: &Path) -> Result<Self, BenchError> {
        let output = File::create(log).map_err(BenchError::io(format!("write {}", log.display())))?;
        let address = free_address()?;
        command
            .env("PEER_CONFIG", config)
            .env("PEER_PORT", address.port().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output);
        let name = command.as_std().get_program().to_owned();
        let server = Self::spawn(command, Path::new(&name), address)?;
        server
            .when_listening(&Path::new(&name).display().to_string(), log)
            .await
    }

    /// Waits until the server listens.
    async fn when_listening(mut self, name: &str, log: &Path) -> Result<Self, BenchError> {
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).is_err() {
            let ended = self
                .child
                .try_wait()
                .map_err(BenchError::io(format!("wait for {name}")))?;
            if ended.is_some() || Instant::now() > deadline {
                let log = std::fs::read_to_string(log).unwrap_or_default();
                return Err(BenchError::Unexpected(format!("{name} did not start:\n{log}")));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(self)
    }

    /// Starts the minimal server.
    ///
    /// # Errors
    /// If it does not start.
    pub async fn hello(binary: &Path) -> Result<Self, BenchError> {
        let mut command = Command::new(binary);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut server = Self::spawn(command, binary, (Ipv4Addr::LOCALHOST, 0).into())?;
        let mut line = String::new();
        if let Some(output) = server.child.stdout.take() {
            let read = BufReader::new(output).read_line(&mut line).await;
            read.map_err(BenchError::io("read from the minimal server"))?;
        }
        server.address = line.trim().parse().map_err(|_| {
            BenchError::Unexpected(format!(
                "the minimal server must print its address, but printed {line:?}"
            ))
        })?;
        Ok(server)
    }

    fn spawn(mut command: Command, binary: &Path, address: SocketAddr) -> Result<Self, BenchError> {
        let child = command
            // So that dropping it can also kill the processes that it started.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(BenchError::io(format!("run {}", binary.display())))?;
        let pid = child
            .id()
            .ok_or_else(|| BenchError::Unexpected(format!("{} exited at once", binary.display())))?;
        Ok(Self { address, pid, child })
    }

    /// Shuts the server down gracefully.
    pub async fn stop(mut self) {
        let Some(pid) = self.child.id().and_then(|pid| i32::try_from(pid).ok()) else {
            return;
        };
        // If this fails, dropping the child kills it.
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        let _ = tokio::time::timeout(STOP_TIMEOUT, self.child.wait()).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // None if the process has ended and was waited for.
        if let Some(pid) = self.child.id().and_then(|pid| i32::try_from(pid).ok()) {
            // If this fails, the child is killed alone.
            let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

fn free_address() -> Result<SocketAddr, BenchError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(BenchError::io("find a free port"))
}
