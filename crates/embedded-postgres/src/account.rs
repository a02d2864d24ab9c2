//! Which user Postgres runs as.

use std::{
    env,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

use nix::unistd::{Uid, User, geteuid};

use super::EmbeddedPostgresError;

/// The user Postgres's programs run as: ourselves, or, as root, somebody else (Postgres refuses root).
#[derive(Clone, Debug)]
pub(super) struct Account {
    /// The name, for messages.
    pub name: String,
    /// User and group to become; none: stay who we are.
    other: Option<(u32, u32)>,
}

impl Account {
    /// The owner of `existing` (a cluster's data folder) if there is one; else ourselves; as root `postgres`, else `nobody`.
    pub fn choose(existing: Option<&Path>) -> Result<Self, EmbeddedPostgresError> {
        if !geteuid().is_root() {
            return Ok(Self {
                name: "the current user".to_owned(),
                other: None,
            });
        }
        let owner = existing
            .and_then(|folder| folder.metadata().ok())
            .map(|metadata| metadata.uid())
            .filter(|uid| *uid != 0)
            .and_then(|uid| User::from_uid(Uid::from_raw(uid)).ok().flatten());
        let named = || {
            ["postgres", "nobody"]
                .into_iter()
                .find_map(|name| User::from_name(name).ok().flatten())
        };
        let user = owner.or_else(named).ok_or(EmbeddedPostgresError::NoAccount)?;
        Ok(Self {
            name: user.name,
            other: Some((user.uid.as_raw(), user.gid.as_raw())),
        })
    }

    /// Whether it is somebody else than ourselves.
    pub fn is_other(&self) -> bool {
        self.other.is_some()
    }

    /// Whether `path` belongs to this account.
    pub fn owns(&self, path: &Path) -> bool {
        let uid = self.other.map_or_else(|| geteuid().as_raw(), |(uid, _)| uid);
        path.metadata().is_ok_and(|metadata| metadata.uid() == uid)
    }

    /// Gives `path` to this account.
    pub fn give(&self, path: &Path) -> Result<(), EmbeddedPostgresError> {
        match self.other {
            Some((uid, gid)) => chown(path, Some(uid), Some(gid)).map_err(EmbeddedPostgresError::io(
                "hand over to PostgreSQL's user the folder",
                path,
            )),
            None => Ok(()),
        }
    }

    /// A [bare](bare) command that runs as this account in the folder `cwd` and reads nothing.
    pub fn command(&self, program: impl Into<PathBuf>, cwd: &Path) -> Command {
        let mut command = bare(program.into());
        // A group of its own: Ctrl-C in a terminal must reach us alone, we stop the server in order.
        command.current_dir(cwd).stdin(Stdio::null()).process_group(0);
        if let Some((uid, gid)) = self.other {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Whether this account can enter `folder` and write there.
    pub async fn reaches(&self, folder: &Path) -> bool {
        if self.other.is_none() {
            return true;
        }
        let mut command = self.command("/bin/sh", Path::new("/"));
        command.args(["-c", "cd -- \"$1\" && test -w .", "sh"]).arg(folder);
        run("sh", command, Duration::from_secs(10))
            .await
            .is_ok_and(|output| output.status.success())
    }
}

/// A command that inherits nothing of our environment but where programs are and what time it is: an application's secrets
/// may stand there, and a process's environment can be read by whoever runs as its user. Nor does it
/// inherit what steers Postgres's programs (`PGDATA`, `PGPORT`, ...).
pub(super) fn bare(program: PathBuf) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    for name in ["PATH", "TZ"] {
        if let Some(value) = env::var_os(name) {
            command.env(name, value);
        }
    }
    // English messages whatever the machine speaks.
    command.env("LC_ALL", "C");
    command
}

/// Runs a program to its end, at most for `limit`.
pub(super) async fn run(
    program: &'static str,
    command: Command,
    limit: Duration,
) -> Result<Output, EmbeddedPostgresError> {
    let path = PathBuf::from(command.get_program());
    let mut command = tokio::process::Command::from(command);
    match tokio::time::timeout(limit, command.kill_on_drop(true).output()).await {
        Ok(output) => output.map_err(EmbeddedPostgresError::io("run", path)),
        Err(_) => Err(EmbeddedPostgresError::Program {
            program,
            status: format!("not finished after {} s", limit.as_secs()),
            output: String::new(),
        }),
    }
}

/// [`run`], and an exit status other than 0 is an error with the program's words.
pub(super) async fn run_to_success(
    program: &'static str,
    command: Command,
    limit: Duration,
) -> Result<(), EmbeddedPostgresError> {
    let output = run(program, command, limit).await?;
    if output.status.success() {
        return Ok(());
    }
    let words = [output.stdout, output.stderr].concat();
    Err(EmbeddedPostgresError::Program {
        program,
        status: output.status.to_string(),
        output: String::from_utf8_lossy(&words).trim().to_owned(),
    })
}
