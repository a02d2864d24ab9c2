//! The connection pool, with a timeout for every wait. Neither deadpool nor tokio-postgres has timeouts by default.

use std::{future::poll_fn, net::IpAddr, str::FromStr, sync::Arc, time::Duration};

use deadpool_postgres::{ConfigConnectImpl, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio_postgres::{
    AsyncMessage, Config, NoTls,
    config::{Host, SslMode},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::pacing::{PacedConnect, Pacer};

/// How long a request waits for a connection of an exhausted pool before it gets a 503.
pub const POOL_WAIT: Duration = Duration::from_millis(250);
/// The time limit for establishing a connection, including TLS and authentication.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit for establishing the TCP connection of a pool's connection, unless the URL has another one. A server that can be
/// reached accepts TCP connections at once, even if it is frozen. Packets that the network lost are therefore sent again soon.
pub const TCP_CONNECT_TIMEOUT: Duration = Duration::from_millis(400);
/// The time after which PostgreSQL cancels a statement.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a statement waits for a lock. It is shorter than [`STATEMENT_TIMEOUT`], so that the log distinguishes the two.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
/// The idle time of a transaction, such as one of a dropped request, after which PostgreSQL ends its session.
pub const IDLE_IN_TRANSACTION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long sent data may remain unacknowledged before the connection counts as dead.
pub const TCP_USER_TIMEOUT: Duration = Duration::from_secs(10);
/// The idle time before the first TCP keepalive probe, and the interval between probes.
pub const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(5));
/// The number of unacknowledged keepalive probes after which the connection counts as dead.
pub const KEEPALIVE_RETRIES: u32 = 3;

/// The settings of a pool.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// The maximum number of connections.
    pub size: usize,
    /// See [`POOL_WAIT`].
    pub wait: Duration,
    /// See [`STATEMENT_TIMEOUT`].
    pub statement_timeout: Duration,
    /// Whether an acknowledged commit survives a crash of the database, regardless of the database's own setting.
    pub synchronous_commit: bool,
    /// Paces the attempts to connect. The pools of one database share it.
    pub pacer: Pacer,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            size: 16,
            wait: POOL_WAIT,
            statement_timeout: STATEMENT_TIMEOUT,
            synchronous_commit: true,
            pacer: Pacer::default(),
        }
    }
}

/// An error while setting up a pool.
#[derive(Debug, Error)]
pub enum PoolSetupError {
    /// The URL is invalid. The message does not repeat it, because it may contain a password.
    #[error("the database URL is not usable: {0}; expected postgresql://user:password@host:port/database")]
    Url(tokio_postgres::Error),
    /// The connection requires TLS, and there is no trusted certificate.
    #[error(
        "no trusted certificates were found for TLS to the database ({0}); install the system's ca-certificates, \
         or set SSL_CERT_FILE"
    )]
    Certificates(String),
    /// There are no cipher suites, because the build is broken.
    #[error("failed to set up TLS: {0}")]
    Tls(String),
    /// The pool could not be built.
    #[error(transparent)]
    Build(#[from] deadpool_postgres::BuildError),
}

/// Parses a database URL or a key-value connection string.
///
/// `sslmode` is `disable`, `prefer` (the default) or `require`. libpq's `verify-ca` and `verify-full` are accepted as well and
/// mean the same as `require`: whenever TLS is used, the certificate and its host name are verified.
///
/// # Errors
/// If the text is not a connection string.
pub fn parse_url(text: &str) -> Result<Config, PoolSetupError> {
    let text = text
        .replace("sslmode=verify-full", "sslmode=require")
        .replace("sslmode=verify-ca", "sslmode=require");
    Config::from_str(&text).map_err(PoolSetupError::Url)
}

