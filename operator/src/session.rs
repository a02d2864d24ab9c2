//! A command's access to the database, and changes that are recorded.

use std::time::Duration;

use partner_api::config::Config;
use partner_api::db::connection::{Connection, Parameters};
use partner_api::db::partitions::Partitioned;
use partner_api::db::statement::Statement;
use partner_api::db::transaction::Transaction;
use partner_api::db::{DbError, pool};
use partner_api::secrets::MasterKey;
use partner_api::startup::CommandDatabase;
use serde::Serialize;
use serde_json::Value;
use tokio_postgres::{Client, Row};

use crate::audit::{self, Actor};
use crate::connect::Connect;
use crate::failure::Failure;
use crate::output::{Output, to_json};

/// How long a command waits for the database in all.
const BOUND: Duration = Duration::from_secs(30);

/// An open database, and who works on it.
#[derive(Debug)]
pub struct Session {
    database: CommandDatabase,
    /// As `serve` would have it.
    pub config: Config,
    actor: Actor,
}

impl Session {
    /// Opens the database of these options.
    ///
    /// # Errors
    /// It cannot be reached, or its schema is not that of this program.
    pub async fn open(connect: &Connect) -> Result<Self, Failure> {
        let config = connect.configuration()?;
        let database = CommandDatabase::open(&config).await?;
        Ok(Self {
            database,
            config,
            actor: Actor::of_this_process(),
        })
    }

    /// A connection to read with.
    ///
    /// # Errors
    /// None is to be had.
    pub async fn read(&self) -> Result<Connection, Failure> {
        Ok(Connection::take(&self.database.pool, BOUND).await?)
    }

    /// The master key, for commands that seal a secret.
    ///
    /// # Errors
    /// None is configured.
    pub fn master_key(&self) -> Result<MasterKey, Failure> {
        Ok(self.config.master_key()?)
    }

    /// Changes something, in one transaction with its row of the audit log (OPS-1). Where `work` finds that there is
    /// nothing to change, nothing is recorded.
    ///
    /// # Errors
    /// What `work` says; nothing is changed then. [`Failure::Unknown`] if the commit was not answered.
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
                audit::record(&change, &self.actor, command, &changed).await?;
            }
            change.transaction.commit().await.map_err(|error| {
                if error.leaves_open() {
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
        tokio::time::timeout(BOUND, all).await.unwrap_or(Err(Failure::Unknown))
    }

    /// Makes the coming partitions of a table and drops those that are not kept any more.
    ///
    /// # Errors
    /// The database does not answer, or refuses.
    pub async fn look_after(&self, table: &Partitioned) -> Result<(), Failure> {
        Ok(table.look_after(&self.database.pool).await?)
    }

    /// A session of its own, whose statements have no bound, under a name that shows in the database.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) async fn dedicated(&self, name: &str) -> Result<Client, Failure> {
        Ok(pool::dedicated(&self.database.target, name).await?)
    }

    /// Who works.
    pub(crate) fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Closes the connections, and stops a private cluster that was started for this command.
    pub async fn close(self) {
        self.database.close().await;
    }
}

/// A change under way.
#[derive(Debug)]
pub(crate) struct Change<'t> {
    transaction: Transaction<'t>,
}

impl Change<'_> {
    /// The rows of a statement.
    pub(crate) async fn query(
        &self,
        statement: &'static Statement,
        parameters: &Parameters<'_>,
    ) -> Result<Vec<Row>, DbError> {
        let statement = self.transaction.prepare(statement).await?;
        self.transaction.query(&statement, parameters).await
    }

    /// Executes a statement; returns how many rows it changed.
    pub(crate) async fn execute(
        &self,
        statement: &'static Statement,
        parameters: &Parameters<'_>,
    ) -> Result<u64, DbError> {
        let statement = self.transaction.prepare(statement).await?;
        self.transaction.execute(&statement, parameters).await
    }
}

/// What a change came to, for the operator and for the audit log.
#[derive(Debug)]
pub(crate) struct Changed<T> {
    /// False: all was so already.
    pub changed: bool,
    /// The kind of the thing, such as `partner`.
    pub kind: &'static str,
    /// Its id.
    pub id: String,
    /// A sentence that says what was done. No secret.
    pub what: String,
    /// The command that undoes it, or why there is none.
    pub undo: Option<String>,
    /// As it was; no secret.
    pub before: Option<Value>,
    /// As it is; no secret.
    pub after: Option<Value>,
    /// What is shown of it.
    pub facts: Vec<(&'static str, String)>,
    /// What scripts are given.
    pub value: T,
}

impl<T: Serialize> Changed<T> {
    /// A change of the thing `id` of `kind` that came to `value`.
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

    /// Nothing was to be changed.
    pub(crate) fn nothing(kind: &'static str, id: impl ToString, what: String, value: T) -> Self {
        Self {
            changed: false,
            ..Self::of(kind, id, what, value)
        }
    }

    /// How it is undone.
    pub(crate) fn undo(mut self, command: impl Into<String>) -> Self {
        self.undo = Some(command.into());
        self
    }

    /// As it was.
    pub(crate) fn before(mut self, value: &impl Serialize) -> Self {
        self.before = Some(to_json(value));
        self
    }

    /// What is shown of it.
    pub(crate) fn facts(mut self, facts: Vec<(&'static str, String)>) -> Self {
        self.facts = facts;
        self
    }
}
