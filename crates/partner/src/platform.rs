//! Everything that differs between Unix and Windows: permissions of files, flushing of folders, signals, and the folder of the
//! configuration.

pub(crate) use system::{check_private, configuration_folder, private, share, shutdown_signal, sync_folder};

#[cfg(unix)]
mod system {
    use std::fs::{self, OpenOptions};
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    use std::path::{Path, PathBuf};

    use tokio::signal::unix::{SignalKind, signal};

    use crate::failure::Failure;

    /// Returns the folder of the user's configuration files: `XDG_CONFIG_HOME` or `~/.config`.
    pub(crate) fn configuration_folder() -> Option<PathBuf> {
        let chosen = std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty());
        chosen
            .map(PathBuf::from)
            .or_else(|| Some(std::env::home_dir()?.join(".config")))
    }

    /// Checks that only the owner can read a file.
    pub(crate) fn check_private(path: &Path) -> Result<(), Failure> {
        let mode = fs::metadata(path).map_err(Failure::of(path))?.permissions().mode();
        if mode & 0o077 == 0 {
            return Ok(());
        }
        let path = path.display();
        Err(Failure::Rejected(format!(
            "{path} contains a secret and must not be readable by others; run: chmod 600 {path}"
        )))
    }

    /// Makes a new file readable only by its owner.
    pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
        options.mode(0o600)
    }

    /// Applies the umask to a temporary file, as to any other file of the user. Otherwise tempfile makes it private.
    pub(crate) fn share(builder: &mut tempfile::Builder<'_, '_>) {
        builder.permissions(fs::Permissions::from_mode(0o666));
    }

    /// Flushes a folder's entries to disk, so that renames in it survive a power failure.
    pub(crate) fn sync_folder(folder: &Path) -> Result<(), Failure> {
        fs::File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(Failure::of(folder))
    }

    /// Waits for SIGTERM or Ctrl-C.
    pub(crate) async fn shutdown_signal() {
        match signal(SignalKind::terminate()) {
            Ok(mut term) => tokio::select! {
                () = super::ctrl_c() => {}
                _ = term.recv() => {}
            },
            // If no handler can be installed, the signal ends the process anyway.
            Err(_) => super::ctrl_c().await,
        }
    }
}

#[cfg(windows)]
mod system {
    use std::fs::{self, OpenOptions};
    use std::path::{Path, PathBuf};

    use tokio::signal::windows::{ctrl_close, ctrl_shutdown};

    use crate::failure::Failure;

    /// Returns the folder of the user's configuration files: `APPDATA`.
    pub(crate) fn configuration_folder() -> Option<PathBuf> {
        let folder = std::env::var_os("APPDATA").filter(|folder| !folder.is_empty());
        folder.map(PathBuf::from)
    }

    /// Checks that the file exists. Its access list is inherited from its folder; that of a user's folder admits only the user, the
    /// system and administrators.
    pub(crate) fn check_private(path: &Path) -> Result<(), Failure> {
        fs::metadata(path).map(drop).map_err(Failure::of(path))
    }

    /// Changes nothing: a new file inherits the access list of its folder.
    pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
        options
    }

    /// Changes nothing: a new file inherits the access list of its folder.
    pub(crate) fn share(_: &mut tempfile::Builder<'_, '_>) {}

    /// Does nothing: Windows cannot open folders, and NTFS logs renames.
    pub(crate) fn sync_folder(_: &Path) -> Result<(), Failure> {
        Ok(())
    }

    /// Waits for Ctrl-C, the end of the console, or the shutdown of the system.
    pub(crate) async fn shutdown_signal() {
        match (ctrl_close(), ctrl_shutdown()) {
            (Ok(mut close), Ok(mut shutdown)) => tokio::select! {
                () = super::ctrl_c() => {}
                _ = close.recv() => {}
                _ = shutdown.recv() => {}
            },
            _ => super::ctrl_c().await,
        }
    }
}

/// Waits for Ctrl-C. If no handler can be installed, Ctrl-C ends the process anyway.
async fn ctrl_c() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
