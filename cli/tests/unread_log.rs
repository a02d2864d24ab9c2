//! A log that nobody reads.
#![cfg(feature = "embedded-postgres")]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long an answer may take.
const ANSWERED: Duration = Duration::from_secs(20);

/// More lines than a pipe and the log's buffer take together.
const REQUESTS: usize = 12_000;

/// `partner-api serve` with a database of its own; standard error is a pipe.
struct Serving {
    process: Child,
    address: SocketAddr,
    // Removed last.
    _folder: TempDir,
}

impl Serving {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // As root, PostgreSQL runs as another user, who must be able to enter.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let mut process = Command::new(env!("CARGO_BIN_EXE_partner-api"))
            .args(["serve", "--ip-limit", "0", "--log-format", "json"])
            .args(["--listen", &address.to_string(), "--internal-listen", "off"])
            .arg("--data-dir")
            .arg(folder.path())
            .env("PARTNER_API_MASTER_KEY", "5a".repeat(32))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(address).is_err() {
            assert_eq!(process.try_wait().unwrap(), None, "it has ended");
            assert!(Instant::now() < deadline, "it does not listen");
            thread::sleep(Duration::from_millis(50));
        }
        Self {
            process,
            address,
            _folder: folder,
        }
    }

    /// Sends requests that leave a line each, one after the other, and reads the answer of each.
    fn answers_all(&self) {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(ANSWERED)).unwrap();
        let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
        let request = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "nothing-here".repeat(20));
        for _ in 0..REQUESTS / 100 {
            (&stream).write_all(request.repeat(100).as_bytes()).unwrap();
            for _ in 0..100 {
                let status = answers.find(|line| line.as_ref().unwrap().contains("HTTP/1.1 "));
                let status = status.expect("an answer").unwrap();
                assert!(status.ends_with("404 Not Found"), "{status}");
            }
        }
    }

    /// Tells it to stop, and waits until it has.
    fn stop(&mut self) -> ExitStatus {
        let pid = Pid::from_raw(self.process.id().try_into().unwrap());
        kill(pid, Signal::SIGTERM).unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Where a test has failed; its database ends with it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_service_whose_log_nobody_reads_goes_on_and_the_log_tells_how_much_is_missing() {
    let mut serving = Serving::start();
    serving.answers_all();
    let (read, log) = mpsc::channel();
    let pipe = BufReader::new(serving.process.stderr.take().unwrap());
    thread::spawn(move || {
        pipe.lines()
            .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
            .try_for_each(|line| read.send(line))
    });
    let missing = |line: &Value| line["lines"].as_u64().filter(|_| line["level"] == "WARN");
    let mut lines = Vec::new();
    // From then on there is room for more.
    while lines.last().and_then(missing).is_none() {
        lines.push(log.recv_timeout(PATIENCE).expect("a line that tells it"));
    }
    assert!(serving.stop().success());
    lines.extend(log.iter());
    let requests = lines.iter().filter(|line| line["status"] == 404).count();
    let dropped: u64 = lines.iter().filter_map(missing).sum();
    assert_eq!(requests as u64 + dropped, REQUESTS as u64);
    let last = lines.iter().rfind(|line| line["message"] == "stopping");
    assert!(last.is_some(), "what came after is there");
}

#[test]
fn a_service_whose_log_nobody_reads_ends_when_it_is_told_to() {
    let mut serving = Serving::start();
    serving.answers_all();
    assert!(serving.stop().success());
}
