//! `partner-api serve` as a process: its signals, and its log, which may be unread. And `partner-api sandbox`.

mod signals;
mod unread;

use std::fs;
use std::io::{BufRead, BufReader, Write};
#[cfg(feature = "sandbox")]
use std::net::TcpListener;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use partner_api_tests::fixture::MASTER_KEY;
use partner_api_tests::port::free_address;
use serde_json::Value;
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
            .env("PARTNER_API_MASTER_KEY", MASTER_KEY)
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

/// Timeout for a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// More lines than a pipe and the log's buffer can hold.
const REQUESTS: usize = 12_000;

impl Serving {
    /// Sends requests that are logged with one line each, and checks that each gets a response.
    fn send_requests(&self) {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT)).unwrap();
        let mut responses = BufReader::new(stream.try_clone().unwrap()).lines();
        let request = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "nothing-here".repeat(20));
        for _ in 0..REQUESTS / 100 {
            (&stream).write_all(request.repeat(100).as_bytes()).unwrap();
            for _ in 0..100 {
                let status = responses.find(|line| line.as_ref().unwrap().contains("HTTP/1.1 "));
                let status = status.expect("a response").unwrap();
                assert!(status.ends_with("404 Not Found"), "{status}");
            }
        }
    }
}

#[test]
fn a_service_with_an_unread_log_continues_and_logs_the_number_of_dropped_lines() {
    let mut serving = Serving::start();
    serving.send_requests();
    let (read, log) = mpsc::channel();
    let pipe = BufReader::new(serving.process.stderr.take().unwrap());
    thread::spawn(move || {
        pipe.lines()
            .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
            .try_for_each(|line| read.send(line))
    });
    let dropped = |line: &Value| line["lines"].as_u64().filter(|_| line["level"] == "WARN");
    let logged = |line: &Value| u64::from(line["status"] == 404);
    let (mut lines, mut counted) = (Vec::new(), 0);
    // The process ends without the lines that are not read within a second of a stop, so all are read first.
    while counted < REQUESTS as u64 {
        let line = log
            .recv_timeout(TIMEOUT)
            .expect("every line is logged or reported as dropped");
        counted += dropped(&line).unwrap_or(0) + logged(&line);
        lines.push(line);
    }
    assert_eq!(counted, REQUESTS as u64);
    assert!(
        lines.iter().any(|line| dropped(line).is_some()),
        "some lines must be dropped"
    );
    assert!(serving.stop().success());
    lines.extend(log.iter());
    let last = lines.iter().rfind(|line| line["message"] == "stopping");
    assert!(last.is_some(), "later lines must be logged");
}

#[test]
fn a_service_with_an_unread_log_stops_on_sigterm() {
    let mut serving = Serving::start();
    serving.send_requests();
    assert!(serving.stop().success());
}

/// SVC-9
#[cfg(feature = "sandbox")]
#[test]
fn a_reset_without_a_sandbox_creates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let reset = Command::new(env!("CARGO_BIN_EXE_partner-api"))
        .args(["sandbox", "--reset", "alpha", "--data-dir"])
        .arg(folder.path())
        .output()
        .unwrap();
    let message = String::from_utf8(reset.stderr).unwrap();
    assert!(!reset.status.success());
    assert!(message.contains("there is no sandbox in"), "{message}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// SVC-9
#[cfg(feature = "sandbox")]
#[test]
fn a_sandbox_on_a_used_port_ends_before_it_creates_anything() {
    let other_program = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other_program.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Command::new(env!("CARGO_BIN_EXE_partner-api"))
        .args(["sandbox", "--port", &address.port().to_string()])
        .arg("--data-dir")
        .arg(folder.path())
        .output()
        .unwrap();
    let message = String::from_utf8(sandbox.stderr).unwrap();
    assert!(!sandbox.status.success());
    assert!(
        message.contains(&format!("failed to listen on {address}")) && message.contains("--port"),
        "{message}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
