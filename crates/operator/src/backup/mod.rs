//! Backups: `create` dumps the database and copies the stored files, `verify` restores a dump into a private cluster and checks it
//! with the files, and `restore` restores both into an empty database.

mod files;
mod restore;
mod verify;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use chrono::Utc;
use clap::{Args, Subcommand};
use partner_api_store::pool;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tempfile::TempPath;
use tokio::process::Command as Program;
use tokio_postgres::IsolationLevel;
use tokio_postgres::config::{Host, SslMode};

use crate::Group;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

partner_api_store::statement! {
    /// Makes the transaction's snapshot available to pg_dump.
    EXPORT = "SELECT pg_export_snapshot() AS snapshot";
}

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
A dump contains every measurement that was acknowledged before it began. Connect as the owner of the schema, who may read all tables.
The files are copied after the dump: objects that a report shows are never changed, and replaced ones are kept for an hour.

Examples:
  partner-api backup create /srv/backup --files /srv/backup/files        database and files, in a new file of the folder
  partner-api backup verify /srv/backup --files /srv/backup/files        the newest dump, with the copy of the files
  partner-api backup verify partner.dump                                 with the files of the service
  partner-api backup verify --restored postgresql://localhost:5433/partner    a database that pgBackRest has restored
  partner-api backup restore partner.dump --into partner_new             into a new database on the same server";

/// The arguments of pg_restore: it restores everything or changes nothing.
const RESTORE: [&str; 4] = [
    "--exit-on-error",
    "--single-transaction",
    "--no-owner",
    "--no-privileges",
];

/// Commands on backups.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Dump the database into a file, with pg_dump, and copy the stored files
    Create(CreateArgs),
    /// Restore a dump into a private cluster, check it with the stored files, and record the result in the audit log
    Verify(verify::VerifyArgs),
    /// Restore a dump into an empty database, which is created if it does not exist
    Restore(restore::RestoreArgs),
}

/// The options of `backup create`.
#[derive(Args, Debug)]
pub struct CreateArgs {
    /// The new file, or a folder, in which the file is named after the time
    file: PathBuf,
    /// Also copy the stored files into this folder, as far as they are not in it. Backups may share the folder
    #[arg(long, value_name = "FOLDER")]
    files: Option<PathBuf>,
}

/// The result of `backup create`.
#[derive(Debug, Serialize)]
struct Created {
    file: String,
    size_bytes: u64,
    sha256: String,
    /// The stored files that the dump refers to, if they were copied.
    files: Option<u64>,
    /// Those that were not in the folder yet.
    new_files: Option<u64>,
}

/// Runs a command.
pub(crate) async fn run(group: Group<Command>) -> Result<(), Failure> {
    let connect = &group.connect;
    match group.command {
        Command::Create(args) => crate::with(connect, async |session| create(session, &args).await).await,
        Command::Verify(args) => crate::with(connect, async |session| verify::verify(session, &args).await).await,
        Command::Restore(args) => restore::run(connect, &args).await,
    }
}

