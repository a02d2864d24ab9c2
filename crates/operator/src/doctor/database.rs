//! The checks of the database.

use chrono::{DateTime, TimeDelta, Utc};
use partner_api::admission::nonces;
use partner_api::config::Config;
use partner_api::replicas::{self, Replica};
use partner_api::request_log;
use partner_api::startup::CommandDatabase;
use partner_api_store::connection::Connection;
use partner_api_store::migrate::{self, MigrateError};
use partner_api_store::partitions::ANSWER_HISTORY;
use partner_api_store::secrets::MasterKey;

use super::{CLOCK_FAILURE_SKEW, CLOCK_WARNING_SKEW, Checks, DATABASE_TIMEOUT};
use super::{access, durability};
use crate::failure::Failure;

partner_api_store::statement! {
    CLOCK = "SELECT clock_timestamp() AS now";
    SETTINGS = "SELECT current_setting('server_version') AS version, current_setting('fsync')::boolean AS fsync, \
                  current_setting('full_page_writes')::boolean AS full_page_writes, \
                  current_setting('default_transaction_read_only')::boolean AS is_read_only, \
                  pg_is_in_recovery() AS is_standby";
    ENCRYPTED = "SELECT key_id, secret_nonce, secret_ciphertext FROM api_keys \
              WHERE environment = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) ORDER BY key_id";
    /// Keys that are a partner's last one and expire soon.
    ENDING = "SELECT k.key_id, p.name, k.expires_at FROM api_keys k JOIN partners p ON p.id = k.partner_id \
              WHERE p.is_enabled AND k.revoked_at IS NULL AND k.expires_at BETWEEN now() AND now() + interval '7 days' \
                AND NOT EXISTS (SELECT FROM api_keys o WHERE o.partner_id = k.partner_id AND o.environment = k.environment \
                  AND o.revoked_at IS NULL AND (o.expires_at IS NULL OR o.expires_at > k.expires_at)) \
              ORDER BY k.expires_at";
    /// Enabled partners with an active key that sent requests in the last two weeks, but none in the last two days.
    SILENT = "\
SELECT p.name, max(w.started_at) AS last
FROM partners p JOIN api_keys k ON k.partner_id = p.id JOIN rate_windows w ON w.key_id = k.key_id
WHERE p.is_enabled GROUP BY p.id, p.name
HAVING max(w.started_at) BETWEEN now() - interval '14 days' AND now() - interval '2 days'
   AND bool_or(k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now()))
ORDER BY last";
    WAITING = "SELECT count(*) AS waiting, min(received_at) AS since FROM measurements WHERE status = 'PENDING'";
}

pub(super) async fn run(config: &Config, database: &CommandDatabase, checks: &mut Checks) -> Result<(), Failure> {
    let connection = Connection::take(&database.pool, DATABASE_TIMEOUT).await?;
    settings(&connection, checks).await?;
    clock(&connection, checks).await?;
    match migrate::status(&database.target).await.and_then(|migrations| {
        let newer = migrate::newer(&migrations);
        migrate::ensure_current(migrations).map(|()| newer)
    }) {
        Ok(newer) if newer.is_empty() => checks.ok("migrations", "all applied"),
        Ok(newer) => checks.warning(
            "migrations",
            format!(
                "all applied, and {} by a newer program, whose schema this one can use",
                newer.join(", ")
            ),
            "finish the upgrade, or install the newer version again (docs/upgrading.md)",
        ),
        Err(error) => {
            let next = match &error {
                MigrateError::DatabaseNewer { .. } => {
                    "install the version of partner-api that migrated it, or a newer one"
                }
                MigrateError::History(_) => "connect as a member of the database's roles (partner-api migrate --roles)",
                _ => "partner-api migrate",
            };
            checks.failed("migrations", error.to_string(), next);
            if matches!(error, MigrateError::History(_)) {
                access::role(config, &connection, checks).await?;
            }
            // The other checks need tables that may not exist yet.
            return Ok(());
        }
    }
    access::deployment(config, &connection, checks).await?;
    access::role(config, &connection, checks).await?;
    access::schema(&connection, checks).await?;
    access::connections(config, &connection, checks).await?;
    durability::run(config, &connection, checks).await?;
    replicas(config, &connection, checks).await?;
    check_secrets(config, &connection, checks).await?;
    expiring_keys(&connection, checks).await?;
    silent_partners(&connection, checks).await?;
    partitions(config, &connection, checks).await?;
    pending_measurements(&connection, checks).await
}

