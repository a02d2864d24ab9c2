//! The private PostgreSQL cluster that holds the tests' databases, and the templates they are copied from.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use embedded_postgres::{EmbeddedPostgres, EmbeddedPostgresError, Options};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, Pid, access};
use partner_api_signing::Environment;
use partner_api_store::connection::Connection;
use partner_api_store::deployment::{self, Configured};
use partner_api_store::pool::PoolSettings;
use partner_api_store::{migrate::migrate, pool, roles};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use refinery::{Migration, Runner};
use tokio::sync::OnceCell;
use tokio_postgres::{Client, Config, NoTls};
use uuid::Uuid;

use crate::fixture;

pub mod citus;

/// Names the cluster's maintenance database; set by `test-postgres`.
pub const URL_VARIABLE: &str = "TEST_DATABASE_URL";

/// Names a folder with migrations of a later release, which the databases of all tests then have, too. So the tests of a release
/// can be run on the schema of the next one.
pub const LATER_MIGRATIONS_VARIABLE: &str = "TEST_LATER_MIGRATIONS";

/// The database that holds the schema and nothing else.
const SCHEMA: &str = "template_schema";

/// The database that holds the schema and the fixture data.
const WITH_FIXTURE: &str = "template_fixture";

/// The owner of the tables in the databases of tests.
pub const OWNER: &str = "template_schema_owner";

/// The user with the service's rights in the databases of tests.
pub const SERVER: &str = "test_server";

/// The user with the operators' rights in the databases of tests.
pub const OPERATOR: &str = "test_operator";

/// The prefix of cluster folders; the rest is the ID of their process.
const FOLDER_PREFIX: &str = "partner-api-tests-";

/// A running cluster with its templates, stopped and removed when it is dropped or [`stop`](Cluster::stop)ped.
pub struct Cluster {
    postgres: Option<EmbeddedPostgres>,
    /// The workers of Citus, if it is used.
    workers: Vec<EmbeddedPostgres>,
    folder: PathBuf,
}

