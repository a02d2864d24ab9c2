//! Database access of commands, with audited changes.

use std::time::Duration;

use nix::unistd::{Uid, User, gethostname};
use partner_api::config::Config;
use partner_api::startup::CommandDatabase;
use partner_api_store::connection::{Connection, Parameters};
use partner_api_store::partitions::Partitioned;
use partner_api_store::secrets::MasterKey;
use partner_api_store::statement::Statement;
use partner_api_store::transaction::Transaction;
use partner_api_store::{DbError, pool};
use serde::Serialize;
use serde_json::Value;
use tokio_postgres::{Client, Row};

use crate::connect::Connect;
use crate::failure::Failure;
use crate::output::{Output, to_json};

/// The timeout of a command's database work.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(30);

partner_api_store::statement! {
    /// The database adds its role and the client's address.
    RECORD = "INSERT INTO audit_log (actor, host, command, kind, subject, action, undo, before, after) \
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
}

/// The operating system's account and the machine that run a command.
#[derive(Debug)]
pub struct Actor {
    name: String,
    host: String,
}

impl Actor {
    /// Returns the account of this process; under sudo, the original account.
    pub fn of_this_process() -> Self {
        let account = || {
            let id = Uid::current();
            match User::from_uid(id) {
                Ok(Some(user)) => user.name,
                _ => format!("uid {id}"),
            }
        };
        let before_sudo = std::env::var("SUDO_USER").ok().filter(|name| !name.is_empty());
        let host = gethostname().map_or_else(|_| "unknown".to_owned(), |name| name.to_string_lossy().into_owned());
        Self {
            name: before_sudo.map_or_else(account, |name| format!("{name} (as {})", account())),
            host,
        }
    }
}

/// An open database and the actor.
#[derive(Debug)]
pub struct Session {
    database: CommandDatabase,
    /// The configuration, as for `serve`.
    pub config: Config,
    actor: Actor,
}

impl Session {
    /// Opens the database.
    ///
    /// # Errors
    /// If it cannot be reached, or its schema does not match this program.
    pub async fn open(connect: &Connect) -> Result<Self, Failure> {
        let config = connect.configuration()?;
        let database = CommandDatabase::open(&config).await?;
        Ok(Self {
            database,
            config,
            actor: Actor::of_this_process(),
        })
    }

    /// Takes a connection for reading.
    ///
    /// # Errors
    /// If none is available in time.
    pub async fn read(&self) -> Result<Connection, Failure> {
        Ok(Connection::take(&self.database.pool, DATABASE_TIMEOUT).await?)
    }

    /// Returns the connection settings of the database.
    pub(crate) fn target(&self) -> &tokio_postgres::Config {
        &self.database.target
    }

    /// Reads the master key, for commands that encrypt a secret.
    ///
    /// # Errors
    /// If none is configured.
    pub fn master_key(&self) -> Result<MasterKey, Failure> {
        Ok(self.config.master_key()?)
    }

    /// Runs a change in one transaction with its row of the audit log (OPS-1). If `work` finds nothing to change, nothing is
    /// recorded.
    ///
    /// # Errors
    /// Any error of `work`, which rolls back. [`Failure::Unknown`] if there was no response to the commit.
    pub(crate) async fn change<T: Serialize>(
        &self,
        command: &'static str,
        work: impl AsyncFnOnce(&Change<'_>) -> Result<Changed<T>, Failure>,
    ) -> Result<Output, Failure> {
        let all = async {
            let connection = self.read().await?;
            let change = Change {
                transaction: connection.transaction(),
            };
            let changed = work(&change).await?;
            if changed.changed {
                change.record(&self.actor, command, &changed).await?;
            }
            change.transaction.commit().await.map_err(|error| {
                if error.outcome_is_unknown() {
                    Failure::Unknown
                } else {
                    Failure::Db(error)
                }
            })?;
            Ok(Output::changed(
                changed.changed,
                &changed.what,
                changed.undo.as_deref(),
                &changed.facts,
                to_json(&changed.value),
            ))
        };
        tokio::time::timeout(DATABASE_TIMEOUT, all)
            .await
            .unwrap_or(Err(Failure::Unknown))
    }

    /// Runs one part of a long change in its own transaction on a dedicated session, with its row of the audit log (OPS-1). If
    /// `work` finds nothing to change, nothing is recorded.
    ///
    /// # Errors
    /// Any error of `work`, which rolls back this part. [`Failure::Unknown`] if there was no response to the commit.
    pub(crate) async fn change_part<T>(
        &self,
        client: &mut Client,
        command: &'static str,
        work: impl AsyncFnOnce(&tokio_postgres::Transaction<'_>) -> Result<Changed<T>, Failure>,
    ) -> Result<T, Failure> {
        let transaction = client.transaction().await?;
        let changed = work(&transaction).await?;
        if changed.changed {
            record_part(&transaction, &self.actor, command, &changed).await?;
        }
        commit(transaction).await?;
        Ok(changed.value)
    }

    /// Creates the next partitions of a table and drops the expired ones.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn maintain(&self, table: &Partitioned) -> Result<(), Failure> {
        Ok(table.maintain(&self.database.pool).await?)
    }

    /// Opens a dedicated database session without statement timeout, under an application name.
    ///
    /// # Errors
    /// If the session cannot be opened.
    pub(crate) async fn dedicated(&self, name: &str) -> Result<Client, Failure> {
        Ok(pool::dedicated(&self.database.target, name).await?)
    }

    /// Returns the actor.
    pub(crate) fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Closes the connections, and stops a private cluster that was started for this command.
    pub async fn close(self) {
        self.database.close().await;
    }
}

/// A change in progress.
#[derive(Debug)]
pub(crate) struct Change<'t> {
    transaction: Transaction<'t>,
}

