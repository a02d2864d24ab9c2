//! The user that PostgreSQL runs as.

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

/// The user that PostgreSQL's programs run as: the current user or, because PostgreSQL does not run as root, another user if this
/// process runs as root.
#[derive(Clone, Debug)]
pub(super) struct Account {
    /// The name, for messages.
    pub name: String,
    /// The IDs of the other user and its group; `None` for the current user.
    other: Option<(u32, u32)>,
}

impl Account {
    /// Chooses the user: the current one or, as root, the owner of the `existing` home of a cluster, `postgres` or `nobody`.
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

    /// Returns whether PostgreSQL runs as another user.
    pub fn is_other(&self) -> bool {
        self.other.is_some()
    }

    /// Returns whether `path` belongs to this user.
    pub fn owns(&self, path: &Path) -> bool {
        let uid = self.other.map_or_else(|| geteuid().as_raw(), |(uid, _)| uid);
        path.metadata().is_ok_and(|metadata| metadata.uid() == uid)
    }

    /// Makes this user the owner of `path`.
    pub fn make_owner(&self, path: &Path) -> Result<(), EmbeddedPostgresError> {
        match self.other {
            Some((uid, gid)) => chown(path, Some(uid), Some(gid))
                .map_err(EmbeddedPostgresError::io("change the owner of the folder", path)),
            None => Ok(()),
        }
    }

    /// Returns a command with a [clean environment](clean_command) that runs as this user in the folder `cwd`, without input.
    pub fn command(&self, program: impl Into<PathBuf>, cwd: &Path) -> Command {
        let mut command = clean_command(program.into());
        // A separate process group, so that Ctrl-C in a terminal reaches only this process, which shuts the server down.
        command.current_dir(cwd).stdin(Stdio::null()).process_group(0);
        if let Some((uid, gid)) = self.other {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Returns whether this user can enter `folder` and write to it.
    pub async fn can_write(&self, folder: &Path) -> bool {
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

/// Returns a command with a clean environment that contains only `PATH`, `TZ` and `LC_ALL`.
///
/// The environment of the application may contain secrets, and all processes of a user can read each other's environment. It may
/// also contain variables that affect PostgreSQL's programs (`PGDATA`, `PGPORT`, ...).
pub(super) fn clean_command(program: PathBuf) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    for name in ["PATH", "TZ"] {
        if let Some(value) = env::var_os(name) {
            command.env(name, value);
        }
    }
    // Messages are in English on every machine.
    command.env("LC_ALL", "C");
    command
}

/// Runs a program until it exits, for at most `timeout`.
pub(super) async fn run(
    program: &'static str,
    command: Command,
    timeout: Duration,
) -> Result<Output, EmbeddedPostgresError> {
    let path = PathBuf::from(command.get_program());
    let mut command = tokio::process::Command::from(command);
    match tokio::time::timeout(timeout, command.kill_on_drop(true).output()).await {
        Ok(output) => output.map_err(EmbeddedPostgresError::io("run", path)),
        Err(_) => Err(EmbeddedPostgresError::Program {
            program,
            status: format!("timed out after {} s", timeout.as_secs()),
            output: String::new(),
        }),
    }
}

/// Like [`run`], but an unsuccessful exit status is an error with the program's output.
pub(super) async fn run_to_success(
    program: &'static str,
    command: Command,
    timeout: Duration,
) -> Result<(), EmbeddedPostgresError> {
    let output = run(program, command, timeout).await?;
    if output.status.success() {
        return Ok(());
    }
    let printed = [output.stdout, output.stderr].concat();
    Err(EmbeddedPostgresError::Program {
        program,
        status: output.status.to_string(),
        output: String::from_utf8_lossy(&printed).trim().to_owned(),
    })
}
