//! Schema migrations, compiled into the binary and run under an advisory lock, so that replicas can start concurrently.
//!
//! A program also uses a newer schema if it knows the migration that the schema requires (`deployment.required_migration`). Steps
//! that expand the schema leave this number as it is; a step that removes what earlier programs use raises it. So the previous
//! release can be started again after an upgrade.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use refinery::Runner;
use serde::Serialize;
use thiserror::Error;
use tokio_postgres::{Client, Config};

use super::pool::{self, DedicatedError};
use super::roles::{self, RolesError};

mod embedded {
    refinery::embed_migrations!("../../migrations");
}

/// The number of the advisory lock, which nothing else in the database uses ("partner" in ASCII).
const LOCK: i64 = 0x70_6172_746e_6572;

// These statements are not registered, because the history table belongs to refinery and not to the schema.
const HISTORY_EXISTS: &str = "SELECT to_regclass('refinery_schema_history') IS NOT NULL";
const HISTORY: &str = "SELECT version, name, applied_on, checksum FROM refinery_schema_history";
/// The newest migration that a program must know to use the schema.
const REQUIRED: &str = "SELECT required_migration FROM deployment";

/// The owner of the schema, if it is not the role of this session, and whether this session may act as the owner.
const OWNER: &str = "\
SELECT r.rolname::text AS owner, pg_has_role(current_user, r.oid, 'MEMBER') AS is_member
FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
WHERE c.oid = to_regclass('refinery_schema_history') AND r.rolname <> current_user";

/// An error while migrating or checking the schema.
#[derive(Debug, Error)]
pub enum MigrateError {
    /// The connection failed; see [`DedicatedError`].
    #[error(transparent)]
    Connect(#[from] DedicatedError),
    /// The migration history could not be read.
    #[error("failed to read the migration history: {}", super::cause(.0))]
    History(tokio_postgres::Error),
    /// Another session holds the migration lock for too long.
    #[error(
        "another session has held the migration lock for {} s: {holder}; wait until its migration ends, or end the session \
         with SELECT pg_terminate_backend(PROCESS)",
        .waited.as_secs()
    )]
    Locked {
        /// The description of the session.
        holder: String,
        /// How long the lock was waited for.
        waited: Duration,
    },
    /// The migration lock could not be acquired or released.
    #[error("failed to acquire or release the migration lock: {}", super::cause(.0))]
    Lock(tokio_postgres::Error),
    /// The database has a migration after which this binary cannot use it.
    #[error(
        "the database's schema is too new for this program: since the migration {found} it requires a program that knows \
         {required}, and this one knows up to {known}; start the version that migrated it, or a newer one (partner-api --version)"
    )]
    DatabaseNewer {
        /// The newest migration of the database.
        found: String,
        /// The migration that a program must know.
        required: String,
        /// The newest migration that this binary knows.
        known: String,
    },
    /// The schema is newer than this program, which must not change it.
    #[error(
        "the database's schema is newer than this program, which does not know the rights on what {} added; \
         run this command with the version that migrated it", .0.join(", ")
    )]
    NotNewest(Vec<String>),
    /// An applied migration differs from the one in this binary.
    #[error(
        "the content of the applied migration {applied} differs from this binary's; applied migrations must not be edited"
    )]
    Edited {
        /// The name of the migration.
        applied: String,
    },
    /// The schema lacks migrations, and this command does not apply them.
    #[error("the database's schema is older than this program; migrate it with: partner-api migrate (missing: {})", .0.join(", "))]
    Behind(Vec<String>),
    /// The schema lacks migrations, and this role may not apply them.
    #[error(
        "the database's schema is older than this program, and only the role `{owner}` may change it; migrate it as a member of \
         that role with: partner-api migrate (missing: {})",
        .missing.join(", ")
    )]
    NotOwner {
        /// The role that owns the schema.
        owner: String,
        /// The missing migrations.
        missing: Vec<String>,
    },
    /// A role could not be created, or could not be given its privileges.
    #[error(transparent)]
    Roles(#[from] RolesError),
    /// A migration failed and was rolled back. Earlier migrations remain applied.
    #[error("failed to apply a migration: {}", causes(.0))]
    Failed(refinery::Error),
}

/// How long a start waits for the migration lock.
pub const LOCK_WAIT: Duration = Duration::from_secs(60);

/// The interval of attempts to get the migration lock. After the first one, the log says which session holds the lock.
const LOCK_RETRY: Duration = Duration::from_millis(250);