impl Change<'_> {
    /// Executes a statement and returns the number of changed rows.
    pub(crate) async fn execute(
        &self,
        statement: &'static Statement,
        parameters: &Parameters<'_>,
    ) -> Result<u64, DbError> {
        let statement = self.transaction.prepare(statement).await?;
        self.transaction.execute(&statement, parameters).await
    }

    /// Records the change in the audit log.
    async fn record<T>(&self, actor: &Actor, command: &str, changed: &Changed<T>) -> Result<(), DbError> {
        self.execute(
            RECORD,
            &[
                &actor.name,
                &actor.host,
                &command,
                &changed.kind,
                &changed.id,
                &changed.what,
                &changed.undo,
                &changed.before,
                &changed.after,
            ],
        )
        .await?;
        Ok(())
    }
}

/// Records a change made by a dedicated session in the audit log, within its transaction.
pub(crate) async fn record_part<T>(
    transaction: &tokio_postgres::Transaction<'_>,
    actor: &Actor,
    command: &str,
    changed: &Changed<T>,
) -> Result<(), tokio_postgres::Error> {
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 9] = [
        &actor.name,
        &actor.host,
        &command,
        &changed.kind,
        &changed.id,
        &changed.what,
        &changed.undo,
        &changed.before,
        &changed.after,
    ];
    transaction.execute(RECORD.sql(), &parameters).await?;
    Ok(())
}

/// Commits a transaction of a dedicated session.
pub(crate) async fn commit(transaction: tokio_postgres::Transaction<'_>) -> Result<(), Failure> {
    transaction.commit().await.map_err(|error| match DbError::from(error) {
        error if error.outcome_is_unknown() => Failure::Unknown,
        error => Failure::Db(error),
    })
}

/// A source of rows: a connection, or a change, which sees its own modifications.
pub(crate) trait Query {
    /// Returns the rows of a statement.
    async fn query(&self, statement: &'static Statement, parameters: &Parameters<'_>) -> Result<Vec<Row>, DbError>;
}

impl Query for Connection {
    async fn query(&self, statement: &'static Statement, parameters: &Parameters<'_>) -> Result<Vec<Row>, DbError> {
        Connection::query(self, statement, parameters).await
    }
}

impl Query for Change<'_> {
    async fn query(&self, statement: &'static Statement, parameters: &Parameters<'_>) -> Result<Vec<Row>, DbError> {
        let statement = self.transaction.prepare(statement).await?;
        self.transaction.query(&statement, parameters).await
    }
}

/// The result of a change, for the operator and the audit log.
#[derive(Debug)]
pub(crate) struct Changed<T> {
    /// Whether anything changed.
    pub changed: bool,
    /// The kind of the object, such as `partner`.
    pub kind: &'static str,
    /// Its ID.
    pub id: String,
    /// A sentence that describes the change, without secrets.
    pub what: String,
    /// The command that undoes it, or why it cannot be undone.
    pub undo: Option<String>,
    /// The state before, without secrets.
    pub before: Option<Value>,
    /// The state after, without secrets.
    pub after: Option<Value>,
    /// The facts to print.
    pub facts: Vec<(&'static str, String)>,
    /// The value for `--json`.
    pub value: T,
}

impl<T: Serialize> Changed<T> {
    /// Returns a change to the object `id` of `kind`, with the new `value`.
    pub(crate) fn of(kind: &'static str, id: impl ToString, what: String, value: T) -> Self {
        Self {
            changed: true,
            kind,
            id: id.to_string(),
            what,
            undo: None,
            before: None,
            after: Some(to_json(&value)),
            facts: Vec::new(),
            value,
        }
    }

    /// No change was needed.
    pub(crate) fn unchanged(kind: &'static str, id: impl ToString, what: String, value: T) -> Self {
        Self {
            changed: false,
            ..Self::of(kind, id, what, value)
        }
    }

    /// Sets how to undo the change.
    pub(crate) fn undo(mut self, command: impl Into<String>) -> Self {
        self.undo = Some(command.into());
        self
    }

    /// Sets the state before.
    pub(crate) fn before(mut self, value: &impl Serialize) -> Self {
        self.before = Some(to_json(value));
        self
    }

    /// Returns the facts to print.
    pub(crate) fn facts(mut self, facts: Vec<(&'static str, String)>) -> Self {
        self.facts = facts;
        self
    }
}
