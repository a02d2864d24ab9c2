//! Where a cluster lives: its home folder, its socket folder, and the lock that keeps it to one process.

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io::{ErrorKind, Read, Seek, Write},
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::{Path, PathBuf},
};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::{EmbeddedPostgresError, account::Account};

/// The cluster's home inside the data folder.
const HOME: &str = "postgres";
/// The file in the data folder that remembers a home elsewhere.
const NOTE: &str = "postgres-location";
/// The file in the data folder whose lock keeps the cluster to one process.
const LOCK: &str = "postgres.lock";
/// The socket's file name: Postgres derives it from the port, and the port is always the standard one.
const SOCKET: &str = ".s.PGSQL.5432";
/// The longest path a Unix socket can have, in bytes.
const LONGEST_SOCKET: usize = if cfg!(target_os = "macos") { 103 } else { 107 };

/// The lock of a data folder, held as long as this value lives. The kernel lets go of it when the process dies.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Whether another process has it.
    pub fn is_held(data_dir: &Path) -> Result<bool, EmbeddedPostgresError> {
        let path = data_dir.join(LOCK);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(EmbeddedPostgresError::io("open", &path)(error)),
        };
        // Shared, and let go of at once: two who look do not see each other.
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(source)) => Err(EmbeddedPostgresError::io("lock", path)(source)),
        }
    }

    pub fn acquire(data_dir: &Path) -> Result<Self, EmbeddedPostgresError> {
        let path = data_dir.join(LOCK);
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(EmbeddedPostgresError::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Only for the message.
                let _ = file.read_to_string(&mut holder);
                let holder = holder.trim();
                return Err(EmbeddedPostgresError::InUse {
                    data_dir: data_dir.to_owned(),
                    holder: if holder.is_empty() {
                        String::new()
                    } else {
                        format!(" (process {holder})")
                    },
                });
            }
            Err(TryLockError::Error(source)) => return Err(EmbeddedPostgresError::io("lock", path)(source)),
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()));
        written.map_err(EmbeddedPostgresError::io("write", path))?;
        Ok(Self { _file: file })
    }
}

/// The home folder of a cluster: `data/`, `run/` and the log.
#[derive(Clone, Debug)]
pub(super) struct Home(PathBuf);

impl Home {
    /// The home that exists, if there is one.
    pub fn existing(data_dir: &Path) -> Result<Option<Self>, EmbeddedPostgresError> {
        let note = data_dir.join(NOTE);
        match fs::read_to_string(&note) {
            Ok(text) => {
                let location = PathBuf::from(text.trim_end_matches('\n'));
                if !location.is_dir() {
                    return Err(EmbeddedPostgresError::LocationGone { location, note });
                }
                Ok(Some(Self(location)))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let home = Self(data_dir.join(HOME));
                Ok(home.has_cluster().then_some(home))
            }
            Err(error) => Err(EmbeddedPostgresError::io("read", note)(error)),
        }
    }

    /// Makes a home: in the data folder, or, where `account` cannot reach that, below the first of `roots` it can reach.
    pub async fn make(data_dir: &Path, account: &Account, roots: &[PathBuf]) -> Result<Self, EmbeddedPostgresError> {
        let inside = data_dir.join(HOME);
        make_private(&inside, account)?;
        if account.reaches(&inside).await {
            return Ok(Self(inside));
        }
        // Empty, or it would have been an existing home.
        let _ = fs::remove_dir(&inside);
        let digest = Sha256::digest(data_dir.as_os_str().as_bytes());
        let name = format!("postgres-{}", HEXLOWER.encode(&digest[..8]));
        let mut tried = vec![inside];
        for root in roots {
            let outside = root.join(&name);
            // A root that cannot be made (a read-only system) is one that cannot be reached.
            let made = fs::create_dir_all(root).is_ok() && make_private(&outside, account).is_ok();
            // In a folder that everybody can write, somebody else may have been there first.
            if made && account.owns(&outside) && account.reaches(&outside).await {
                remember(data_dir, &outside)?;
                return Ok(Self(outside));
            }
            tried.push(outside);
        }
        Err(EmbeddedPostgresError::Unreachable {
            account: account.name.clone(),
            tried,
        })
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Postgres's data folder.
    pub fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// The server's log file.
    pub fn log(&self) -> PathBuf {
        self.0.join("postgres.log")
    }

    /// The folder of the running server's socket, which it writes into its lock file as the fifth line; `None` while it is
    /// starting.
    pub fn socket_in_use(&self) -> Result<Option<PathBuf>, EmbeddedPostgresError> {
        let path = self.data().join("postmaster.pid");
        match fs::read_to_string(&path) {
            Ok(text) => {
                let folder = text.lines().nth(4).filter(|line| !line.is_empty());
                Ok(folder.map(PathBuf::from))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(EmbeddedPostgresError::io("read", path)(error)),
        }
    }

    fn has_cluster(&self) -> bool {
        self.data().join("PG_VERSION").is_file()
    }

    /// The cluster's major version; none: there is no cluster yet.
    pub fn version(&self) -> Result<Option<u32>, EmbeddedPostgresError> {
        let path = self.data().join("PG_VERSION");
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text.trim().parse().ok()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(EmbeddedPostgresError::io("read", path)(error)),
        }
    }
}

/// The folder of the cluster's socket; a temporary one goes when this value does.
#[derive(Debug)]
pub(super) struct SocketFolder {
    path: PathBuf,
    _temporary: Option<TempDir>,
}

impl SocketFolder {
    /// `run/` in the home, or a short temporary folder where the socket's path would become too long for the kernel.
    pub fn make(home: &Home, account: &Account, application: &str) -> Result<Self, EmbeddedPostgresError> {
        let inside = home.path().join("run");
        if inside.join(SOCKET).as_os_str().len() <= LONGEST_SOCKET {
            make_private(&inside, account)?;
            return Ok(Self {
                path: inside,
                _temporary: None,
            });
        }
        // Not TMPDIR: that may be long, or closed to Postgres's user.
        let temporary = tempfile::Builder::new()
            .prefix(&format!("{application}-"))
            .tempdir_in("/tmp")
            .map_err(EmbeddedPostgresError::io("make a folder in", "/tmp"))?;
        account.give(temporary.path())?;
        Ok(Self {
            path: temporary.path().to_owned(),
            _temporary: Some(temporary),
        })
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Makes the folder `path` for `account` alone, unless it exists.
fn make_private(path: &Path, account: &Account) -> Result<(), EmbeddedPostgresError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => account.give(path),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(EmbeddedPostgresError::io("make the folder", path)(error)),
    }
}

/// Writes the note that the home is at `location`, whole or not at all.
fn remember(data_dir: &Path, location: &Path) -> Result<(), EmbeddedPostgresError> {
    let note = data_dir.join(NOTE);
    let mut file =
        tempfile::NamedTempFile::new_in(data_dir).map_err(EmbeddedPostgresError::io("write in", data_dir))?;
    file.write_all(location.as_os_str().as_bytes())
        .and_then(|()| file.as_file().sync_all())
        .map_err(EmbeddedPostgresError::io("write", &note))?;
    file.persist(&note)
        .map_err(|error| EmbeddedPostgresError::io("write", &note)(error.error))?;
    Ok(())
}
