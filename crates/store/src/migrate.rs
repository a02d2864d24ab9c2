//! The schema's migrations, built into the binary and run under an advisory lock, so that replicas can start together.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use refinery::{Report, Runner, error::Kind};
use serde::Serialize;
use thiserror::Error;
use tokio_postgres::Config;

use super::pool::{self, DedicatedError};

mod embedded {
    refinery::embed_migrations!("../../migrations");
}

/// The advisory lock's number: any constant that nothing else in the database uses ("partner" in ASCII).
const LOCK: i64 = 0x70_6172_746e_6572;

// The history is refinery's table: not of the schema that it makes, and so in no registry.
const HISTORY_EXISTS: &str = "SELECT to_regclass('refinery_schema_history') IS NOT NULL";
const HISTORY: &str = "SELECT version, name, applied_on FROM refinery_schema_history";

/// Why the schema is not up to date.
#[derive(Debug, Error)]
pub enum MigrateError {
    /// See [`DedicatedError`].
    #[error(transparent)]
    Connect(#[from] DedicatedError),
    /// The history of migrations could not be read.
    #[error("the history of migrations: {}", super::cause(.0))]
    History(tokio_postgres::Error),
    /// The lock could not be taken or given back.
    #[error("the migration lock: {}", super::cause(.0))]
    Lock(tokio_postgres::Error),
    /// The database has a migration that this binary does not know.
    #[error(
        "the database is newer than this binary: it has the migration {found}, this binary knows up to {known}; \
         start a newer version of the service"
    )]
    DatabaseNewer {
        /// The unknown migration.
        found: String,
        /// The newest known one.
        known: String,
    },
    /// A migration that was applied differs from the one in this binary.
    #[error(
        "the migration {applied} was applied with another content than this binary has; applied migrations are never edited"
    )]
    Edited {
        /// Its name.
        applied: String,
    },
    /// The schema lacks migrations, and it is not for this command to apply them.
    #[error("the database's schema is older than this program; bring it up to date with: partner-api migrate (lacking: {})", .0.join(", "))]
    Behind(Vec<String>),
    /// A migration failed. What it did is undone, earlier ones stay.
    #[error("a migration failed: {}", causes(.0))]
    Failed(refinery::Error),
}

/// What sessions of migrations are called.
const SESSION: &str = "partner-api migrations";

/// Brings the schema up to date and answers the names of the migrations that it applied, in order; none: it was so already.
/// Of several callers at once one works, the others wait and find everything done.
///
/// # Errors
/// The database cannot be reached, is newer than this binary, or refuses a migration.
pub async fn migrate(config: &Config) -> Result<Vec<String>, MigrateError> {
    run(config, &embedded::migrations::runner()).await
}

async fn run(config: &Config, runner: &Runner) -> Result<Vec<String>, MigrateError> {
    let mut client = pool::dedicated(config, SESSION).await?;
    // Freed by the end of the session too, so a killed replica blocks nobody.
    client
        .execute("SELECT pg_advisory_lock($1)", &[&LOCK])
        .await
        .map_err(MigrateError::Lock)?;
    let outcome = runner.run_async(&mut client).await;
    let unlocked = client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await;
    let report = outcome.map_err(|error| classify(error, runner))?;
    unlocked.map_err(MigrateError::Lock)?;
    Ok(names(&report))
}

/// A migration that this binary knows, and when it was applied.
#[derive(Clone, Debug, Serialize)]
pub struct Migration {
    /// Its version and name, as in `V1__baseline`.
    pub name: String,
    /// When it was applied; none: not yet.
    pub applied_on: Option<DateTime<Utc>>,
    /// Its SQL.
    #[serde(skip)]
    pub sql: String,
}

/// The migrations that this binary knows, in order. Nothing is changed.
///
/// # Errors
/// The database cannot be reached, or is newer than this binary.
pub async fn status(config: &Config) -> Result<Vec<Migration>, MigrateError> {
    let runner = embedded::migrations::runner();
    let client = pool::dedicated(config, SESSION).await?;
    let rows = client.query(HISTORY_EXISTS, &[]).await.map_err(MigrateError::History)?;
    let mut applied = BTreeMap::new();
    if rows.first().is_some_and(|row| row.get(0)) {
        for row in client.query(HISTORY, &[]).await.map_err(MigrateError::History)? {
            let version: i32 = row.try_get("version").map_err(MigrateError::History)?;
            let name: String = row.try_get("name").map_err(MigrateError::History)?;
            let applied_on: String = row.try_get("applied_on").map_err(MigrateError::History)?;
            applied.insert(version, (name, applied_on));
        }
    }
    let mut known: Vec<_> = runner.get_migrations().iter().collect();
    known.sort_by_key(|migration| migration.version());
    let migrations: Vec<_> = known
        .iter()
        .map(|migration| Migration {
            name: migration.to_string(),
            applied_on: applied
                .remove(&migration.version())
                .map(|(_, on)| DateTime::parse_from_rfc3339(&on).map_or(DateTime::UNIX_EPOCH, |on| on.to_utc())),
            sql: migration.sql().unwrap_or_default().to_owned(),
        })
        .collect();
    match applied.pop_last() {
        Some((version, (name, _))) => Err(MigrateError::DatabaseNewer {
            found: format!("V{version}__{name}"),
            known: migrations
                .last()
                .map_or_else(|| "none".to_owned(), |last| last.name.clone()),
        }),
        None => Ok(migrations),
    }
}

/// That nothing is left to apply.
///
/// # Errors
/// Something is.
pub fn current(migrations: Vec<Migration>) -> Result<(), MigrateError> {
    let lacking: Vec<_> = migrations
        .into_iter()
        .filter(|migration| migration.applied_on.is_none())
        .map(|migration| migration.name)
        .collect();
    if lacking.is_empty() {
        Ok(())
    } else {
        Err(MigrateError::Behind(lacking))
    }
}

fn names(report: &Report) -> Vec<String> {
    report.applied_migrations().iter().map(ToString::to_string).collect()
}

fn classify(error: refinery::Error, runner: &Runner) -> MigrateError {
    match error.kind() {
        Kind::MissingVersion(found) => {
            let newest = runner
                .get_migrations()
                .iter()
                .max_by_key(|migration| migration.version());
            MigrateError::DatabaseNewer {
                found: found.to_string(),
                known: newest.map_or_else(|| "none".to_owned(), ToString::to_string),
            }
        }
        Kind::DivergentVersion(applied, _) => MigrateError::Edited {
            applied: applied.to_string(),
        },
        _ => MigrateError::Failed(error),
    }
}

/// The chain of causes down to the database's own words.
fn causes(error: &refinery::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = inner.source();
    }
    text
}
