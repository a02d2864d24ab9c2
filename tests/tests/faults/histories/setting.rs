//! What the histories of a kind share: a PostgreSQL cluster, a small disk, and a wrong clock.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use embedded_postgres::{Binaries, Options, standard_folders};
use tempfile::TempDir;

use super::super::durable_cluster::DurableCluster;
use super::Kind;

/// What the histories of a kind share.
pub struct Setting {
    // In this order: the server stops before its files are removed.
    pub cluster: Option<DurableCluster>,
    pub disk: Option<SmallDisk>,
    pub folder: TempDir,
}

impl Setting {
    pub async fn new(kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let mut setting = Self {
            cluster: None,
            disk: None,
            folder,
        };
        let mut options = Options::of("partner-api");
        match kind {
            // The suite's cluster.
            Kind::Connections | Kind::Replicas => return setting,
            Kind::Database => {}
            Kind::Storage => {
                setting.disk = Some(SmallDisk::mount(setting.folder.path()));
                options.settings = vec![
                    ("max_wal_size".into(), "64MB".into()),
                    ("min_wal_size".into(), "32MB".into()),
                ];
            }
            Kind::Clocks => {
                set_clock(setting.folder.path(), 0);
                options.search = Some(vec![programs_with_clock(setting.folder.path())]);
            }
        }
        let within = setting.disk.as_ref().map_or(setting.folder.path(), |disk| &disk.folder);
        let folder = tempfile::tempdir_in(within).unwrap();
        setting.cluster = Some(DurableCluster::start_in(folder, options).await);
        setting
    }
}

/// A file system of limited size, which is unmounted when it is dropped.
pub struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    fn mount(parent: &Path) -> Self {
        let folder = parent.join("disk");
        fs::create_dir(&folder).unwrap();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256m,mode=755", "tmpfs"])
            .arg(&folder)
            .status();
        assert!(status.unwrap().success(), "failed to mount a small file system");
        Self { folder }
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }

    /// Fills it.
    pub fn fill(&self) {
        let mut ballast = fs::File::create(self.ballast()).unwrap();
        // Ends with an error when nothing more fits.
        let _ = std::io::copy(&mut std::io::repeat(0), &mut ballast);
    }

    /// Frees what [`fill`](Self::fill) has used.
    pub fn free(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.folder).status();
    }
}

/// Returns libfaketime, which Debian's package `faketime` installs.
pub fn faketime() -> Option<PathBuf> {
    let found = glob::glob("/usr/lib/*/faketime/libfaketimeMT.so.1").unwrap();
    found.flatten().next()
}

/// Writes the file by which PostgreSQL's clock is wrong.
pub fn set_clock(folder: &Path, seconds: i32) {
    let (file, new) = (folder.join("clock"), folder.join("clock.new"));
    fs::write(&new, format!("{seconds:+}\n")).unwrap();
    fs::rename(new, file).unwrap();
}

/// Returns a folder with PostgreSQL's programs that reads the clock from the file of [`set_clock`].
fn programs_with_clock(folder: &Path) -> PathBuf {
    let binaries = Binaries::find(&standard_folders(), None).unwrap();
    let programs = folder.join("programs");
    fs::create_dir(&programs).unwrap();
    for name in ["postgres", "initdb", "pg_ctl"] {
        let clock = match name {
            "postgres" => format!(
                "export LD_PRELOAD='{}' FAKETIME_TIMESTAMP_FILE='{}' FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1\n",
                faketime().unwrap().display(),
                folder.join("clock").display()
            ),
            _ => String::new(),
        };
        let script = programs.join(name);
        let text = format!("#!/bin/sh\n{clock}exec '{}' \"$@\"\n", binaries.program(name).display());
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    }
    programs
}
