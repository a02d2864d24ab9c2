//! The checks of what keeps acknowledged data: the settings of a session, the synchronous standby, the archive, and free space.

use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use nix::sys::statvfs::statvfs;
use partner_api::config::{Config, Database, StorageChoice};
use partner_api_signing::Environment;
use partner_api_store::connection::Connection;
use partner_api_store::pool::KEEPALIVE;

use super::Checks;
use crate::failure::Failure;

partner_api_store::statement! {
    /// The settings that the service sets in each session. The server ignores keepalives of a local socket.
    SESSION = "\
SELECT current_setting('synchronous_commit') AS synchronous_commit, current_setting('statement_timeout') AS statement_timeout,
       (current_setting('tcp_keepalives_idle')::bigint) AS keepalives_idle, inet_client_addr() IS NULL AS is_local";
    /// The standbys. Only users with the rights of pg_read_all_stats see the state of each.
    STANDBYS = "\
SELECT current_setting('synchronous_standby_names') AS wanted,
       (SELECT count(*) FROM pg_stat_replication) AS connected,
       (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')) AS synchronous,
       pg_has_role(current_user, 'pg_read_all_stats', 'MEMBER') AS may_see_states";
    ARCHIVE = "\
SELECT current_setting('archive_mode') <> 'off' AS is_on, s.last_archived_time, s.last_failed_time, s.last_failed_wal,
       now() AS now
FROM pg_stat_archiver s";
    VERIFIED = "SELECT verified_at FROM last_verified_backup";
}

/// The age of the last archived segment above which something is wrong. A serving replica writes continuously, and
/// `archive_timeout` is a minute in deploy/ha.
const ARCHIVE_WARNING_AGE: TimeDelta = TimeDelta::hours(1);

/// The age of the newest verified backup above which another one should be verified. deploy/ha makes a full backup each week.
const VERIFIED_WARNING_AGE: TimeDelta = TimeDelta::days(8);

/// The free space below which the next writes may fail, and the share below which it should be increased.
const SPACE_FAILURE: u64 = 1 << 30;
const SPACE_WARNING_PERCENT: u64 = 10;

pub(super) async fn run(config: &Config, connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    session(connection, checks).await?;
    standby(config, connection, checks).await?;
    archive(config, connection, checks).await?;
    verified_backup(config, connection, checks).await
}

async fn session(connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    const CHECK: &str = "session";
    let row = connection.query_one(SESSION, &[]).await?;
    let commit: String = row.try_get("synchronous_commit")?;
    let timeout: String = row.try_get("statement_timeout")?;
    let keepalives: i64 = row.try_get("keepalives_idle")?;
    let expected = i64::try_from(KEEPALIVE.0.as_secs()).unwrap_or(i64::MAX);
    let next = "remove the setting from `options` in database_url, and connect without a pooler that drops options";
    if matches!(commit.as_str(), "off" | "local") {
        let found = format!("synchronous_commit is {commit}, so that a crash loses acknowledged measurements");
        checks.failed(CHECK, found, next);
    } else if timeout == "0" {
        checks.failed(
            CHECK,
            "statement_timeout is 0, so that a statement can run forever",
            next,
        );
    } else if !row.try_get::<_, bool>("is_local")? && keepalives != expected {
        let found = format!(
            "tcp_keepalives_idle is {keepalives} s instead of {expected} s: sessions of lost machines keep their locks"
        );
        checks.warning(CHECK, found, next);
    } else {
        checks.ok(
            CHECK,
            "commits wait for the disk; statements and lost connections end in time",
        );
    }
    Ok(())
}

async fn standby(config: &Config, connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    const CHECK: &str = "standby";
    let row = connection.query_one(STANDBYS, &[]).await?;
    let wanted: String = row.try_get("wanted")?;
    let (connected, synchronous): (i64, i64) = (row.try_get("connected")?, row.try_get("synchronous")?);
    if wanted.is_empty() {
        let found = format!("no standby is synchronous, {connected} connected");
        match config.options.environment {
            Environment::Test => checks.ok(CHECK, found),
            Environment::Live => checks.warning(
                CHECK,
                format!("{found}: the loss of the database's disk loses acknowledged measurements"),
                "patronictl edit-config --set synchronous_mode=true (deploy/ha/README.md)",
            ),
        }
    } else if connected == 0 {
        checks.failed(
            CHECK,
            format!("writes wait for a standby ({wanted}), and none is connected"),
            "patronictl list, then patronictl reinit CLUSTER NODE; without Patroni: ALTER SYSTEM RESET synchronous_standby_names",
        );
    } else if synchronous > 0 {
        checks.ok(CHECK, format!("{synchronous} synchronous of {connected} connected"));
    } else if row.try_get("may_see_states")? {
        checks.failed(
            CHECK,
            format!("writes wait for a standby ({wanted}), and none of the {connected} connected ones is synchronous"),
            "patronictl list, then patronictl reinit CLUSTER NODE",
        );
    } else {
        checks.warning(
            CHECK,
            format!("{connected} connected; this user may not see whether one is synchronous"),
            "GRANT pg_monitor TO the user of this command",
        );
    }
    Ok(())
}

async fn archive(config: &Config, connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    const CHECK: &str = "archive";
    let row = connection.query_one(ARCHIVE, &[]).await?;
    if !row.try_get::<_, bool>("is_on")? {
        let found = "archive_mode is off: a restore ends at the last backup";
        match config.options.environment {
            Environment::Test => checks.ok(CHECK, found),
            Environment::Live => checks.warning(CHECK, found, "set up pgBackRest (deploy/ha/README.md, \"Backups\")"),
        }
        return Ok(());
    }
    let now: DateTime<Utc> = row.try_get("now")?;
    let archived: Option<DateTime<Utc>> = row.try_get("last_archived_time")?;
    let failed: Option<DateTime<Utc>> = row.try_get("last_failed_time")?;
    let next = "pgbackrest --stanza=partner check, as postgres on the primary; its message names the cause";
    match (archived, failed) {
        (archived, Some(failed)) if archived.is_none_or(|archived| archived < failed) => {
            let segment: String = row.try_get("last_failed_wal")?;
            let found = format!(
                "the segment {segment} could not be archived at {}",
                crate::when::at(failed)
            );
            checks.failed(CHECK, found, next);
        }
        (None, _) => checks.warning(CHECK, "nothing was archived yet", next),
        (Some(archived), _) if now - archived > ARCHIVE_WARNING_AGE => {
            checks.warning(
                CHECK,
                format!("nothing was archived since {}", crate::when::at(archived)),
                next,
            );
        }
        (Some(archived), _) => checks.ok(CHECK, format!("last segment archived at {}", crate::when::at(archived))),
    }
    Ok(())
}

async fn verified_backup(config: &Config, connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    const CHECK: &str = "backup";
    let row = connection.query_one(VERIFIED, &[]).await?;
    let verified: Option<DateTime<Utc>> = row.try_get("verified_at")?;
    let found = verified.map_or_else(
        || "none was verified yet".to_owned(),
        |at| format!("last verified at {}", crate::when::at(at)),
    );
    let is_due = verified.is_none_or(|at| Utc::now() - at > VERIFIED_WARNING_AGE);
    match (is_due, config.options.environment) {
        (true, Environment::Live) => checks.warning(CHECK, found, "partner-api backup verify FILE"),
        _ => checks.ok(CHECK, found),
    }
    Ok(())
}

/// The free space of the folders that this machine writes to. PostgreSQL has no statement for the space of another machine.
pub(super) fn space(config: &Config, checks: &mut Checks) {
    if let StorageChoice::Folder(folder) = &config.storage {
        space_of(folder, checks);
    }
    if let Database::Embedded { .. } = config.database {
        space_of(&config.options.data_dir, checks);
    }
}

fn space_of(folder: &Path, checks: &mut Checks) {
    const CHECK: &str = "free space";
    // The folder may not have been created yet.
    let existing = folder
        .ancestors()
        .find(|folder| folder.exists())
        .unwrap_or(Path::new("."));
    let next =
        "delete what is not needed there, or enlarge the file system; without space, photos and PDFs cannot be stored";
    let found = match statvfs(existing) {
        Ok(found) => found,
        Err(error) => return checks.failed(CHECK, format!("{}: {error}", folder.display()), next),
    };
    let block = found.fragment_size();
    let (free, size) = (found.blocks_available() * block, found.blocks() * block);
    let text = format!("{}: {} of {} MiB", folder.display(), free >> 20, size >> 20);
    if free < SPACE_FAILURE {
        checks.failed(CHECK, text, next);
    } else if free.saturating_mul(100) < size.saturating_mul(SPACE_WARNING_PERCENT) {
        checks.warning(CHECK, text, next);
    } else {
        checks.ok(CHECK, text);
    }
}
