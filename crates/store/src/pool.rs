//! The connection pool, with a bound on every wait: neither deadpool nor tokio-postgres has time-outs of its own.

use std::{future::poll_fn, net::IpAddr, str::FromStr, sync::Arc, time::Duration};

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio_postgres::{
    AsyncMessage, Config, NoTls,
    config::{Host, SslMode},
};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long a request may wait for a connection of a drained pool before it is answered with 503.
pub const POOL_WAIT: Duration = Duration::from_millis(250);
/// How long making one connection may take, TLS and authentication included.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long Postgres works on one statement before it cancels it.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a statement waits for a lock; shorter than [`STATEMENT_TIMEOUT`], so that the log tells the two apart.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a transaction may sit idle, as one whose request was dropped does, before Postgres ends its session.
pub const IDLE_IN_TRANSACTION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long sent bytes may stay unacknowledged before the connection counts as dead.
pub const TCP_USER_TIMEOUT: Duration = Duration::from_secs(10);
/// After how long a silence, and how often then, the other end of a connection is asked for a sign of life.
pub const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(5));
/// How many unanswered probes mean that it is gone.
pub const KEEPALIVE_RETRIES: u32 = 3;

/// How the pool is set up.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// How many connections at most.
    pub size: usize,
    /// See [`POOL_WAIT`].
    pub wait: Duration,
    /// See [`STATEMENT_TIMEOUT`].
    pub statement_timeout: Duration,
    /// Whether a commit that was answered survives a crash of the database, whatever its own setting.
    pub synchronous_commit: bool,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            size: 16,
            wait: POOL_WAIT,
            statement_timeout: STATEMENT_TIMEOUT,
            synchronous_commit: true,
        }
    }
}

/// Why there is no pool.
#[derive(Debug, Error)]
pub enum PoolSetupError {
    /// The URL is not one. It is not repeated, for it may hold a password.
    #[error("the database URL is not usable: {0}; expected postgresql://user:password@host:port/database")]
    Url(tokio_postgres::Error),
    /// A remote database wants TLS and there is no certificate to trust.
    #[error(
        "no trusted certificates were found for TLS to the database ({0}); install the system's ca-certificates, \
         or set SSL_CERT_FILE"
    )]
    Certificates(String),
    /// No cipher suites: the build is broken.
    #[error("TLS is not available: {0}")]
    Tls(String),
    /// The pool's own complaint.
    #[error(transparent)]
    Build(#[from] deadpool_postgres::BuildError),
}

/// Reads a database URL or key-value connection string.
///
/// `sslmode` is `disable`, `prefer` (the default) or `require`; also libpq's `verify-ca` and `verify-full` are understood,
/// which come to the same as `require`: whenever TLS is used, the certificate and its host name are verified.
///
/// # Errors
/// The text is not a connection string.
pub fn parse_url(text: &str) -> Result<Config, PoolSetupError> {
    let text = text
        .replace("sslmode=verify-full", "sslmode=require")
        .replace("sslmode=verify-ca", "sslmode=require");
    Config::from_str(&text).map_err(PoolSetupError::Url)
}

/// A pool of connections to `config`, none of them made yet. TLS is spoken to remote hosts as `sslmode` says; Unix sockets
/// and loopback addresses do without.
///
/// # Errors
/// TLS is called for and cannot be set up.
pub fn pool(config: Config, settings: &PoolSettings) -> Result<Pool, PoolSetupError> {
    let config = bounded(config, settings);
    let manager_config = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    let manager = if wants_tls(&config) {
        Manager::from_config(config, tls()?, manager_config)
    } else {
        Manager::from_config(config, NoTls, manager_config)
    };
    let timeouts = Timeouts {
        wait: Some(settings.wait),
        create: Some(CONNECT_TIMEOUT),
        recycle: Some(settings.wait),
    };
    Ok(Pool::builder(manager)
        .max_size(settings.size)
        .timeouts(timeouts)
        .runtime(Runtime::Tokio1)
        .build()?)
}

/// A connection of its own, outside any pool and without a bound on its statements, under this name: for migrations, and for
/// what an operator waits for. TLS as in [`pool`].
///
/// # Errors
/// TLS cannot be set up, or the database does not answer.
pub async fn dedicated(config: &Config, name: &str) -> Result<tokio_postgres::Client, DedicatedError> {
    let mut config = with_dead_peer_detection(config.clone());
    config.application_name(name);
    // A connection's end is seen by its client's next statement; its driver has nothing to add.
    if wants_tls(&config) {
        let (client, driver) = config.connect(tls()?).await?;
        tokio::spawn(driver);
        Ok(client)
    } else {
        let (client, driver) = config.connect(NoTls).await?;
        tokio::spawn(driver);
        Ok(client)
    }
}