async fn settings(connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    let row = connection.query_one(SETTINGS, &[]).await?;
    let version: String = row.try_get("version")?;
    if row.try_get("is_standby")? {
        checks.failed(
            "database",
            format!("PostgreSQL {version}, a standby"),
            "connect to the primary",
        );
    } else if row.try_get("is_read_only")? {
        let next = "ALTER DATABASE NAME RESET default_transaction_read_only, or ALTER ROLE NAME RESET …";
        checks.failed("database", format!("PostgreSQL {version}, read-only"), next);
    } else if !row.try_get::<_, bool>("fsync")? || !row.try_get::<_, bool>("full_page_writes")? {
        let next = "set fsync and full_page_writes to on; otherwise a crash loses confirmed data";
        checks.failed(
            "database",
            format!("PostgreSQL {version}, without fsync or full_page_writes"),
            next,
        );
    } else {
        checks.ok("database", format!("PostgreSQL {version}"));
    }
    Ok(())
}

async fn clock(connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    let before = Utc::now();
    let row = connection.query_one(CLOCK, &[]).await?;
    let after = Utc::now();
    let database_now: DateTime<Utc> = row.try_get("now")?;
    let ahead = database_now - (before + (after - before) / 2);
    let found = format!(
        "the database's clock is {} ms ahead of this machine's",
        ahead.num_milliseconds()
    );
    let next = "synchronize both clocks (chrony, systemd-timesyncd)";
    match ahead.abs() {
        skew if skew >= CLOCK_FAILURE_SKEW => checks.failed("clock", found, next),
        skew if skew >= CLOCK_WARNING_SKEW => checks.warning("clock", found, next),
        _ => checks.ok("clock", found),
    }
    Ok(())
}

async fn replicas(config: &Config, connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    const CHECK: &str = "replicas";
    let replicas = replicas::list(connection).await?;
    let shown: Vec<_> = replicas
        .iter()
        .map(|replica| format!("{} on {}, {}", replica.address, replica.host, replica.version))
        .collect();
    let found = shown.join("; ");
    if replicas.is_empty() {
        checks.warning(CHECK, "none is serving", "partner-api serve");
    } else if let Some(other) = replicas
        .iter()
        .find(|replica| replica.environment != config.options.environment.as_str())
    {
        let next = format!(
            "{} serves {}; all replicas of a database must have the same environment",
            other.address, other.environment
        );
        checks.failed(CHECK, found, next);
    } else if replicas.iter().any(|replica| replica.version != replicas[0].version) {
        checks.warning(CHECK, found, "finish the upgrade; the replicas run different versions");
    } else if replicas
        .iter()
        .any(|replica| replica.master_keys != replicas[0].master_keys)
    {
        checks.warning(
            CHECK,
            found,
            "configure the same master keys on all replicas (partner-api secrets --help)",
        );
    } else {
        checks.ok(CHECK, found);
    }
    replicas_clocks(&replicas, checks);
    Ok(())
}

/// Compares the clocks of the replicas with each other. Each differs from the database's by what its heartbeats say.
fn replicas_clocks(replicas: &[Replica], checks: &mut Checks) {
    const CHECK: &str = "replicas' clocks";
    let ahead = |replica: &&Replica| replica.clock_at - replica.seen_at;
    let (Some(first), Some(last)) = (replicas.iter().min_by_key(ahead), replicas.iter().max_by_key(ahead)) else {
        return;
    };
    let difference = ahead(&last) - ahead(&first);
    let found = format!(
        "at most {} ms apart ({} is behind {})",
        difference.num_milliseconds(),
        first.host,
        last.host
    );
    let next = format!(
        "on {} and {}: chronyc tracking, and systemctl restart chrony where it is not synchronized",
        first.host, last.host
    );
    match difference {
        apart if apart >= CLOCK_FAILURE_SKEW => checks.failed(CHECK, found, next),
        apart if apart >= CLOCK_WARNING_SKEW => checks.warning(CHECK, found, next),
        _ if replicas.len() == 1 => {}
        _ => checks.ok(CHECK, format!("at most {} ms apart", difference.num_milliseconds())),
    }
}

/// The secrets of active keys in a database.
pub(crate) struct Secrets {
    /// The number of all.
    pub count: usize,
    /// The IDs of the keys whose secrets the master key does not decrypt.
    pub closed: Vec<String>,
}