/// Creates an empty pool of connections to `config`. Connections to remote hosts use TLS according to `sslmode`; Unix sockets
/// and loopback addresses use it only if `sslmode` requires it.
///
/// # Errors
/// If TLS is needed and cannot be set up.
pub fn pool(config: Config, settings: &PoolSettings) -> Result<Pool, PoolSetupError> {
    let config = bounded(config, settings);
    let manager_config = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    let pacer = settings.pacer.clone();
    let connect = if wants_tls(&config) {
        PacedConnect::new(ConfigConnectImpl { tls: tls()? }, config.clone(), pacer)
    } else {
        PacedConnect::new(ConfigConnectImpl { tls: NoTls }, config.clone(), pacer)
    };
    let manager = Manager::from_connect(config, connect, manager_config);
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

/// Opens a connection outside of any pool, without a statement timeout, under an application name. Migrations and long
/// operator commands use it. TLS is used as in [`pool`].
///
/// # Errors
/// If TLS cannot be set up, or the database does not respond.
pub async fn dedicated(config: &Config, name: &str) -> Result<tokio_postgres::Client, DedicatedError> {
    let mut config = with_dead_peer_detection(config.clone());
    config.application_name(name);
    // The next statement reports a lost connection, so the result of the driver is ignored.
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

/// Opens a connection that forwards each notification on `channel` to `notified`. Returns once it listens; the returned future
/// completes when the connection is lost.
///
/// # Errors
/// As [`dedicated`], or if the database rejects the statement.
pub async fn listen(
    config: &Config,
    channel: &str,
    notified: Arc<Notify>,
) -> Result<impl Future<Output = ()> + use<>, DedicatedError> {
    let mut config = with_dead_peer_detection(config.clone());
    config.application_name("partner-api notifications");
    let (client, lost) = if wants_tls(&config) {
        let (client, connection) = config.connect(tls()?).await?;
        (client, tokio::spawn(forward(connection, notified)))
    } else {
        let (client, connection) = config.connect(NoTls).await?;
        (client, tokio::spawn(forward(connection, notified)))
    };
    client.batch_execute(&format!("LISTEN {channel}")).await?;
    Ok(async move {
        // The reason does not matter.
        let _ = lost.await;
        drop(client);
    })
}

async fn forward<S, T>(mut connection: tokio_postgres::Connection<S, T>, notified: Arc<Notify>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(_) = message {
            notified.notify_one();
        }
    }
}

/// An error while opening a dedicated connection.
#[derive(Debug, Error)]
pub enum DedicatedError {
    /// TLS could not be set up; see [`PoolSetupError`].
    #[error(transparent)]
    Setup(#[from] PoolSetupError),
    /// The database does not respond, or rejects the connection.
    #[error("the database cannot be reached: {}", super::cause(.0))]
    Connect(#[from] tokio_postgres::Error),
}

/// Returns `config` with the server-side timeouts as session defaults. Options that it already has come last, so that they
/// take precedence.
fn bounded(mut config: Config, settings: &PoolSettings) -> Config {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(TCP_CONNECT_TIMEOUT);
    }
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
    // An acknowledged nonce or measurement must survive a crash.
    let commit = if settings.synchronous_commit { "on" } else { "off" };
    options.push(format!("-c synchronous_commit={commit}"));
    // The statements are written for generic plans. Planning each list query again would cost 40 % of the throughput.
    options.push("-c plan_cache_mode=force_generic_plan".to_owned());
    // No statement runs long enough for compiled code to pay. Compiling it takes up to half a second.
    options.push("-c jit=off".to_owned());
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
    // The server's own limits are hours. Until then, a session of a lost machine would keep its locks.
    let mut options: Vec<String> = [
        ("tcp_keepalives_idle", KEEPALIVE.0.as_secs()),
        ("tcp_keepalives_interval", KEEPALIVE.1.as_secs()),
        ("tcp_keepalives_count", u64::from(KEEPALIVE_RETRIES)),
        ("tcp_user_timeout", TCP_USER_TIMEOUT.as_secs() * 1_000),
    ]
    .map(|(name, value)| format!("-c {name}={value}"))
    .into();
    options.extend(config.get_options().map(ToOwned::to_owned));
    config.options(options.join(" "));
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
    // The only error is that a default provider is already installed.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    match MakeRustlsConnect::with_native_certs() {
        Ok((connector, unreadable)) => {
            for error in unreadable {
                tracing::warn!(%error, "failed to read a certificate of the system's store");
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
    fn tls_is_used_for_remote_hosts_unless_sslmode_says_otherwise() {
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
    fn the_error_for_an_invalid_url_does_not_contain_its_password() {
        let error = parse_url("postgresql://user:hunter2@host:notaport/d")
            .unwrap_err()
            .to_string();
        assert!(error.contains("expected postgresql://"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn options_in_the_url_take_precedence() {
        let config = parse_url("postgresql://u@localhost/d?options=-c%20statement_timeout%3D1").unwrap();
        let config = bounded(config, &PoolSettings::default());
        let options = config.get_options().unwrap();
        assert!(options.contains("-c statement_timeout=5000 "), "{options}");
        assert!(options.ends_with("-c statement_timeout=1"), "{options}");
    }

    #[test]
    fn every_session_ends_soon_after_its_client_is_lost() {
        let config = parse_url("postgresql://u@localhost/d").unwrap();
        for config in [
            with_dead_peer_detection(config.clone()),
            bounded(config, &PoolSettings::default()),
        ] {
            let options = config.get_options().unwrap();
            let seconds = |name: &str| -> u64 {
                let value = options
                    .split(' ')
                    .find_map(|option| option.strip_prefix(&format!("{name}=")));
                value.unwrap().parse().unwrap()
            };
            let (idle, interval) = (seconds("tcp_keepalives_idle"), seconds("tcp_keepalives_interval"));
            assert!(idle + interval * seconds("tcp_keepalives_count") <= 60, "{options}");
            assert!(seconds("tcp_user_timeout") <= 60_000, "{options}");
        }
    }
}
