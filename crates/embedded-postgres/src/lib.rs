//! A private PostgreSQL cluster for an application.
//!
//! The cluster uses the PostgreSQL server programs on the machine, and is stored in the application's data folder. It accepts
//! connections on a Unix socket only, and stops when the application stops.
//!
//! ```text
//! <data folder>/postgres.lock        ensures that only one process runs the cluster
//! <data folder>/postgres/data        the cluster (or in the folder that <data folder>/postgres-location contains)
//! <data folder>/postgres/run         its socket  (or in a short folder in /tmp if the path would be too long)
//! <data folder>/postgres/postgres.log
//! ```
//! PostgreSQL does not run as root. If the application runs as root, PostgreSQL runs as `postgres` or `nobody`. If that user cannot
//! access the data folder (for example below /root), the cluster is stored in `/var/lib/<application>`.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio_postgres::{Config, NoTls};

mod account;
mod binaries;
mod error;
mod layout;
mod server;

pub use binaries::{Binaries, standard_folders};
pub use error::EmbeddedPostgresError;

use account::Account;
use layout::{Home, Lock, SocketFolder};
use server::{Server, Setup};

/// The characters that are escaped in a URL.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The options of a private cluster. Start with [`Options::of`].
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the application: words of a-z and 0-9 with hyphens between them, such as `parking-meters`. Folders outside of
    /// the data folder contain this name. The database and the role that owns the cluster have the same name with underscores.
    pub application: &'static str,
    /// The folders that are searched for `postgres`, `initdb` and `pg_ctl`; `None` for [`standard_folders`].
    pub search: Option<Vec<PathBuf>>,
    /// Whether data survives a crash of the machine. False is faster, and only for tests.
    pub durable: bool,
    /// PostgreSQL's `max_connections`.
    pub max_connections: u32,
    /// Names and values of further settings of `postgresql.conf`, which take precedence.
    pub settings: Vec<(String, String)>,
    /// The time limit for the start of the server, including recovery after a crash.
    pub start_timeout: Duration,
    /// The folders for a cluster whose data folder PostgreSQL's user cannot access; `None` for `/var/lib/<application>`, then
    /// `/var/tmp/<application>`.
    pub roots: Option<Vec<PathBuf>>,
}

impl Options {
    /// Returns the default options for an application.
    #[must_use]
    pub fn of(application: &'static str) -> Self {
        Self {
            application,
            search: None,
            durable: true,
            max_connections: 100,
            settings: Vec::new(),
            start_timeout: Duration::from_secs(120),
            roots: None,
        }
    }

    /// Returns the name of the application's database and role.
    fn role(&self) -> String {
        self.application.replace('-', "_")
    }

    fn roots(&self) -> Vec<PathBuf> {
        // `/var/tmp` survives a restart of the machine.
        let standard = || {
            ["/var/lib", "/var/tmp"]
                .map(|folder| Path::new(folder).join(self.application))
                .into()
        };
        self.roots.clone().unwrap_or_else(standard)
    }
}

/// A running private cluster. [`EmbeddedPostgres::stop`] shuts it down. Dropping the value does so as well, and blocks until it has
/// stopped. If the process is killed, a guard process stops the server.
#[derive(Debug)]
pub struct EmbeddedPostgres {
    // The fields are dropped in this order: the server stops before its socket folder is removed and the lock is released.
    server: Server,
    socket: SocketFolder,
    home: Home,
    role: String,
    _lock: Lock,
}