/// The session that holds the migration lock. An advisory lock with a `bigint` is listed by its two halves.
const LOCK_HOLDER: &str = "\
SELECT format('process %s of PostgreSQL, %s, from %s', a.pid, coalesce(nullif(a.application_name, ''), 'no application name'),
           coalesce(host(a.client_addr), 'a local socket')) AS holder
FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
  AND l.classid = ($1::bigint >> 32)::oid AND l.objid = ($1::bigint & 4294967295)::oid
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// The application name of the sessions that run migrations.
const SESSION: &str = "partner-api migrations";

/// Applies the missing migrations as the owner of the schema, and returns their names, in order. Of several concurrent callers
/// one applies them; the others wait up to [`LOCK_WAIT`] and find nothing to do. A role that may not act as the owner only checks
/// that none is missing. A newer schema that this binary can use is left as it is.
///
/// # Errors
/// If the database cannot be reached, is too new for this binary, or rejects a migration, if another session holds the lock, or if
/// a migration is missing and the role may not apply it.
pub async fn migrate(config: &Config) -> Result<Vec<String>, MigrateError> {
    migrate_within(config, LOCK_WAIT).await
}

/// [`migrate`] with another time limit for the lock.
///
/// # Errors
/// As [`migrate`].
pub async fn migrate_within(config: &Config, wait: Duration) -> Result<Vec<String>, MigrateError> {
    run(config, &embedded::migrations::runner(), wait).await
}

/// Waits for the migration lock, and logs which session holds it.
async fn lock(client: &Client, wait: Duration) -> Result<(), MigrateError> {
    let began = Instant::now();
    let mut logged = false;
    loop {
        let row = client.query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK]).await;
        if row.and_then(|row| row.try_get(0)).map_err(MigrateError::Lock)? {
            return Ok(());
        }
        let row = client
            .query_opt(LOCK_HOLDER, &[&LOCK])
            .await
            .map_err(MigrateError::Lock)?;
        let holder: Option<String> = match row {
            Some(row) => row.try_get(0).map_err(MigrateError::Lock)?,
            None => None,
        };
        let waited = began.elapsed();
        if let Some(holder) = holder {
            if waited >= wait {
                return Err(MigrateError::Locked { holder, waited });
            }
            if !logged {
                logged = true;
                tracing::warn!(
                    holder,
                    limit_s = wait.as_secs(),
                    "another session holds the migration lock; waiting for it"
                );
            }
        }
        tokio::time::sleep(LOCK_RETRY).await;
    }
}

async fn run(config: &Config, runner: &Runner, wait: Duration) -> Result<Vec<String>, MigrateError> {
    let mut client = pool::dedicated(config, SESSION).await?;
    if let Some(row) = client.query_opt(OWNER, &[]).await.map_err(MigrateError::History)? {
        let owner: String = row.try_get("owner").map_err(MigrateError::History)?;
        if !row.try_get("is_member").map_err(MigrateError::History)? {
            let missing = missing(list(&client, runner).await?);
            return match missing.is_empty() {
                true => Ok(Vec::new()),
                false => Err(MigrateError::NotOwner { owner, missing }),
            };
        }
        let act_as_owner = format!("SET ROLE {}", roles::quoted(&owner));
        client
            .batch_execute(&act_as_owner)
            .await
            .map_err(MigrateError::History)?;
    }
    // The end of the session also releases the lock, so a killed replica does not block others.
    lock(&client, wait).await?;
    let outcome = apply(&mut client, runner).await;
    let unlocked = client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await;
    let applied = outcome?;
    unlocked.map_err(MigrateError::Lock)?;
    Ok(applied)
}

/// Applies the missing migrations, and gives the roles their rights on what they added. refinery rejects every database that has an
/// unknown migration, so it runs only if one is missing.
async fn apply(client: &mut Client, runner: &Runner) -> Result<Vec<String>, MigrateError> {
    let migrations = list(client, runner).await?;
    let newer = newer(&migrations);
    if !newer.is_empty() {
        tracing::warn!(
            ?newer,
            "the database's schema is newer than this program, which can use it"
        );
    }
    if missing(migrations).is_empty() {
        return Ok(Vec::new());
    }
    let report = runner.run_async(client).await.map_err(MigrateError::Failed)?;
    roles::grant_if_created(client).await?;
    Ok(report.applied_migrations().iter().map(ToString::to_string).collect())
}

/// A migration that this binary knows or that was applied.
#[derive(Clone, Debug, Serialize)]
pub struct Migration {
    /// The version and the name, such as `V1__baseline`.
    pub name: String,
    /// When it was applied; `None` if it has not been applied.
    pub applied_on: Option<DateTime<Utc>>,
    /// Whether this binary knows it. It can use a schema with unknown migrations that only expand it.
    pub is_known: bool,
    /// The SQL; empty if the migration is unknown.
    #[serde(skip)]
    pub sql: String,
}

