//! The private PostgreSQL cluster that holds the tests' databases, and the templates they are copied from.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;

use embedded_postgres::{EmbeddedPostgres, EmbeddedPostgresError, Options};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, Pid, access};
use partner_api::db::{migrate::migrate, pool};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::sync::OnceCell;
use tokio_postgres::{Client, Config, NoTls};
use uuid::Uuid;

use crate::fixture;

/// Names the cluster's maintenance database; set by `test-postgres`.
pub const URL_VARIABLE: &str = "TEST_DATABASE_URL";

/// The database that holds the schema and nothing else.
const SCHEMA: &str = "template_schema";

/// The database that holds the schema and the world.
const WORLD: &str = "template_world";

/// Folders of clusters begin with this, and end with the id of their process.
const FOLDER_PREFIX: &str = "partner-api-tests-";

/// A running cluster with its templates, stopped when it is dropped or [`stop`](Cluster::stop)ped. Its folder goes with it.
pub struct Cluster {
    postgres: Option<EmbeddedPostgres>,
    folder: PathBuf,
}

impl Cluster {
    /// Starts a cluster in a temporary folder, and makes the templates.
    ///
    /// # Errors
    /// PostgreSQL is not installed (the message says what to install), or does not start.
    pub async fn start() -> Result<Self, EmbeddedPostgresError> {
        let parent = parent_folder();
        remove_leftovers(&parent);
        let folder = parent.join(format!("{FOLDER_PREFIX}{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        // As root, PostgreSQL runs as another user, who must be able to enter.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        let temporary = folder.join("tmp");
        fs::create_dir_all(&temporary).unwrap();
        fs::set_permissions(&temporary, fs::Permissions::from_mode(0o1777)).unwrap();
        // Nothing here is worth a flush.
        let options = Options {
            durable: false,
            max_connections: 200,
            // Databases that live for a second are not worth the visits of its workers.
            settings: vec![("autovacuum".into(), "off".into())],
            ..Options::of("partner-api")
        };
        let postgres = EmbeddedPostgres::start(&folder, options).await?;
        migrate(&postgres.create_database(SCHEMA).await?).await.unwrap();
        let world = postgres.create_database_from(WORLD, SCHEMA).await?;
        alone(&world, async |client| {
            fixture::fill(client).await;
            client.batch_execute("ANALYZE").await.unwrap();
        })
        .await;
        // A session's start leaves the catalogue's cache beside the tables, from where it is copied with them: the first
        // session of each copy then need not build it. What was done above has invalidated it.
        for template in [SCHEMA, WORLD] {
            alone(&postgres.config_of(template), async |_| {}).await;
        }
        Ok(Self {
            postgres: Some(postgres),
            folder,
        })
    }

    /// For [`URL_VARIABLE`].
    pub fn url(&self) -> String {
        self.postgres.as_ref().unwrap().url_of("postgres")
    }

    /// A folder for what tests keep for a while, which goes with the cluster: for `TMPDIR`.
    pub fn temporary(&self) -> PathBuf {
        self.folder.join("tmp")
    }

    /// Stops the cluster and removes it.
    pub async fn stop(mut self) {
        if let Some(postgres) = self.postgres.take() {
            postgres.stop().await;
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.postgres = None;
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Does something in a session, and sees its end: a template with a session cannot be copied.
async fn alone(config: &Config, work: impl AsyncFnOnce(&Client)) {
    let (client, driver) = config.connect(NoTls).await.unwrap();
    let driver = tokio::spawn(driver);
    work(&client).await;
    drop(client);
    driver.await.unwrap().unwrap();
}

/// Where clusters are: in memory where there is enough of it, else in the folder for temporary files. Hundreds of databases come
/// and go, with 300 files each: a third of the suite's processor time went into ext4's search for numbers of files that were
/// not deleted in the last seconds.
fn parent_folder() -> PathBuf {
    /// Several times what a run of all tests took at its height.
    const ROOM: u64 = 2 << 30;
    let memory = Path::new("/dev/shm");
    let room = statvfs(memory).map_or(0, |found| found.blocks_available() * found.fragment_size());
    let is_writable = access(memory, AccessFlags::W_OK).is_ok();
    if std::env::var_os("TMPDIR").is_none() && is_writable && room >= ROOM {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    }
}

/// Removes the folders of processes that are gone: one that was killed could not.
fn remove_leftovers(parent: &Path) {
    for entry in parent.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name
            .to_str()
            .and_then(|name| name.strip_prefix(FOLDER_PREFIX)?.parse().ok());
        if process.is_some_and(|process| kill(Pid::from_raw(process), None) == Err(Errno::ESRCH)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The cluster's maintenance database: that of [`URL_VARIABLE`], else of a cluster that this process starts and that ends
/// with it.
async fn maintenance() -> Config {
    static OWN: OnceCell<(Cluster, String)> = OnceCell::const_new();
    let url = match std::env::var(URL_VARIABLE) {
        Ok(url) => url,
        Err(_) => {
            let start = || async {
                let cluster = Cluster::start().await.unwrap_or_else(|error| panic!("{error}"));
                let url = cluster.url();
                (cluster, url)
            };
            OWN.get_or_init(start).await.1.clone()
        }
    };
    pool::parse_url(&url).unwrap()
}

/// Connects, and drives the connection in the background.
pub async fn connect(config: &Config) -> Client {
    let (client, driver) = config
        .connect(NoTls)
        .await
        .unwrap_or_else(|error| panic!("no connection: {error:?}"));
    tokio::spawn(driver);
    client
}

/// How to connect to a database of the cluster, as a URL for programs.
pub fn url(config: &Config) -> String {
    let plain = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let host = match config.get_hosts() {
        [tokio_postgres::config::Host::Unix(folder)] => folder.display().to_string(),
        [tokio_postgres::config::Host::Tcp(name)] => name.clone(),
        hosts => panic!("one host is expected: {hosts:?}"),
    };
    let (database, user) = (config.get_dbname().unwrap(), config.get_user().unwrap());
    format!("postgresql:///{database}?host={}&user={}", plain(&host), plain(user))
}

/// A database of one test, a copy of a template; dropped with this value.
#[derive(Debug)]
pub struct Database {
    maintenance: Config,
    name: String,
}

impl Database {
    /// With the schema and the world of [`fixture`].
    pub async fn create() -> Self {
        Self::copy_of(WORLD).await
    }

    /// With the schema alone.
    pub async fn without_rows() -> Self {
        Self::copy_of(SCHEMA).await
    }

    /// Without even the schema.
    pub async fn empty() -> Self {
        Self::copy_of("template0").await
    }

    async fn copy_of(template: &str) -> Self {
        let maintenance = maintenance().await;
        let name = format!("t_{}", Uuid::now_v7().simple());
        let client = connect(&maintenance).await;
        let version = "SELECT current_setting('server_version_num')::integer";
        let version: i32 = client.query_one(version, &[]).await.unwrap().get(0);
        // Nothing is flushed here, and so copying files takes less than writing each page to the log as well, which is what
        // PostgreSQL does by itself since it has the choice.
        let strategy = if version >= 150_000 { "STRATEGY file_copy" } else { "" };
        client
            .batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {template} {strategy}"))
            .await
            .unwrap();
        Self { maintenance, name }
    }

    /// How to connect to it.
    pub fn config(&self) -> Config {
        let mut config = self.maintenance.clone();
        config.dbname(&self.name);
        config
    }

    /// Ends every session in it, and lets nobody in any more.
    pub async fn cut_off(&self) {
        let client = connect(&self.maintenance).await;
        let name = &self.name;
        client
            .batch_execute(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"))
            .await
            .unwrap();
        let ended = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE datname = $1";
        client.execute(ended, &[name]).await.unwrap();
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (maintenance, name) = (self.maintenance.clone(), self.name.clone());
        // Of its own: the test's runtime may be ending, and is not to be waited for from within.
        let removal = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let client = connect(&maintenance).await;
                client
                    .batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)"))
                    .await
                    .unwrap();
            });
        });
        let removed = removal.join();
        assert!(
            removed.is_ok() || thread::panicking(),
            "the test's database could not be dropped"
        );
    }
}
