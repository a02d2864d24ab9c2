//! `partner-api serve` as a process: its signals and its log. And `partner-api sandbox`.

#[cfg(feature = "sandbox")]
mod sandbox;
mod signals;
mod unread_log;

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use partner_api_tests::port::free_address;
use tempfile::TempDir;

/// Timeout for every event that a test waits for.
const TIMEOUT: Duration = Duration::from_secs(60);

/// `partner-api serve` with a private database. Standard error is a pipe.
struct Serving {
    process: Child,
    address: SocketAddr,
    internal: SocketAddr,
    // Removed last.
    folder: TempDir,
}

impl Serving {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // If the tests run as root, PostgreSQL runs as another user, who needs access to the folder.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self::start_in(folder, more)
    }

    /// Starts it again with the same data, after it has ended.
    fn restart(&mut self) {
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        *self = Self::start_in(folder, &[]);
    }

    fn start_in(folder: TempDir, more: &[&str]) -> Self {
        let (address, internal) = (free_address(), free_address());
        let process = Command::new(env!("CARGO_BIN_EXE_partner-api"))
            .args(["serve", "--ip-limit", "0", "--log-format", "json"])
            .args([
                "--listen",
                &address.to_string(),
                "--internal-listen",
                &internal.to_string(),
                "--inspectors-listen",
                "127.0.0.1:0",
            ])
            .args(more)
            .arg("--data-dir")
            .arg(folder.path())
            .env("PARTNER_API_MASTER_KEY", "5a".repeat(32))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut serving = Self {
            process,
            address,
            internal,
            folder,
        };
        serving.until("it does not listen", |serving| {
            assert_eq!(serving.process.try_wait().unwrap(), None, "it has ended");
            TcpStream::connect(address).is_ok()
        });
        serving
    }

    /// Waits until `condition` holds; otherwise panics with `message`.
    fn until(&mut self, message: &str, condition: impl Fn(&mut Self) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !condition(self) {
            assert!(Instant::now() < deadline, "{message}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id().try_into().unwrap()), signal).unwrap();
    }

    /// Stops the service and waits until it has ended.
    fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        self.until("it does not end", |serving| {
            serving.process.try_wait().unwrap().is_some()
        });
        self.process.wait().unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // If a test failed, the service still runs. Its database ends with it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
