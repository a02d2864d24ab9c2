//! `backup restore`: restores a dump into an empty database, and its files into the object storage.

use std::ffi::OsString;
use std::path::PathBuf;

use chrono::{TimeDelta, Utc};
use clap::Args;
use partner_api::config::Config;
use partner_api::startup::CommandDatabase;
use partner_api_store::migrate;
use partner_api_store::pool::{self, DedicatedError};
use serde::Serialize;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::{RESTORE, files, newest, postgres_program};
use crate::connect::Connect;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::{Actor, Changed, commit, record_part};
use crate::when;

partner_api_store::statement! {
    /// A table, if the database has one that belongs to no extension.
    CONTENT = "\
SELECT c.oid::regclass::text AS name
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND NOT EXISTS (SELECT FROM pg_depend d
                  WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY c.relname LIMIT 1";
    /// The statement that creates a database without what an administrator may have added to template1.
    CREATE = "SELECT format('CREATE DATABASE %I TEMPLATE template0', $1::text) AS sql";
    /// The restored content.
    RESTORED = "SELECT (SELECT count(*) FROM inspections) AS reports, (SELECT count(*) FROM measurements) AS measurements";
}

/// The name of the session.
const SESSION: &str = "partner-api restore";

/// The database that a new one is created from, because a session needs one.
const MAINTENANCE: &str = "postgres";

/// The nonces of the last minutes before the backup's end are not in it, and signatures are valid for five minutes in both
/// directions.
const REPLAYS: TimeDelta = TimeDelta::minutes(10);

/// The options of `backup restore`.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// The dump, in pg_dump's custom format, or a folder, of which the newest dump is restored
    file: PathBuf,
    /// The name of a new database on the configured server [default: the configured database, which must be empty]
    #[arg(long, value_name = "NAME")]
    into: Option<String>,
    /// Also copy the stored files from this folder into the object storage, as far as they are not in it
    #[arg(long, value_name = "FOLDER")]
    files: Option<PathBuf>,
}

/// The result of `backup restore`.
#[derive(Debug, Serialize)]
struct Restored {
    file: String,
    database: String,
    reports: i64,
    measurements: i64,
    files: Option<u64>,
}

pub(super) async fn run(connect: &Connect, args: &RestoreArgs) -> Result<(), Failure> {
    let config = connect.configuration()?;
    let database = CommandDatabase::open_unchecked(&config).await?;
    let mut target = database.target.clone();
    if let Some(name) = &args.into {
        target.dbname(name);
    }
    let outcome = restore(&config, &target, args).await;
    database.close().await;
    outcome?.print(connect.json).map_err(Failure::Output)
}

async fn restore(config: &Config, target: &tokio_postgres::Config, args: &RestoreArgs) -> Result<Output, Failure> {
    let file = newest(&args.file)?;
    let storages = match &args.files {
        Some(folder) => Some((files::storage(config, Some(folder))?, files::storage(config, None)?)),
        None => None,
    };
    let mut client = open_or_create(target).await?;
    if let Some(row) = client.query_opt(CONTENT.sql(), &[]).await? {
        let name: String = row.try_get("name")?;
        return Err(Failure::Rejected(format!(
            "the database is not empty: it has `{name}`, for example; nothing was changed. Restore into a new database with \
             --into NAME, or into another server with --database-url"
        )));
    }
    let database = target.get_dbname().unwrap_or_default().to_owned();
    let mut arguments: Vec<_> = RESTORE.map(OsString::from).into();
    arguments.extend(["--dbname".into(), database.clone().into(), file.clone().into()]);
    postgres_program("pg_restore", target, &arguments)
        .await
        .map_err(|failure| match failure {
            Failure::Unhealthy(message) => Failure::Unhealthy(format!("{message}; nothing was restored")),
            other => other,
        })?;
    // A dump has no statistics, without which plans would be wrong until the next autovacuum.
    client.batch_execute("ANALYZE").await?;
    let copied = match &storages {
        Some((from, to)) => Some(files::copy(&client, from, to).await?),
        None => None,
    };
    let row = client.query_one(RESTORED.sql(), &[]).await?;
    let restored = Restored {
        file: file.display().to_string(),
        database: database.clone(),
        reports: row.try_get("reports")?,
        measurements: row.try_get("measurements")?,
        files: copied.as_ref().map(|copied| copied.all),
    };
    record(&mut client, &restored).await?;
    if let Some((key, count)) = copied.and_then(|copied| copied.missing) {
        return Err(Failure::Unhealthy(format!(
            "the database {database} was restored, but {count} of its files are missing in --files, for example {key}"
        )));
    }
    let mut facts = vec![
        ("database", database),
        ("reports", restored.reports.to_string()),
        ("measurements", restored.measurements.to_string()),
    ];
    facts.extend(restored.files.map(|files| ("files", files.to_string())));
    let is_current = migrate::status(target).await.and_then(migrate::ensure_current).is_ok();
    let roles = if is_current { "" } else { ", which also migrates it" };
    facts.push((
        "next",
        format!("partner-api migrate --roles, on this database, as a superuser{roles}"),
    ));
    facts.push(("", "partner-api doctor".to_owned()));
    facts.push((
        "",
        format!(
            "serve it after {}: until then, requests from before the restore could be sent again",
            when::at(Utc::now() + REPLAYS)
        ),
    ));
    Ok(Output::facts(&restored, &facts))
}

/// Connects to a database, which is created if it does not exist.
async fn open_or_create(target: &tokio_postgres::Config) -> Result<Client, Failure> {
    match pool::dedicated(target, SESSION).await {
        Err(DedicatedError::Connect(error)) if error.code() == Some(&SqlState::INVALID_CATALOG_NAME) => {
            let mut maintenance = target.clone();
            maintenance.dbname(MAINTENANCE);
            let client = pool::dedicated(&maintenance, SESSION).await?;
            let name = target.get_dbname().unwrap_or_default();
            let create = client.query_one(CREATE.sql(), &[&name]).await?;
            client.batch_execute(create.try_get("sql")?).await?;
            Ok(pool::dedicated(target, SESSION).await?)
        }
        opened => Ok(opened?),
    }
}

/// Adds a row to the audit log of the restored database (OPS-1).
async fn record(client: &mut Client, restored: &Restored) -> Result<(), Failure> {
    let what = format!("The backup {} was restored into this database.", restored.file);
    let changed = Changed::of("backup", &restored.file, what, restored).undo("drop the database");
    let transaction = client.transaction().await?;
    record_part(&transaction, &Actor::of_this_process(), "backup restore", &changed).await?;
    commit(transaction).await
}
