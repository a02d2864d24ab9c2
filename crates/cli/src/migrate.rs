//! `partner-api migrate`.

use std::process::ExitCode;

use partner_api::config::Config;
use partner_api::logging;
use partner_api::startup::{CommandDatabase, OpenDatabase};
use partner_api_store::migrate::{self, Migration, status};
use partner_api_store::roles::{self, Roles};
use partner_api_terminal::output::{Output, Row};
use serde::Serialize;

use crate::Failure;
use crate::cli::MigrateArgs;

/// A row of `--status`.
#[derive(Serialize)]
#[serde(transparent)]
struct StatusRow(Migration);

impl Row for StatusRow {
    const COLUMNS: &'static [&'static str] = &["MIGRATION", "APPLIED"];

    fn cells(&self) -> Vec<String> {
        let applied = self.0.applied_on.map_or_else(
            || "pending".to_owned(),
            |on| on.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        );
        let newer = if self.0.is_known { "" } else { ", by a newer program" };
        vec![self.0.name.clone(), applied + newer]
    }
}

pub(crate) async fn run(args: &MigrateArgs) -> Result<ExitCode, Failure> {
    let config = Config::load(&args.serve)?;
    if args.status || args.dry_run {
        let database = CommandDatabase::open_unchecked(&config).await?;
        let migrations = status(&database.target).await;
        database.close().await;
        return print(migrations?, args);
    }
    let _log = logging::init(&config.options.log_level, config.options.log_format)?;
    if args.roles {
        ensure_newest(&config).await?;
    }
    let database = OpenDatabase::open(&config).await?;
    match database.applied.as_slice() {
        [] => println!("The schema is up to date."),
        applied => applied.iter().for_each(|migration| println!("applied {migration}")),
    }
    let roles = match args.roles {
        true => roles::create(&database.target).await.map(Some),
        false => Ok(None),
    };
    let deployment = database.deployment;
    database.close().await;
    if let Some(roles) = roles? {
        print_roles(&roles);
    }
    println!("The database belongs to {deployment}.");
    Ok(ExitCode::SUCCESS)
}

/// Checks that no newer program has migrated the database. Otherwise the roles would lose the rights that it added.
async fn ensure_newest(config: &Config) -> Result<(), Failure> {
    let database = CommandDatabase::open_unchecked(config).await?;
    let migrations = status(&database.target).await;
    database.close().await;
    Ok(migrate::ensure_newest(&migrations?)?)
}

fn print_roles(roles: &Roles) {
    let Roles {
        owner,
        server,
        operator,
    } = roles;
    println!(
        "The role {owner} owns the schema. Create users with SQL such as:
  CREATE ROLE NAME LOGIN PASSWORD '...' IN ROLE \"{server}\";     for partner-api serve
  CREATE ROLE NAME LOGIN PASSWORD '...' IN ROLE \"{operator}\";   for each operator
  CREATE ROLE NAME LOGIN PASSWORD '...' IN ROLE \"{owner}\";      for partner-api migrate"
    );
}

fn print(migrations: Vec<Migration>, args: &MigrateArgs) -> Result<ExitCode, Failure> {
    if args.status {
        let rows: Vec<_> = migrations.into_iter().map(StatusRow).collect();
        Output::rows(&rows, "This program has no migrations.").print(args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let pending: Vec<_> = migrations
        .iter()
        .filter(|migration| migration.applied_on.is_none())
        .collect();
    match migrate::newer(&migrations) {
        newer if !newer.is_empty() => println!(
            "A newer program has migrated the schema, and this program can use it: {}",
            newer.join(", ")
        ),
        _ if pending.is_empty() => println!("The schema is up to date."),
        _ => {}
    }
    for migration in pending {
        println!("-- pending: {}\n{}", migration.name, migration.sql.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}
