//! Databases that Citus distributes: `script/citus`.
//!
//! The cluster of the tests is then a coordinator, and two other clusters are its workers. They reach each other over the folders of
//! their sockets. A database exists on all three under one name. A copy of it is distributed as well if it is copied on all three.

use std::path::{Path, PathBuf};

use embedded_postgres::{EmbeddedPostgres, EmbeddedPostgresError, Options};
use partner_api_store::pool;
use partner_api_store::roles::Roles;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::{OPERATOR, SCHEMA, SERVER, WITH_FIXTURE, connect, in_session};

/// Names the file that distributes the tables. If it is not set, Citus is not used.
pub const FILE_VARIABLE: &str = "TEST_CITUS";

/// The URLs of the workers' maintenance databases, separated by spaces; set by `test-postgres`.
pub const WORKERS_VARIABLE: &str = "TEST_CITUS_WORKERS";

const WORKERS: usize = 2;

/// Returns the file of [`FILE_VARIABLE`].
pub(super) fn file() -> Option<PathBuf> {
    std::env::var_os(FILE_VARIABLE).map(PathBuf::from)
}

/// Adds the settings of a node.
pub(super) fn configure(options: &mut Options) {
    let settings = [
        ("shared_preload_libraries", "citus"),
        ("wal_level", "logical"),
        ("max_prepared_transactions", "400"),
        // Each database has a session of Citus.
        ("max_worker_processes", "64"),
        ("citus.shard_count", "4"),
        ("citus.enable_statistics_collection", "off"),
        ("citus.enable_unsafe_triggers", "on"),
        ("citus.allow_nested_distributed_execution", "on"),
        // A transaction that has read several shards could not write to a reference table otherwise.
        ("citus.multi_shard_modify_mode", "sequential"),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    options.settings.extend(settings);
    options.max_connections = 500;
}

/// Starts the workers in subfolders of `folder`.
pub(super) async fn start_workers(
    folder: &Path,
    options: &Options,
) -> Result<Vec<EmbeddedPostgres>, EmbeddedPostgresError> {
    let mut workers = Vec::new();
    for number in 1..=WORKERS {
        workers.push(EmbeddedPostgres::start(&folder.join(format!("worker-{number}")), options.clone()).await?);
    }
    Ok(workers)
}

/// Creates an empty database on the workers, and makes them workers of the same database of the coordinator.
pub(super) async fn join(coordinator: &Config, workers: &[EmbeddedPostgres]) -> Result<(), EmbeddedPostgresError> {
    let mut sql = format!(
        "CREATE EXTENSION citus; SELECT citus_set_coordinator_host('{}', 5432);",
        socket(coordinator)
    );
    for worker in workers {
        let config = worker.create_database(coordinator.get_dbname().unwrap()).await?;
        in_session(&config, async |client| {
            client.batch_execute("CREATE EXTENSION citus").await.unwrap()
        })
        .await;
        sql += &format!("SELECT citus_add_node('{}', 5432);", socket(&config));
    }
    in_session(coordinator, async |client| client.batch_execute(&sql).await.unwrap()).await;
    Ok(())
}

fn socket(config: &Config) -> String {
    match config.get_hosts() {
        [Host::Unix(folder)] => folder.display().to_string(),
        hosts => panic!("expected one host: {hosts:?}"),
    }
}

/// Creates the roles of `partner-api roles` on all nodes, which this command cannot do: it becomes the owner in the transaction that
/// creates it, and Citus connects to the workers as the current role. Changes of the schema then stay on the coordinator until
/// [`distribute`].
pub(super) async fn create_roles(schema: &Config) {
    let database = schema.get_dbname().unwrap();
    let roles = Roles::of(database);
    let sql = format!(
        "CREATE ROLE {} LOGIN; CREATE ROLE {} LOGIN; CREATE ROLE {} LOGIN;
         ALTER DATABASE {database} SET citus.enable_ddl_propagation = off",
        roles.owner, roles.server, roles.operator
    );
    in_session(schema, async |client| client.batch_execute(&sql).await.unwrap()).await;
}

/// Creates the users of the tests on the workers, and distributes the tables as `file` says.
pub(super) async fn distribute(schema: &Config, file: &Path) {
    let sql =
        std::fs::read_to_string(file).unwrap_or_else(|error| panic!("failed to read {}: {error}", file.display()));
    let roles = Roles::of(schema.get_dbname().unwrap());
    let users = format!(
        "SELECT run_command_on_workers($$SET citus.enable_ddl_propagation = off;
             CREATE ROLE {SERVER} LOGIN IN ROLE {}; CREATE ROLE {OPERATOR} LOGIN IN ROLE {}$$);
         SET citus.enable_ddl_propagation = on",
        roles.server, roles.operator
    );
    in_session(schema, async |client| {
        client.batch_execute(&users).await.unwrap();
        client.batch_execute(&sql).await.unwrap();
    })
    .await;
}

/// Ends the sessions in a database and rejects new ones. Otherwise Citus always has sessions, and the database cannot be copied.
pub(super) async fn close(nodes: &[Config], database: &str) {
    for node in nodes {
        let client = connect(node).await;
        client
            .batch_execute(&format!(
                "ALTER DATABASE {database} ALLOW_CONNECTIONS false;
                 SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{database}'"
            ))
            .await
            .unwrap();
    }
}

/// Copies the database with the schema to that with the fixture data on all nodes.
pub(super) async fn copy_schema(nodes: &[Config]) {
    close(nodes, SCHEMA).await;
    for node in nodes {
        let client = connect(node).await;
        client
            .batch_execute(&format!("CREATE DATABASE {WITH_FIXTURE} TEMPLATE {SCHEMA}"))
            .await
            .unwrap();
    }
}

/// Returns the maintenance databases of the workers; none if Citus is not used.
pub(super) fn workers() -> Vec<Config> {
    let urls = std::env::var(WORKERS_VARIABLE).unwrap_or_default();
    urls.split_whitespace()
        .map(|url| pool::parse_url(url).unwrap())
        .collect()
}