/// A connection of its own that tells `told` of each notification on `channel`. What it answers is there once it listens, and
/// ends when the connection is lost.
///
/// # Errors
/// As [`dedicated`], or the database refuses.
pub async fn listen(
    config: &Config,
    channel: &str,
    told: Arc<Notify>,
) -> Result<impl Future<Output = ()> + use<>, DedicatedError> {
    let mut config = with_dead_peer_detection(config.clone());
    config.application_name("partner-api notifications");
    let (client, lost) = if wants_tls(&config) {
        let (client, connection) = config.connect(tls()?).await?;
        (client, tokio::spawn(forward(connection, told)))
    } else {
        let (client, connection) = config.connect(NoTls).await?;
        (client, tokio::spawn(forward(connection, told)))
    };
    client.batch_execute(&format!("LISTEN {channel}")).await?;
    Ok(async move {
        // Its end, whatever it was, is all that there is to know.
        let _ = lost.await;
        drop(client);
    })
}

async fn forward<S, T>(mut connection: tokio_postgres::Connection<S, T>, told: Arc<Notify>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(_) = message {
            told.notify_one();
        }
    }
}

/// Why there is no dedicated connection.
#[derive(Debug, Error)]
pub enum DedicatedError {
    /// See [`PoolSetupError`].
    #[error(transparent)]
    Setup(#[from] PoolSetupError),
    /// The database does not answer, or refuses.
    #[error("the database cannot be reached: {}", super::cause(.0))]
    Connect(#[from] tokio_postgres::Error),
}

/// `config` with the server-side time-outs as session defaults. Options it already carries come last, so that they win.
fn bounded(config: Config, settings: &PoolSettings) -> Config {
    let mut config = with_dead_peer_detection(config);
    let limits = [
        ("statement_timeout", settings.statement_timeout),
        ("lock_timeout", LOCK_TIMEOUT.min(settings.statement_timeout)),
        ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION_TIMEOUT),
    ];
    let mut options: Vec<String> = limits
        .iter()
        .map(|(name, limit)| format!("-c {name}={}", limit.as_millis()))
        .collect();
    // A nonce or a measurement that was answered for must survive a crash.
    let commit = if settings.synchronous_commit { "on" } else { "off" };
    options.push(format!("-c synchronous_commit={commit}"));
    // The statements are written for generic plans, and planning each list anew cost 40 % of its throughput.
    options.push("-c plan_cache_mode=force_generic_plan".to_owned());
    options.extend(config.get_options().map(ToOwned::to_owned));
    config.options(options.join(" "));
    if config.get_application_name().is_none() {
        config.application_name("partner-api");
    }
    config
}

fn with_dead_peer_detection(mut config: Config) -> Config {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(TCP_USER_TIMEOUT);
    }
    config
        .keepalives_idle(KEEPALIVE.0)
        .keepalives_interval(KEEPALIVE.1)
        .keepalives_retries(KEEPALIVE_RETRIES);
    config
}

fn wants_tls(config: &Config) -> bool {
    config.get_ssl_mode() != SslMode::Disable
        && (config.get_ssl_mode() == SslMode::Require || config.get_hosts().iter().any(is_remote))
}

fn is_remote(host: &Host) -> bool {
    match host {
        Host::Unix(_) => false,
        Host::Tcp(name) => name != "localhost" && !name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
    }
}

fn tls() -> Result<MakeRustlsConnect, PoolSetupError> {
    // An error only says that a default was installed before, which will do.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    match MakeRustlsConnect::with_native_certs() {
        Ok((connector, unreadable)) => {
            for error in unreadable {
                tracing::warn!(%error, "a certificate of the system's store cannot be read");
            }
            Ok(connector)
        }
        Err(errors) => {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            Err(PoolSetupError::Certificates(if errors.is_empty() {
                "the system's store is empty".to_owned()
            } else {
                errors.join("; ")
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_for_remote_hosts_unless_asked_otherwise() {
        for (url, expected) in [
            ("postgresql://u@localhost/d", false),
            ("postgresql://u@127.0.0.1/d", false),
            ("postgresql://u@[::1]/d", false),
            ("postgresql:///d?host=%2Frun%2Fpostgresql&user=u", false),
            ("postgresql://u@db.example.org/d", true),
            ("postgresql://u@10.0.0.5/d", true),
            ("postgresql://u@db.example.org/d?sslmode=disable", false),
            ("postgresql://u@localhost/d?sslmode=require", true),
            ("postgresql://u@db.example.org/d?sslmode=verify-full", true),
        ] {
            assert_eq!(wants_tls(&parse_url(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn a_bad_url_is_refused_without_its_password() {
        let error = parse_url("postgresql://user:hunter2@host:notaport/d")
            .unwrap_err()
            .to_string();
        assert!(error.contains("expected postgresql://"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn options_of_the_url_win_over_ours() {
        let config = parse_url("postgresql://u@localhost/d?options=-c%20statement_timeout%3D1").unwrap();
        let config = bounded(config, &PoolSettings::default());
        let options = config.get_options().unwrap();
        assert!(options.starts_with("-c statement_timeout=5000 "), "{options}");
        assert!(options.ends_with("-c statement_timeout=1"), "{options}");
    }
}