impl EmbeddedPostgres {
    /// Starts the cluster in `data_dir` and waits until it accepts connections. Creates the folder, the cluster and the
    /// application's database if they do not exist.
    ///
    /// # Errors
    /// - No server programs are installed. The message names the packages to install.
    /// - Another process uses the folder.
    /// - The server does not start. The message contains the end of its log.
    pub async fn start(data_dir: &Path, options: Options) -> Result<Self, EmbeddedPostgresError> {
        fs::create_dir_all(data_dir).map_err(EmbeddedPostgresError::io("create the folder", data_dir))?;
        let data_dir = data_dir
            .canonicalize()
            .map_err(EmbeddedPostgresError::io("find", data_dir))?;
        let folders = options.search.clone().unwrap_or_else(standard_folders);
        let lock = Lock::acquire(&data_dir)?;

        let existing = Home::existing(&data_dir)?;
        let account = Account::choose(existing.as_ref().map(Home::path))?;
        let version = existing.as_ref().map(Home::version).transpose()?.flatten();
        let cluster = existing.as_ref().map(Home::data);
        let binaries = Binaries::find(&folders, version.zip(cluster.as_deref()))?;
        let home = match existing {
            Some(home) => home,
            None => Home::create(&data_dir, &account, &options.roots()).await?,
        };

        let setup = Setup {
            account: &account,
            binaries: &binaries,
            home: &home,
            options: &options,
        };
        // Checked again: there may be a cluster in a home outside of the data folder whose location file was lost.
        if home.version()?.is_none() {
            setup.initialize().await?;
        }
        setup.stop_leftover().await?;
        let socket = SocketFolder::create(&home, &account, options.application)?;
        let server = setup.start(&socket).await?;
        if account.is_other() {
            tracing::info!(user = account.name, folder = %home.path().display(), "running PostgreSQL as another user");
        }
        let postgres = Self {
            server,
            socket,
            home,
            role: options.role(),
            _lock: lock,
        };
        postgres.create_database(&postgres.role).await?;
        Ok(postgres)
    }

    /// Returns the connection settings for the application's database in a cluster that another process runs in `data_dir`, or
    /// `None` if no process does.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn find_running(data_dir: &Path, options: &Options) -> Result<Option<Config>, EmbeddedPostgresError> {
        let Ok(data_dir) = data_dir.canonicalize() else {
            return Ok(None);
        };
        if !Lock::is_held(&data_dir)? {
            return Ok(None);
        }
        let Some(home) = Home::existing(&data_dir)? else {
            return Ok(None);
        };
        let role = options.role();
        Ok(home.socket_in_use()?.map(|socket| config_for(&socket, &role, &role)))
    }

    /// Returns the connection settings for the application's database.
    #[must_use]
    pub fn config(&self) -> Config {
        self.config_of(&self.role)
    }

    /// Returns the connection settings for another database of the cluster.
    #[must_use]
    pub fn config_of(&self, database: &str) -> Config {
        config_for(self.socket.path(), &self.role, database)
    }

    /// Returns the URL of the application's database, for programs such as `psql`.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of(&self.role)
    }

    /// Returns the URL of another database of the cluster.
    #[must_use]
    pub fn url_of(&self, database: &str) -> String {
        let escaped = |text: &str| utf8_percent_encode(text, ESCAPED).to_string();
        let host = escaped(&self.socket.path().display().to_string());
        format!("postgresql:///{}?host={host}&user={}", escaped(database), self.role)
    }

    /// Returns the folder that contains the cluster and its log.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Creates a database unless it exists.
    ///
    /// # Errors
    /// If the server reports an error.
    pub async fn create_database(&self, name: &str) -> Result<Config, EmbeddedPostgresError> {
        self.create_database_from(name, "template0").await
    }

    /// Creates a database as a copy of `template` unless it exists. There must be no connections to the template.
    ///
    /// # Errors
    /// If the server reports an error.
    pub async fn create_database_from(&self, name: &str, template: &str) -> Result<Config, EmbeddedPostgresError> {
        let (client, connection) = self.config_of("postgres").connect(NoTls).await?;
        let driver = tokio::spawn(connection);
        let exists = client
            .query_opt("SELECT FROM pg_database WHERE datname = $1", &[&name])
            .await?
            .is_some();
        if !exists {
            let statement = format!("CREATE DATABASE {} TEMPLATE {}", quote(name), quote(template));
            client.batch_execute(&statement).await?;
        }
        drop(client);
        // Waits for the end of the session. Its result does not matter.
        let _ = driver.await;
        Ok(self.config_of(name))
    }

    /// Stops the server. Open transactions are rolled back, and a checkpoint is written.
    pub async fn stop(mut self) {
        self.server.stop().await;
    }
}

fn config_for(socket: &Path, role: &str, database: &str) -> Config {
    let mut config = Config::new();
    config.host_path(socket).user(role).dbname(database);
    config
}

/// Quotes an SQL identifier.
fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