/// Dumps the database first and copies the files afterwards. Objects are never changed, and one that no report shows any more is
/// kept for an hour, so everything that the dump refers to still exists then. A copy made before the dump would lack the files of
/// the reports in between.
async fn create(session: &Session, args: &CreateArgs) -> Result<Output, Failure> {
    let file = match args.file.is_dir() {
        true => args
            .file
            .join(Utc::now().format("partner-%Y%m%dT%H%M%SZ.dump").to_string()),
        false => args.file.clone(),
    };
    let exists = || Failure::Usage(format!("{}: exists already; choose another name", file.display()));
    if file.exists() {
        return Err(exists());
    }
    let storages = match &args.files {
        Some(folder) => Some((
            files::storage(&session.config, None)?,
            files::storage(&session.config, Some(folder))?,
        )),
        None => None,
    };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Half a dump must not be mistaken for a backup, so the file gets its name at the end. Only its owner can read it.
    let dump: TempPath = tempfile::Builder::new()
        .prefix(".partner-api-backup-")
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .map_err(|error| unreadable(&file, &error))?
        .into_temp_path();
    let mut client = pool::dedicated(session.target(), "partner-api backup").await?;
    let snapshot = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await?;
    let exported = snapshot.query_one(EXPORT.sql(), &[]).await?;
    let exported: String = exported.try_get("snapshot")?;
    let mut arguments = vec![OsString::from("--format=custom"), "--snapshot".into(), exported.into()];
    arguments.extend(["--file".into(), dump.as_os_str().to_owned()]);
    postgres_program("pg_dump", session.target(), &arguments).await?;
    let (size_bytes, sha256) = digest(&dump).await.map_err(|error| unreadable(&file, &error))?;
    dump.persist_noclobber(&file)
        .map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => exists(),
            _ => unreadable(&file, &error.error),
        })?;
    let copied = match &storages {
        Some((from, to)) => Some(files::copy(&snapshot, from, to).await?),
        None => None,
    };
    drop(snapshot);
    if let Some((key, count)) = copied.as_ref().and_then(|copied| copied.missing.as_ref()) {
        return Err(Failure::Unhealthy(format!(
            "{}: the dump is complete, but {count} files that it refers to are missing in the storage, for example {key}; if they \
             were replaced while this ran for more than an hour, run the command again: it copies only what the folder lacks",
            file.display()
        )));
    }
    let created = Created {
        file: file.display().to_string(),
        size_bytes,
        sha256,
        files: copied.as_ref().map(|copied| copied.all),
        new_files: copied.as_ref().map(|copied| copied.new),
    };
    let mut facts = vec![
        ("file", created.file.clone()),
        ("size", format!("{size_bytes} bytes")),
        ("SHA-256", created.sha256.clone()),
    ];
    let mut next = format!("partner-api backup verify {}", created.file);
    if let (Some(copied), Some(folder)) = (&copied, &args.files) {
        facts.push(("files", format!("{}, of which {} are new", copied.all, copied.new)));
        next = format!("{next} --files {}", folder.display());
    }
    facts.push(("next", next));
    Ok(Output::facts(&created, &facts))
}

/// Returns the size of a file and its SHA-256 in hex.
async fn digest(file: &Path) -> io::Result<(u64, String)> {
    let file = file.to_owned();
    let read = move || {
        let mut digest = Sha256::new();
        let size = io::copy(&mut fs::File::open(file)?, &mut digest)?;
        Ok((size, data_encoding::HEXLOWER.encode(&digest.finalize())))
    };
    tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
}

/// Returns a dump: the file itself, or the newest one of a folder.
fn newest(path: &Path) -> Result<PathBuf, Failure> {
    if path.is_file() {
        return Ok(path.to_owned());
    }
    if !path.is_dir() {
        return Err(Failure::Usage(format!("{}: there is no such file", path.display())));
    }
    let mut newest = None;
    for entry in fs::read_dir(path).map_err(|error| unreadable(path, &error))? {
        let found = entry.and_then(|entry| Ok((entry.metadata()?.modified()?, entry.path())));
        let found = found.map_err(|error| unreadable(path, &error))?;
        if found.1.extension().is_some_and(|extension| extension == "dump") {
            newest = newest.max(Some(found));
        }
    }
    let (_, file) =
        newest.ok_or_else(|| Failure::Usage(format!("{}: there is no file *.dump in this folder", path.display())))?;
    Ok(file)
}

fn unreadable(file: &Path, error: &io::Error) -> Failure {
    Failure::Usage(format!("{}: {error}", file.display()))
}

/// Runs a client program of PostgreSQL on a database, whose messages appear as they come. The password is in its environment,
/// which other users cannot read.
async fn postgres_program(name: &str, target: &tokio_postgres::Config, arguments: &[OsString]) -> Result<(), Failure> {
    let mut program = Program::new(name);
    program
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true);
    let hosts = target.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(folder) => folder.display().to_string(),
    });
    let ports = target.get_ports().iter().map(ToString::to_string);
    let password = target
        .get_password()
        .map(|password| String::from_utf8_lossy(password).into_owned());
    for (variable, value) in [
        ("PGHOST", Some(hosts.collect::<Vec<_>>().join(","))),
        ("PGPORT", Some(ports.collect::<Vec<_>>().join(","))),
        ("PGUSER", target.get_user().map(ToOwned::to_owned)),
        ("PGDATABASE", target.get_dbname().map(ToOwned::to_owned)),
        ("PGPASSWORD", password),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            program.env(variable, value);
        }
    }
    if target.get_ssl_mode() == SslMode::Require && std::env::var_os("PGSSLMODE").is_none() {
        program.env("PGSSLMODE", "verify-full");
    }
    let status = program.status().await.map_err(|error| {
        Failure::Unhealthy(format!(
            "failed to run {name}: {error}; install PostgreSQL's client programs (postgresql-client)"
        ))
    })?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Unhealthy(format!("{name} failed; its message is above"))),
    }
}