impl Cluster {
    /// Starts a cluster in a temporary folder, and creates the templates.
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
        // The data need not survive a crash.
        let mut options = Options {
            durable: false,
            max_connections: 200,
            // The databases exist for a second.
            settings: vec![("autovacuum".into(), "off".into())],
            ..Options::of("partner-api")
        };
        let mut workers = Vec::new();
        let citus = citus::file();
        if citus.is_some() {
            citus::configure(&mut options);
            workers = citus::start_workers(&folder, &options).await?;
        }
        let postgres = EmbeddedPostgres::start(&folder, options).await?;
        let schema = postgres.create_database(SCHEMA).await?;
        if citus.is_some() {
            citus::join(&schema, &workers).await?;
        }
        migrate(&schema).await.unwrap();
        if let Some(folder) = std::env::var_os(LATER_MIGRATIONS_VARIABLE) {
            apply(&schema, &migrations_with(Path::new(&folder))).await.unwrap();
        }
        claim(&schema, Environment::Test).await;
        if citus.is_some() {
            citus::create_roles(&schema).await;
        }
        create_users(&schema).await;
        let nodes: Vec<Config> = [&postgres]
            .into_iter()
            .chain(&workers)
            .map(|node| node.config_of("postgres"))
            .collect();
        let with_fixture = match &citus {
            Some(file) => {
                citus::distribute(&schema, file).await;
                citus::copy_schema(&nodes).await;
                postgres.config_of(WITH_FIXTURE)
            }
            None => postgres.create_database_from(WITH_FIXTURE, SCHEMA).await?,
        };
        in_session(&with_fixture, async |client| {
            fixture::fill(client).await;
            client.batch_execute("ANALYZE").await.unwrap();
        })
        .await;
        // The start of a session writes the cache of the catalog to files, which copies of the template include, so their first
        // sessions need not build it. The statements above have invalidated it.
        match citus {
            Some(_) => citus::close(&nodes, WITH_FIXTURE).await,
            None => {
                for template in [SCHEMA, WITH_FIXTURE] {
                    in_session(&postgres.config_of(template), async |_| {}).await;
                }
            }
        }
        Ok(Self {
            postgres: Some(postgres),
            workers,
            folder,
        })
    }

    /// Returns the value for [`URL_VARIABLE`].
    pub fn url(&self) -> String {
        self.postgres.as_ref().unwrap().url_of("postgres")
    }

    /// Returns the value for [`citus::WORKERS_VARIABLE`].
    pub fn worker_urls(&self) -> String {
        let urls: Vec<String> = self.workers.iter().map(|worker| worker.url_of("postgres")).collect();
        urls.join(" ")
    }

    /// Returns a folder for temporary files, the value for `TMPDIR`. It is removed with the cluster.
    pub fn temporary(&self) -> PathBuf {
        self.folder.join("tmp")
    }

    /// Stops the cluster and removes it.
    pub async fn stop(mut self) {
        if let Some(postgres) = self.postgres.take() {
            postgres.stop().await;
        }
        for worker in self.workers.drain(..) {
            worker.stop().await;
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.postgres = None;
        self.workers.clear();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Makes the database one of an environment.
pub async fn claim(config: &Config, environment: Environment) {
    let pool = pool::pool(config.clone(), &PoolSettings::default()).unwrap();
    let connection = Connection::take(&pool, Duration::from_secs(30)).await.unwrap();
    let configured = Configured { environment, id: None };
    deployment::claim(&connection, configured).await.unwrap();
}

/// Returns the migrations of this release and, from a folder, those of a later release, in order.
pub fn migrations_with(later: &Path) -> Vec<Migration> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    let mut migrations = refinery::load_sql_migrations(folder).unwrap();
    let own: BTreeSet<_> = migrations.iter().map(Migration::version).collect();
    let later = refinery::load_sql_migrations(later).unwrap();
    migrations.extend(
        later
            .into_iter()
            .filter(|migration| !own.contains(&migration.version())),
    );
    migrations.sort_by_key(Migration::version);
    migrations
}

/// Applies the migrations that the database lacks, as another release does, and returns their number.
///
/// # Errors
/// If a migration fails.
pub async fn apply(config: &Config, migrations: &[Migration]) -> Result<usize, refinery::Error> {
    let mut client = connect(config).await;
    let report = Runner::new(migrations).run_async(&mut client).await?;
    Ok(report.applied_migrations().len())
}

/// Creates the roles of the template, whose privileges its copies include, and [`SERVER`] and [`OPERATOR`].
async fn create_users(template: &Config) {
    let roles = roles::create(template).await.unwrap();
    let users = format!(
        "CREATE ROLE {SERVER} LOGIN IN ROLE {}; CREATE ROLE {OPERATOR} LOGIN IN ROLE {}",
        roles.server, roles.operator
    );
    in_session(template, async |client| client.batch_execute(&users).await.unwrap()).await;
}

/// Runs `work` in a session and waits for the end of the session, because a template with a session cannot be copied.
async fn in_session(config: &Config, work: impl AsyncFnOnce(&Client)) {
    let (client, driver) = config.connect(NoTls).await.unwrap();
    let driver = tokio::spawn(driver);
    work(&client).await;
    drop(client);
    driver.await.unwrap().unwrap();
}

/// Returns the folder of clusters: in memory if enough is free, and otherwise the folder for temporary files. Hundreds of databases
/// with 300 files each are created and dropped. On ext4, the search for free inode numbers took a third of the suite's processor
/// time.
fn parent_folder() -> PathBuf {
    /// Several times the peak of a run of all tests.
    const REQUIRED: u64 = 2 << 30;
    let memory = Path::new("/dev/shm");
    let free = statvfs(memory).map_or(0, |found| found.blocks_available() * found.fragment_size());
    let is_writable = access(memory, AccessFlags::W_OK).is_ok();
    if std::env::var_os("TMPDIR").is_none() && is_writable && free >= REQUIRED {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    }
}

/// Removes the folders of processes that were killed.
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

/// Returns the cluster's maintenance database: that of [`URL_VARIABLE`], or of a cluster that this process starts and stops.
async fn maintenance() -> Config {
    static CLUSTER: OnceCell<(Cluster, String)> = OnceCell::const_new();
    let url = match std::env::var(URL_VARIABLE) {
        Ok(url) => url,
        Err(_) => {
            let start = || async {
                let cluster = Cluster::start().await.unwrap_or_else(|error| panic!("{error}"));
                let url = cluster.url();
                (cluster, url)
            };
            CLUSTER.get_or_init(start).await.1.clone()
        }
    };
    pool::parse_url(&url).unwrap()
}

/// Connects, and drives the connection in the background.
pub async fn connect(config: &Config) -> Client {
    let (client, driver) = config
        .connect(NoTls)
        .await
        .unwrap_or_else(|error| panic!("failed to connect: {error:?}"));
    tokio::spawn(driver);
    client
}

/// Returns the URL of a database of the cluster, for programs.
pub fn url(config: &Config) -> String {
    let plain = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let host = match config.get_hosts() {
        [tokio_postgres::config::Host::Unix(folder)] => folder.display().to_string(),
        [tokio_postgres::config::Host::Tcp(name)] => name.clone(),
        hosts => panic!("expected one host: {hosts:?}"),
    };
    let (database, user) = (config.get_dbname().unwrap(), config.get_user().unwrap());
    format!("postgresql:///{database}?host={}&user={}", plain(&host), plain(user))
}

/// A test's database, which is a copy of a template. It is dropped with this value.
#[derive(Debug)]
pub struct Database {
    maintenance: Config,
    name: String,
}

impl Database {
    /// Creates a database with the schema and the data of [`fixture`].
    pub async fn create() -> Self {
        Self::copy_of(WITH_FIXTURE).await
    }

    /// Creates a database with the schema and no rows.
    pub async fn without_rows() -> Self {
        Self::copy_of(SCHEMA).await
    }

    /// Creates a database without the schema.
    pub async fn empty() -> Self {
        Self::copy_of("template0").await
    }

    async fn copy_of(template: &str) -> Self {
        let maintenance = maintenance().await;
        let name = format!("t_{}", Uuid::now_v7().simple());
        let client = connect(&maintenance).await;
        let version = "SELECT current_setting('server_version_num')::integer";
        let version: i32 = client.query_one(version, &[]).await.unwrap().get(0);
        // Copying files is faster without durability than PostgreSQL's default, which writes each page to the log as well.
        let strategy = if version >= 150_000 { "STRATEGY file_copy" } else { "" };
        let create = format!("CREATE DATABASE {name} TEMPLATE {template} {strategy}");
        client.batch_execute(&create).await.unwrap();
        for worker in citus::workers() {
            connect(&worker).await.batch_execute(&create).await.unwrap();
        }
        Self { maintenance, name }
    }

    /// Returns the connection settings of the database.
    pub fn config(&self) -> Config {
        let mut config = self.maintenance.clone();
        config.dbname(&self.name);
        config
    }

    /// Ends every session in it and rejects new ones.
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
        // In a separate runtime, because the test's runtime may be ending, and must not block on itself.
        let removal = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                for node in [maintenance].into_iter().chain(citus::workers()) {
                    let client = connect(&node).await;
                    client
                        .batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)"))
                        .await
                        .unwrap();
                }
            });
        });
        let removed = removal.join();
        assert!(
            removed.is_ok() || thread::panicking(),
            "failed to drop the test's database"
        );
    }
}
