//! The server as a child process: initialization, start, readiness, stop, and cleanup after an earlier run.

use std::{
    fs::{self, File},
    io::{ErrorKind, Read, Seek, SeekFrom},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::time::sleep;
use tracing::{info, warn};

use super::{
    EmbeddedPostgresError, Options,
    account::{Account, run_to_success},
    binaries::Binaries,
    layout::{Home, SocketFolder},
};

/// The time limit for `initdb` and `pg_ctl`, which take seconds.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(120);
/// The time limit for a fast shutdown, which writes a checkpoint, before an immediate shutdown without one.
const FAST_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);
/// The time limit for an immediate shutdown before the server is killed.
const IMMEDIATE_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The number of bytes at the end of the log that an error contains.
const TAIL_LENGTH: u64 = 2_000;

/// The data needed to run a cluster.
pub(super) struct Setup<'a> {
    pub account: &'a Account,
    pub binaries: &'a Binaries,
    pub home: &'a Home,
    pub options: &'a Options,
}

impl Setup<'_> {
    fn command(&self, program: &str) -> Command {
        self.account.command(self.binaries.program(program), self.home.path())
    }

    /// Creates the cluster under a temporary name first, so that an interrupted initialization does not leave an invalid cluster.
    pub async fn initialize(&self) -> Result<(), EmbeddedPostgresError> {
        let unfinished = self.home.path().join("data.unfinished");
        match fs::remove_dir_all(&unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(EmbeddedPostgresError::io("remove", unfinished)(error));
            }
            _ => {}
        }
        info!(folder = %self.home.path().display(), version = self.binaries.major(), "creating a private PostgreSQL cluster");
        let mut command = self.command("initdb");
        command.arg("--pgdata").arg(&unfinished);
        // Connections over the socket need no password, because only this user and root can access the folder of the socket.
        command.args([
            "--encoding=UTF8",
            "--locale=C",
            "--auth-local=trust",
            "--auth-host=reject",
            "--no-instructions",
        ]);
        command.arg(format!("--username={}", self.options.role()));
        if !self.options.durable {
            command.arg("--no-sync");
        }
        run_to_success("initdb", command, PROGRAM_TIMEOUT).await?;
        fs::rename(&unfinished, self.home.data()).map_err(EmbeddedPostgresError::io("rename", unfinished))
    }

    /// Stops a server that still runs because an earlier process was killed.
    pub async fn stop_leftover(&self) -> Result<(), EmbeddedPostgresError> {
        let data = self.home.data();
        let pid_file = data.join("postmaster.pid");
        let text = match fs::read_to_string(&pid_file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(EmbeddedPostgresError::io("read", pid_file)(error)),
        };
        let Some(pid) = text.lines().next().and_then(|line| line.trim().parse::<i32>().ok()) else {
            return Ok(());
        };
        if !is_server_of(pid, &data) {
            // The ID may belong to an unrelated process by now. PostgreSQL would not start because of it.
            return match fs::remove_file(&pid_file) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    Err(EmbeddedPostgresError::io("remove", pid_file)(error))
                }
                _ => Ok(()),
            };
        }
        warn!(pid, "stopping the PostgreSQL server of an earlier process");
        for mode in ["fast", "immediate"] {
            let mut command = self.command("pg_ctl");
            command
                .args(["stop", "--wait", "--silent", "--timeout=30", "--mode", mode, "--pgdata"])
                .arg(&data);
            let outcome = run_to_success("pg_ctl", command, PROGRAM_TIMEOUT).await;
            if outcome.is_ok() || !is_server_of(pid, &data) {
                break;
            }
            if mode == "immediate" {
                return outcome;
            }
        }
        // Removes the temporary socket folder of that process, if it is empty.
        let temporary = format!("/tmp/{}-", self.options.application);
        if let Some(folder) = text.lines().nth(4).filter(|folder| folder.starts_with(&temporary)) {
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }

    /// Starts the server and waits until it accepts connections.
    pub async fn start(&self, socket: &SocketFolder) -> Result<Server, EmbeddedPostgresError> {
        let log = self.home.log();
        let deadline = Instant::now() + self.options.start_timeout;
        loop {
            // Keeps the previous log, which shows how the last run ended.
            let _ = fs::rename(&log, log.with_extension("previous.log"));
            let mut server = self.spawn(socket, &log)?;
            let reason = loop {
                if accepts_connections(socket.path(), &self.options.role()).await {
                    return Ok(server);
                }
                if let Some(status) = server.exit_status() {
                    break format!("exited while starting ({status})");
                }
                if Instant::now() >= deadline {
                    break format!(
                        "did not accept connections within {} s",
                        self.options.start_timeout.as_secs()
                    );
                }
                sleep(POLL_INTERVAL).await;
            };
            server.stop().await;
            let tail = tail(&log);
            // The sessions of a killed server end a moment later than the server.
            if tail.contains("pre-existing shared memory block") && Instant::now() < deadline {
                sleep(POLL_INTERVAL).await;
                continue;
            }
            return Err(EmbeddedPostgresError::Start { reason, log, tail });
        }
    }

    fn spawn(&self, socket: &SocketFolder, log: &Path) -> Result<Server, EmbeddedPostgresError> {
        let data = self.home.data();
        let output = File::create(log).map_err(EmbeddedPostgresError::io("write", log))?;
        let errors = output.try_clone().map_err(EmbeddedPostgresError::io("write", log))?;
        let mut command = self.command("postgres");
        command.arg("-D").arg(&data).stdout(output).stderr(errors);
        for (name, value) in self.settings(socket.path()) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let mut process = command
            .spawn()
            .map_err(EmbeddedPostgresError::io("run", self.binaries.program("postgres")))?;
        // If this process is killed, the pipe closes, and the shell stops the server.
        let mut guard = self.account.command("/bin/sh", self.home.path());
        guard.args([
            "-c",
            "read -r line; exec \"$1\" stop --silent --mode fast --pgdata \"$2\"",
            "sh",
        ]);
        guard.arg(self.binaries.program("pg_ctl")).arg(&data);
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        match guard.spawn() {
            Ok(guard) => Ok(Server { process, guard }),
            Err(error) => {
                let _ = process.kill();
                let _ = process.wait();
                Err(EmbeddedPostgresError::io("run", "/bin/sh")(error))
            }
        }
    }

    fn settings(&self, socket: &Path) -> Vec<(String, String)> {
        // The setting is a list. Quotes prevent a comma in the path from acting as a separator.
        let folder = format!("\"{}\"", socket.display().to_string().replace('"', "\"\""));
        let mut settings: Vec<(String, String)> = [
            ("listen_addresses", ""),
            ("unix_socket_directories", folder.as_str()),
            ("unix_socket_permissions", "0700"),
            ("port", "5432"),
            ("max_connections", self.options.max_connections.to_string().as_str()),
            ("timezone", "UTC"),
            ("log_timezone", "UTC"),
            // Parameters may contain personal data.
            ("log_parameter_max_length_on_error", "0"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        if !self.options.durable {
            for name in ["fsync", "synchronous_commit", "full_page_writes"] {
                settings.push((name.to_owned(), "off".to_owned()));
            }
        }
        settings.extend(self.options.settings.iter().cloned());
        settings
    }
}

/// A running server. Dropping it stops the server, and blocks until it has stopped.
#[derive(Debug)]
pub(super) struct Server {
    process: Child,
    guard: Child,
}

impl Server {
    fn exit_status(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().ok().flatten()
    }

    fn signal(&self, signal: Signal) {
        // The child has not been waited for, so the ID still belongs to it. The call fails only if the child has exited.
        let _ = i32::try_from(self.process.id()).map(|pid| kill(Pid::from_raw(pid), signal));
    }

    fn stop_guard(&mut self) {
        let _ = self.guard.kill();
        let _ = self.guard.wait();
    }

    /// The signals of a shutdown, from a fast one to a kill, with their timeouts.
    const STEPS: [(Signal, Duration); 3] = [
        (Signal::SIGINT, FAST_SHUTDOWN_TIMEOUT),
        (Signal::SIGQUIT, IMMEDIATE_SHUTDOWN_TIMEOUT),
        (Signal::SIGKILL, IMMEDIATE_SHUTDOWN_TIMEOUT),
    ];

    /// Rolls back open transactions, writes a checkpoint, and stops.
    pub async fn stop(&mut self) {
        self.stop_guard();
        for (signal, timeout) in Self::STEPS {
            let deadline = Instant::now() + timeout;
            if self.exit_status().is_none() {
                self.signal(signal);
            }
            while self.exit_status().is_none() && Instant::now() < deadline {
                sleep(POLL_INTERVAL).await;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop_guard();
        for (signal, timeout) in Self::STEPS {
            let deadline = Instant::now() + timeout;
            if self.exit_status().is_none() {
                self.signal(signal);
            }
            while self.exit_status().is_none() && Instant::now() < deadline {
                thread::sleep(POLL_INTERVAL);
            }
        }
    }
}

/// Returns whether process `pid` is the server of the cluster in `data`, which is then its working folder.
fn is_server_of(pid: i32, data: &Path) -> bool {
    let Ok(data) = data.canonicalize() else { return false };
    if Path::new("/proc/self/cwd").exists() {
        return fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == data);
    }
    // Without /proc (macOS), the command line is checked, which contains the folder.
    let listed = Command::new("ps")
        .args(["-o", "command=", "-p", &pid.to_string()])
        .output();
    listed.is_ok_and(|listed| String::from_utf8_lossy(&listed.stdout).contains(&data.display().to_string()))
}

async fn accepts_connections(socket: &Path, role: &str) -> bool {
    let config = super::config_for(socket, role, "postgres");
    let attempt = async {
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.ok()?;
        let driver = tokio::spawn(connection);
        let result = client.simple_query("SELECT 1").await.ok();
        drop(client);
        // Waits for the end of the session.
        let _ = driver.await;
        result
    };
    matches!(tokio::time::timeout(Duration::from_secs(5), attempt).await, Ok(Some(_)))
}

/// Returns the last lines of a log file.
fn tail(log: &Path) -> String {
    let read = || {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_LENGTH)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        std::io::Result::Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    read().unwrap_or_else(|error| format!("(failed to read the log: {error})"))
}
