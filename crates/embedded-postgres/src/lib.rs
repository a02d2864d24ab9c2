//! A private PostgreSQL cluster of an application's own: made from the server programs on the machine, kept in the
//! application's data folder, reached over a Unix socket only, stopped when the application stops.
//!
//! ```text
//! <data folder>/postgres.lock        one process at a time
//! <data folder>/postgres/data        the cluster      (or wherever <data folder>/postgres-location says)
//! <data folder>/postgres/run         its socket       (or a short folder in /tmp, where the path would be too long)
//! <data folder>/postgres/postgres.log
//! ```
//! Postgres refuses to run as root. Started as root it runs as `postgres` or `nobody`, and if that user cannot reach the
//! data folder (below /root, say) the cluster goes to `/var/lib/<application>`.

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
mod place;
mod server;

pub use binaries::{Binaries, standard_folders};
pub use error::EmbeddedPostgresError;

use account::Account;
use place::{Home, Lock, SocketFolder};
use server::{Server, Setup};

/// All but what is plain in every part of a URL.
const NOT_PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How a private cluster is run. It begins with [`Options::of`].
#[derive(Clone, Debug)]
pub struct Options {
    /// The application's name in words of a-z and 0-9 with hyphens between them, such as `parking-meters`. Its folders
    /// outside of the data folder carry it; the database and the role that owns the cluster are called like it, with
    /// underscores.
    pub application: &'static str,
    /// The folders to look for `postgres`, `initdb` and `pg_ctl` in; none: [`standard_folders`].
    pub search: Option<Vec<PathBuf>>,
    /// False gives up safety in a crash of the machine for speed: for tests alone.
    pub durable: bool,
    /// Postgres's `max_connections`.
    pub max_connections: u32,
    /// Further settings of `postgresql.conf`, name and value; they win over ours.
    pub settings: Vec<(String, String)>,
    /// How long the server may take until it answers; recovery after a crash is part of that.
    pub start_deadline: Duration,
    /// Where a cluster goes that Postgres's user cannot reach in the data folder; none: `/var/lib/<application>`, then
    /// `/var/tmp/<application>`.
    pub roots: Option<Vec<PathBuf>>,
}

impl Options {
    /// What is usual, for this application.
    #[must_use]
    pub fn of(application: &'static str) -> Self {
        Self {
            application,
            search: None,
            durable: true,
            max_connections: 100,
            settings: Vec::new(),
            start_deadline: Duration::from_secs(120),
            roots: None,
        }
    }

    /// The name of the application's database, and of the role it connects as.
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

/// A running private cluster. [`EmbeddedPostgres::stop`] stops it in order; dropping it does too, and blocks meanwhile.
/// If the process is killed, a guard process stops the server.
#[derive(Debug)]
pub struct EmbeddedPostgres {
    // The order matters: the server stops before its socket folder goes and the lock is let go of.
    server: Server,
    socket: SocketFolder,
    home: Home,
    role: String,
    _lock: Lock,
}

impl EmbeddedPostgres {
    /// Starts the cluster of `data_dir`, which is made if it does not exist, and waits until it answers. The application's
    /// database exists then.
    ///
    /// # Errors
    /// No server programs (the message says what to install), another process on the same folder, or a server that does
    /// not start (with the end of its log).
    pub async fn start(data_dir: &Path, options: Options) -> Result<Self, EmbeddedPostgresError> {
        fs::create_dir_all(data_dir).map_err(EmbeddedPostgresError::io("make the folder", data_dir))?;
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
            None => Home::make(&data_dir, &account, &options.roots()).await?,
        };

        let setup = Setup {
            account: &account,
            binaries: &binaries,
            home: &home,
            options: &options,
        };
        // Asked again: a cluster may stand in a home elsewhere whose note was lost.
        if home.version()?.is_none() {
            setup.initialise().await?;
        }
        setup.stop_leftover().await?;
        let socket = SocketFolder::make(&home, &account, options.application)?;
        let server = setup.start(&socket).await?;
        if account.is_other() {
            tracing::info!(user = account.name, folder = %home.path().display(), "PostgreSQL runs as another user");
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

    /// How to connect to the application's database of a cluster that another process runs on `data_dir`; `None` if none does.
    ///
    /// # Errors
    /// The folder cannot be looked into, or its server does not say where its socket is.
    pub fn of_another_process(data_dir: &Path, options: &Options) -> Result<Option<Config>, EmbeddedPostgresError> {
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

    /// How to connect to the application's database.
    #[must_use]
    pub fn config(&self) -> Config {
        self.config_of(&self.role)
    }

    /// How to connect to another database of the cluster.
    #[must_use]
    pub fn config_of(&self, database: &str) -> Config {
        config_for(self.socket.path(), &self.role, database)
    }

    /// The application's database as a URL, for `psql` and the like.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of(&self.role)
    }

    /// Another database of the cluster as a URL.
    #[must_use]
    pub fn url_of(&self, database: &str) -> String {
        let plain = |text: &str| utf8_percent_encode(text, NOT_PLAIN).to_string();
        let host = plain(&self.socket.path().display().to_string());
        format!("postgresql:///{}?host={host}&user={}", plain(database), self.role)
    }

    /// The folder that holds the cluster and its log.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Creates a database unless it exists.
    ///
    /// # Errors
    /// Whatever the server says.
    pub async fn create_database(&self, name: &str) -> Result<Config, EmbeddedPostgresError> {
        self.create_database_from(name, "template0").await
    }

    /// Creates a database as a copy of `template` (with which nobody may be connected) unless it exists.
    ///
    /// # Errors
    /// Whatever the server says.
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
        // The session has ended once its driver has; what it ended with no longer matters.
        let _ = driver.await;
        Ok(self.config_of(name))
    }

    /// Stops the server: open transactions are rolled back, a checkpoint is written.
    pub async fn stop(mut self) {
        self.server.stop().await;
    }
}

fn config_for(socket: &Path, role: &str, database: &str) -> Config {
    let mut config = Config::new();
    config.host_path(socket).user(role).dbname(database);
    config
}

/// An SQL identifier.
fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