/// Decrypts the secrets of all active keys.
pub(crate) async fn secrets(config: &Config, key: &MasterKey, connection: &Connection) -> Result<Secrets, Failure> {
    let rows = connection
        .query(ENCRYPTED, &[&config.options.environment.as_str()])
        .await?;
    let mut closed = Vec::new();
    for row in &rows {
        let id: String = row.try_get("key_id")?;
        if key
            .decrypt(&id, row.try_get("secret_nonce")?, row.try_get("secret_ciphertext")?)
            .is_err()
        {
            closed.push(id);
        }
    }
    Ok(Secrets {
        count: rows.len(),
        closed,
    })
}

async fn check_secrets(config: &Config, connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    const CHECK: &str = "secrets";
    let Ok(key) = config.master_key() else { return Ok(()) };
    let Secrets { count, closed } = secrets(config, &key, connection).await?;
    match closed.as_slice() {
        [] => checks.ok(CHECK, format!("all {count} secrets can be decrypted")),
        [first, ..] => checks.failed(
            CHECK,
            format!(
                "{} of {count} secrets cannot be decrypted with this master key, for example {first}'s",
                closed.len()
            ),
            "provide the master key that encrypted them (--other-master-key-file), or create new keys",
        ),
    }
    Ok(())
}

async fn expiring_keys(connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    let rows = connection.query(ENDING, &[]).await?;
    if rows.is_empty() {
        checks.ok("keys", "every partner has a key valid for at least 7 more days");
    }
    for row in rows {
        let (key, partner): (String, String) = (row.try_get("key_id")?, row.try_get("name")?);
        let at: DateTime<Utc> = row.try_get("expires_at")?;
        let found = format!("the last key of `{partner}`, {key}, expires at {}", crate::when::at(at));
        checks.warning("keys", found, format!("partner-api key rotate {key}, or let it expire"));
    }
    Ok(())
}

async fn silent_partners(connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    const CHECK: &str = "partners";
    let rows = connection.query(SILENT, &[]).await?;
    if rows.is_empty() {
        checks.ok(
            CHECK,
            "none that sent requests in the last two weeks has been silent for two days",
        );
    }
    for row in rows {
        let (partner, last): (String, DateTime<Utc>) = (row.try_get("name")?, row.try_get("last")?);
        let found = format!("the last request of `{partner}` was at {}", crate::when::at(last));
        let next = format!("ask the partner; partner-api request list --partner '{partner}' --since 14days");
        checks.warning(CHECK, found, next);
    }
    Ok(())
}

async fn partitions(config: &Config, connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    const CHECK: &str = "partitions";
    for table in [
        nonces::PARTITIONS,
        request_log::partitions(config.options.request_log_days),
        ANSWER_HISTORY,
    ] {
        let state = table.state(connection).await?;
        let found = format!("{}: {} created in advance", table.table, state.ahead.max(0));
        let makes = "start a replica, which creates them";
        match state.ahead {
            // Even the current partition is missing.
            ..0 => checks.failed(CHECK, format!("{}: none for the current time", table.table), makes),
            0 => checks.warning(CHECK, found, makes),
            _ => checks.ok(CHECK, found),
        }
        if !state.expired.is_empty() {
            let found = format!("{}: {} can be dropped", table.table, state.expired.len());
            checks.warning(CHECK, found, "partner-api purge, if no replica drops them");
        }
    }
    let dropped = request_log::drops(connection, Utc::now() - TimeDelta::days(1)).await?;
    match dropped.iter().map(|drops| drops.dropped).sum::<i64>() {
        0 => checks.ok("request log", "no entries were dropped in the last 24 h"),
        sum => checks.warning(
            "request log",
            format!("{sum} requests of the last 24 h were not logged"),
            "check that the database keeps up (partner-api request list)",
        ),
    }
    Ok(())
}

async fn pending_measurements(connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    let row = connection.query_one(WAITING, &[]).await?;
    let waiting: i64 = row.try_get("waiting")?;
    let since: Option<DateTime<Utc>> = row.try_get("since")?;
    let found = match since {
        None => "none pending".to_owned(),
        Some(since) => format!("{waiting} pending, the oldest since {}", crate::when::at(since)),
    };
    checks.ok("measurements", found);
    Ok(())
}