/// Returns the migrations that this binary knows or that were applied, in order, without changing anything.
///
/// # Errors
/// If the database cannot be reached, or is too new for this binary.
pub async fn status(config: &Config) -> Result<Vec<Migration>, MigrateError> {
    let client = pool::dedicated(config, SESSION).await?;
    list(&client, &embedded::migrations::runner()).await
}

/// A row of the history: the name, the time and the checksum.
type Applied = (String, String, String);

async fn list(client: &Client, runner: &Runner) -> Result<Vec<Migration>, MigrateError> {
    let rows = client.query(HISTORY_EXISTS, &[]).await.map_err(MigrateError::History)?;
    let mut applied: BTreeMap<i32, Applied> = BTreeMap::new();
    if rows.first().is_some_and(|row| row.get(0)) {
        for row in client.query(HISTORY, &[]).await.map_err(MigrateError::History)? {
            let version: i32 = row.try_get("version").map_err(MigrateError::History)?;
            let name: String = row.try_get("name").map_err(MigrateError::History)?;
            let applied_on: String = row.try_get("applied_on").map_err(MigrateError::History)?;
            let checksum: String = row.try_get("checksum").map_err(MigrateError::History)?;
            applied.insert(version, (name, applied_on, checksum));
        }
    }
    let mut known: Vec<_> = runner.get_migrations().iter().collect();
    known.sort_by_key(|migration| migration.version());
    let newest_known = known.last().map_or(0, |migration| migration.version());
    if applied.keys().any(|version| *version > newest_known) {
        let row = client.query_one(REQUIRED, &[]).await.map_err(MigrateError::History)?;
        let required: i32 = row.try_get("required_migration").map_err(MigrateError::History)?;
        if required > newest_known {
            let name = |version: i32| {
                let found = applied.get(&version);
                found.map_or_else(|| format!("V{version}"), |(name, ..)| format!("V{version}__{name}"))
            };
            return Err(MigrateError::DatabaseNewer {
                found: applied.keys().last().map_or_else(String::new, |version| name(*version)),
                required: name(required),
                known: known.last().map_or_else(|| "none".to_owned(), ToString::to_string),
            });
        }
    }
    let time = |on: &str| DateTime::parse_from_rfc3339(on).map_or(DateTime::UNIX_EPOCH, |on| on.to_utc());
    let mut migrations = Vec::new();
    for migration in known {
        let found = applied.remove(&migration.version());
        if let Some((name, _, checksum)) = &found
            && *checksum != migration.checksum().to_string()
        {
            let applied = format!("V{}__{name}", migration.version());
            return Err(MigrateError::Edited { applied });
        }
        migrations.push(Migration {
            name: migration.to_string(),
            applied_on: found.map(|(_, on, _)| time(&on)),
            is_known: true,
            sql: migration.sql().unwrap_or_default().to_owned(),
        });
    }
    migrations.extend(applied.into_iter().map(|(version, (name, on, _))| Migration {
        name: format!("V{version}__{name}"),
        applied_on: Some(time(&on)),
        is_known: false,
        sql: String::new(),
    }));
    Ok(migrations)
}

/// Returns the names of the applied migrations that this binary does not know.
#[must_use]
pub fn newer(migrations: &[Migration]) -> Vec<String> {
    let newer = migrations.iter().filter(|migration| !migration.is_known);
    newer.map(|migration| migration.name.clone()).collect()
}

/// Checks that this binary knows every applied migration.
///
/// # Errors
/// If it does not.
pub fn ensure_newest(migrations: &[Migration]) -> Result<(), MigrateError> {
    match newer(migrations) {
        newer if newer.is_empty() => Ok(()),
        newer => Err(MigrateError::NotNewest(newer)),
    }
}

/// Checks that all migrations are applied.
///
/// # Errors
/// If a migration is missing.
pub fn ensure_current(migrations: Vec<Migration>) -> Result<(), MigrateError> {
    let missing = missing(migrations);
    if missing.is_empty() {
        Ok(())
    } else {
        Err(MigrateError::Behind(missing))
    }
}

fn missing(migrations: Vec<Migration>) -> Vec<String> {
    let missing = migrations
        .into_iter()
        .filter(|migration| migration.applied_on.is_none());
    missing.map(|migration| migration.name).collect()
}

/// Formats the chain of causes down to the database's message.
fn causes(error: &refinery::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let message = inner.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = inner.source();
    }
    text
}
