//! The deployment that a database belongs to: its environment and its ID.
//!
//! A program that is configured for another deployment must not use the database. Otherwise a mistyped URL could create live keys
//! in a test database, or serve partners from a copy.

use std::fmt;

use partner_api_signing::Environment;
use thiserror::Error;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, Row};
use uuid::Uuid;

use super::DbError;
use super::connection::Connection;
use super::pool::{self, DedicatedError};
use crate::statement;

statement! {
    FIND = "SELECT id, environment FROM deployment";
    /// Whether the database has the table. It has none before the first migration.
    IS_MIGRATED = "SELECT to_regclass('deployment') IS NOT NULL AS is_migrated";
    /// Writes the environment, unless all keys are of the other one.
    CLAIM = "\
UPDATE deployment SET environment = $1
WHERE environment IS NULL
  AND (NOT EXISTS (SELECT FROM api_keys) OR EXISTS (SELECT FROM api_keys WHERE environment = $1))";
}

/// The deployment that a program is configured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Configured {
    /// The environment.
    pub environment: Environment,
    /// The ID; `None` accepts every deployment of the environment.
    pub id: Option<Uuid>,
}

/// The deployment that a database belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// The ID, which copies of the database share.
    pub id: Uuid,
    /// The environment; `None` until a program has migrated the database.
    pub environment: Option<Environment>,
}

impl fmt::Display for Deployment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.environment {
            Some(environment) => write!(f, "the {environment} deployment {}", self.id),
            None => write!(f, "the deployment {}", self.id),
        }
    }
}

/// An error of the check of the deployment.
#[derive(Debug, Error)]
pub enum DeploymentError {
    /// The environments differ.
    #[error(
        "the database belongs to {found}, but this program is configured for {configured}; set database_url to the {configured} \
         database, or environment to \"{}\"",
        .found.environment.map_or("test", Environment::as_str)
    )]
    OtherEnvironment {
        /// The database's deployment.
        found: Deployment,
        /// The configured environment.
        configured: Environment,
    },
    /// The IDs differ.
    #[error(
        "the database belongs to {found}, but this program is configured for the deployment {configured}; set database_url to its \
         database, or correct `deployment`"
    )]
    OtherId {
        /// The database's deployment.
        found: Deployment,
        /// The configured ID.
        configured: Uuid,
    },
    /// The database has no environment yet, and all its keys are of the other one.
    #[error(
        "all keys in the database are of the other environment, but this program is configured for {configured}; set database_url \
         to the {configured} database, or correct `environment`"
    )]
    OtherKeys {
        /// The configured environment.
        configured: Environment,
    },
    /// The database has no environment yet, and this role may not write it.
    #[error(
        "the database does not say which environment it belongs to; as the owner of the schema, run: partner-api migrate"
    )]
    Unclaimed,
    /// The database cannot be reached.
    #[error(transparent)]
    Connect(#[from] DedicatedError),
    /// A statement failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl DeploymentError {
    /// Returns whether the configuration must be corrected.
    #[must_use]
    pub fn is_configuration(&self) -> bool {
        matches!(
            self,
            Self::OtherEnvironment { .. } | Self::OtherId { .. } | Self::OtherKeys { .. }
        )
    }
}

/// Returns the deployment of a migrated database.
///
/// # Errors
/// If the database does not respond.
pub async fn find(connection: &Connection) -> Result<Deployment, DbError> {
    read(&connection.query_one(FIND, &[]).await?)
}

fn read(row: &Row) -> Result<Deployment, DbError> {
    let environment: Option<String> = row.try_get("environment")?;
    let environment = environment.map(|text| text.parse()).transpose();
    Ok(Deployment {
        id: row.try_get("id")?,
        environment: environment.map_err(|_| DbError::Data {
            table: "deployment",
            detail: "an unknown environment".to_owned(),
        })?,
    })
}

/// Checks that the database is one of the configured deployment. A database that was not migrated yet passes.
///
/// # Errors
/// If it cannot be reached, or belongs to another deployment.
pub async fn check_before_migrating(config: &Config, configured: Configured) -> Result<(), DeploymentError> {
    let client = pool::dedicated(config, "partner-api deployment").await?;
    let row = client.query_one(IS_MIGRATED.sql(), &[]).await.map_err(DbError::from)?;
    if row.try_get("is_migrated").map_err(DbError::from)? {
        let row = client.query_one(FIND.sql(), &[]).await.map_err(DbError::from)?;
        check(read(&row)?, configured)?;
    }
    Ok(())
}

/// Checks that a migrated database is one of the configured deployment.
///
/// # Errors
/// If it belongs to another deployment, or to none yet.
pub async fn verify(connection: &Connection, configured: Configured) -> Result<Deployment, DeploymentError> {
    let found = find(connection).await?;
    check(found, configured)?;
    found.environment.map(|_| found).ok_or(DeploymentError::Unclaimed)
}

/// Makes a migrated database one of the configured environment if it has none yet, and checks it.
///
/// # Errors
/// If it belongs to another deployment, or this role may not write it.
pub async fn claim(connection: &Connection, configured: Configured) -> Result<Deployment, DeploymentError> {
    let found = find(connection).await?;
    check(found, configured)?;
    if found.environment.is_some() {
        return Ok(found);
    }
    let environment = configured.environment;
    match connection.execute(CLAIM, &[&environment.as_str()]).await {
        Err(error) if error.rejection() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Err(DeploymentError::Unclaimed),
        Err(error) => Err(error.into()),
        Ok(_) => match verify(connection, configured).await {
            Err(DeploymentError::Unclaimed) => Err(DeploymentError::OtherKeys {
                configured: environment,
            }),
            // Another replica may have written the other environment at the same time.
            checked => checked,
        },
    }
}

fn check(found: Deployment, configured: Configured) -> Result<(), DeploymentError> {
    if found
        .environment
        .is_some_and(|environment| environment != configured.environment)
    {
        return Err(DeploymentError::OtherEnvironment {
            found,
            configured: configured.environment,
        });
    }
    match configured.id {
        Some(id) if id != found.id => Err(DeploymentError::OtherId { found, configured: id }),
        _ => Ok(()),
    }
}
