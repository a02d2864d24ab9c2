//! The files of a cluster: its home folder, its socket folder, and the lock file.

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

/// The folder of the cluster in the data folder.
const CLUSTER_FOLDER: &str = "postgres";
/// The file in the data folder with the path of a home outside of it.
const LOCATION_FILE: &str = "postgres-location";
/// The file in the data folder whose lock ensures that only one process runs the cluster.
const LOCK: &str = "postgres.lock";
/// The file name of the socket. PostgreSQL derives it from the port, which is always the standard one.
const SOCKET: &str = ".s.PGSQL.5432";
/// The maximum length of the path of a Unix socket, in bytes.
const MAX_SOCKET_PATH: usize = if cfg!(target_os = "macos") { 103 } else { 107 };

/// The lock of a data folder, held as long as this value exists. The kernel releases it when the process ends.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Returns whether another process holds the lock.
    pub fn is_held(data_dir: &Path) -> Result<bool, EmbeddedPostgresError> {
        let path = data_dir.join(LOCK);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(EmbeddedPostgresError::io("open", &path)(error)),
        };
        // A shared lock that is released at once, so that concurrent checks do not affect each other.
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
                let mut process_id = String::new();
                // The process ID is only for the message.
                let _ = file.read_to_string(&mut process_id);
                let process_id = process_id.trim();
                return Err(EmbeddedPostgresError::InUse {
                    data_dir: data_dir.to_owned(),
                    holder: if process_id.is_empty() {
                        String::new()
                    } else {
                        format!(" (process {process_id})")
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
    /// Returns the existing home, if there is one.
    pub fn existing(data_dir: &Path) -> Result<Option<Self>, EmbeddedPostgresError> {
        let location_file = data_dir.join(LOCATION_FILE);
        match fs::read_to_string(&location_file) {
            Ok(text) => {
                let location = PathBuf::from(text.trim_end_matches('\n'));
                if !location.is_dir() {
                    return Err(EmbeddedPostgresError::LocationGone {
                        location,
                        location_file,
                    });
                }
                Ok(Some(Self(location)))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let home = Self(data_dir.join(CLUSTER_FOLDER));
                Ok(home.has_cluster().then_some(home))
            }
            Err(error) => Err(EmbeddedPostgresError::io("read", location_file)(error)),
        }
    }

    /// Creates a home in the data folder or, if `account` cannot access it, in the first of the `roots` that it can access.
    pub async fn create(data_dir: &Path, account: &Account, roots: &[PathBuf]) -> Result<Self, EmbeddedPostgresError> {
        let inside = data_dir.join(CLUSTER_FOLDER);
        create_private(&inside, account)?;
        if account.can_write(&inside).await {
            return Ok(Self(inside));
        }
        // The folder is empty; otherwise it would have been an existing home.
        let _ = fs::remove_dir(&inside);
        let digest = Sha256::digest(data_dir.as_os_str().as_bytes());
        let name = format!("postgres-{}", HEXLOWER.encode(&digest[..8]));
        let mut tried = vec![inside];
        for root in roots {
            let outside = root.join(&name);
            // A root that cannot be created, for example on a read-only system, is skipped.
            let is_created = fs::create_dir_all(root).is_ok() && create_private(&outside, account).is_ok();
            // In a folder that is writable for all users, another user may have created the home.
            if is_created && account.owns(&outside) && account.can_write(&outside).await {
                write_location(data_dir, &outside)?;
                return Ok(Self(outside));
            }
            tried.push(outside);
        }
        Err(EmbeddedPostgresError::Unreachable {
            account: account.name.clone(),
            tried,
        })
    }

    /// Returns the path of the home.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns PostgreSQL's data folder.
    pub fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// Returns the server's log file.
    pub fn log(&self) -> PathBuf {
        self.0.join("postgres.log")
    }

    /// Returns the folder of the running server's socket, or `None` while the server is starting. It is the fifth line of the
    /// server's lock file.
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

    /// Returns the cluster's major version, or `None` if there is no cluster yet.
    pub fn version(&self) -> Result<Option<u32>, EmbeddedPostgresError> {
        let path = self.data().join("PG_VERSION");
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text.trim().parse().ok()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(EmbeddedPostgresError::io("read", path)(error)),
        }
    }
}

/// The folder of the cluster's socket. A temporary folder is removed when this value is dropped.
#[derive(Debug)]
pub(super) struct SocketFolder {
    path: PathBuf,
    _temporary: Option<TempDir>,
}

impl SocketFolder {
    /// Creates `run/` in the home, or a short temporary folder if the path of the socket would be too long.
    pub fn create(home: &Home, account: &Account, application: &str) -> Result<Self, EmbeddedPostgresError> {
        let inside = home.path().join("run");
        if inside.join(SOCKET).as_os_str().len() <= MAX_SOCKET_PATH {
            create_private(&inside, account)?;
            return Ok(Self {
                path: inside,
                _temporary: None,
            });
        }
        // TMPDIR is not used, because it may be long, or inaccessible to PostgreSQL's user.
        let temporary = tempfile::Builder::new()
            .prefix(&format!("{application}-"))
            .tempdir_in("/tmp")
            .map_err(EmbeddedPostgresError::io("create a folder in", "/tmp"))?;
        account.make_owner(temporary.path())?;
        Ok(Self {
            path: temporary.path().to_owned(),
            _temporary: Some(temporary),
        })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Creates the folder `path`, accessible only to `account`, unless it exists.
fn create_private(path: &Path, account: &Account) -> Result<(), EmbeddedPostgresError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => account.make_owner(path),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(EmbeddedPostgresError::io("create the folder", path)(error)),
    }
}

/// Writes the location file atomically.
fn write_location(data_dir: &Path, location: &Path) -> Result<(), EmbeddedPostgresError> {
    let location_file = data_dir.join(LOCATION_FILE);
    let mut file =
        tempfile::NamedTempFile::new_in(data_dir).map_err(EmbeddedPostgresError::io("write in", data_dir))?;
    file.write_all(location.as_os_str().as_bytes())
        .and_then(|()| file.as_file().sync_all())
        .map_err(EmbeddedPostgresError::io("write", &location_file))?;
    file.persist(&location_file)
        .map_err(|error| EmbeddedPostgresError::io("write", &location_file)(error.error))?;
    Ok(())
}
