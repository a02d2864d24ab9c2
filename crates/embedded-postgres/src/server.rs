//! The server as a child process: leftovers of an earlier run, first initialisation, start, readiness, stop.

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
    place::{Home, SocketFolder},
};

/// For `initdb` and `pg_ctl`, which take seconds.
const PROGRAM_LIMIT: Duration = Duration::from_secs(120);
/// How long a fast shutdown may take (it writes a checkpoint) before the server is stopped without one.
const FAST_SHUTDOWN: Duration = Duration::from_secs(30);
/// How long an immediate shutdown may take before the server is killed.
const IMMEDIATE_SHUTDOWN: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);
/// How much of the log's end goes into an error.
const TAIL: u64 = 2_000;

/// What is needed to run a cluster.
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

    /// Makes the cluster. An interrupted initialisation leaves nothing that looks like one.
    pub async fn initialise(&self) -> Result<(), EmbeddedPostgresError> {
        let unfinished = self.home.path().join("data.unfinished");
        match fs::remove_dir_all(&unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(EmbeddedPostgresError::io("remove", unfinished)(error));
            }
            _ => {}
        }
        info!(folder = %self.home.path().display(), version = self.binaries.major(), "making a private PostgreSQL cluster");
        let mut command = self.command("initdb");
        command.arg("--pgdata").arg(&unfinished);
        // Whoever can open the socket is trusted, and only this account (and root) can: its folder is private.
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
        run_to_success("initdb", command, PROGRAM_LIMIT).await?;
        fs::rename(&unfinished, self.home.data()).map_err(EmbeddedPostgresError::io("rename", unfinished))
    }

    /// Stops a server that an earlier process of ours left behind when it was killed.
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
            // The number may belong to a stranger by now, for which Postgres would refuse to start.
            return match fs::remove_file(&pid_file) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    Err(EmbeddedPostgresError::io("remove", pid_file)(error))
                }
                _ => Ok(()),
            };
        }
        warn!(pid, "stopping the PostgreSQL server that an earlier run left behind");
        for mode in ["fast", "immediate"] {
            let mut command = self.command("pg_ctl");
            command
                .args(["stop", "--wait", "--silent", "--timeout=30", "--mode", mode, "--pgdata"])
                .arg(&data);
            let outcome = run_to_success("pg_ctl", command, PROGRAM_LIMIT).await;
            if outcome.is_ok() || !is_server_of(pid, &data) {
                break;
            }
            if mode == "immediate" {
                return outcome;
            }
        }
        // A temporary socket folder of that run; ours and non-empty ones stay.
        let temporary = format!("/tmp/{}-", self.options.application);
        if let Some(folder) = text.lines().nth(4).filter(|folder| folder.starts_with(&temporary)) {
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }

    /// Starts the server and waits until it answers.
    pub async fn start(&self, socket: &SocketFolder) -> Result<Server, EmbeddedPostgresError> {
        let log = self.home.log();
        let deadline = Instant::now() + self.options.start_deadline;
        loop {
            // One earlier log is kept: it tells how the last run ended.
            let _ = fs::rename(&log, log.with_extension("previous.log"));
            let mut server = self.spawn(socket, &log)?;
            let reason = loop {
                if answers(socket.path(), &self.options.role()).await {
                    return Ok(server);
                }
                if let Some(status) = server.exited() {
                    break format!("ended while starting ({status})");
                }
                if Instant::now() >= deadline {
                    break format!("did not answer within {} s", self.options.start_deadline.as_secs());
                }
                sleep(POLL).await;
            };
            server.stop().await;
            let tail = tail(&log);
            // Sessions of a killed server see its end a moment later than we do.
            if tail.contains("pre-existing shared memory block") && Instant::now() < deadline {
                sleep(POLL).await;
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
        // If we are killed the pipe closes, and this shell stops the server.
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
        // A list setting: quotes keep a comma in the path from being a separator.
        let folder = format!("\"{}\"", socket.display().to_string().replace('"', "\"\""));
        let mut settings: Vec<(String, String)> = [
            ("listen_addresses", ""),
            ("unix_socket_directories", folder.as_str()),
            ("unix_socket_permissions", "0700"),
            ("port", "5432"),
            ("max_connections", self.options.max_connections.to_string().as_str()),
            ("timezone", "UTC"),
            ("log_timezone", "UTC"),
            // Values may be personal data.
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

/// A running server. Dropping it stops it, and blocks until it has stopped.
#[derive(Debug)]
pub(super) struct Server {
    process: Child,
    guard: Child,
}

impl Server {
    fn exited(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().ok().flatten()
    }

    fn signal(&self, signal: Signal) {
        // Not waited for yet, so the number is still this child's. It fails only for one that has ended.
        let _ = i32::try_from(self.process.id()).map(|pid| kill(Pid::from_raw(pid), signal));
    }

    fn dismiss_guard(&mut self) {
        let _ = self.guard.kill();
        let _ = self.guard.wait();
    }

    /// The signals of an orderly stop that turns less patient, with the time each is given.
    const STEPS: [(Signal, Duration); 3] = [
        (Signal::SIGINT, FAST_SHUTDOWN),
        (Signal::SIGQUIT, IMMEDIATE_SHUTDOWN),
        (Signal::SIGKILL, IMMEDIATE_SHUTDOWN),
    ];

    /// Ends open transactions, writes a checkpoint and stops.
    pub async fn stop(&mut self) {
        self.dismiss_guard();
        for (signal, patience) in Self::STEPS {
            let deadline = Instant::now() + patience;
            if self.exited().is_none() {
                self.signal(signal);
            }
            while self.exited().is_none() && Instant::now() < deadline {
                sleep(POLL).await;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.dismiss_guard();
        for (signal, patience) in Self::STEPS {
            let deadline = Instant::now() + patience;
            if self.exited().is_none() {
                self.signal(signal);
            }
            while self.exited().is_none() && Instant::now() < deadline {
                thread::sleep(POLL);
            }
        }
    }
}

/// Whether process `pid` runs, and is the server of the cluster in `data`: it has that folder as its working folder.
fn is_server_of(pid: i32, data: &Path) -> bool {
    let Ok(data) = data.canonicalize() else { return false };
    if Path::new("/proc/self/cwd").exists() {
        return fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == data);
    }
    // Without /proc (macOS): its command line names the folder.
    let listed = Command::new("ps")
        .args(["-o", "command=", "-p", &pid.to_string()])
        .output();
    listed.is_ok_and(|listed| String::from_utf8_lossy(&listed.stdout).contains(&data.display().to_string()))
}

async fn answers(socket: &Path, role: &str) -> bool {
    let config = super::config_for(socket, role, "postgres");
    let attempt = async {
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.ok()?;
        let driver = tokio::spawn(connection);
        let answer = client.simple_query("SELECT 1").await.ok();
        drop(client);
        // The session has ended when this has, and a stop need not end it.
        let _ = driver.await;
        answer
    };
    matches!(tokio::time::timeout(Duration::from_secs(5), attempt).await, Ok(Some(_)))
}

/// The last lines of a log file.
fn tail(log: &Path) -> String {
    let read = || {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        std::io::Result::Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    read().unwrap_or_else(|error| format!("(cannot be read: {error})"))
}
