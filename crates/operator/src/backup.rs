//! Backups: `create` dumps the database, and `verify` restores a dump into a private cluster and checks it with the stored files.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use partner_api::config::{Config, Database, Hidden, StorageChoice};
use partner_api::startup::CommandDatabase;
use partner_api::storage::{Storage, StorageError};
use partner_api_store::connection::Connection;
use partner_api_store::secrets::purpose;
use partner_api_store::{deployment, migrate, schema};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::process::Command as Program;
use tokio_postgres::config::{Host, SslMode};
use uuid::Uuid;

use crate::doctor;
use crate::failure::Failure;
use crate::output::Output;
use crate::session::{Changed, Session};
use crate::when;

partner_api_store::statement! {
    /// The counts of a restored database, the packages whose bytes differ from their SHA-256, and the time of its newest package.
    CONTENT = "\
SELECT (SELECT count(*) FROM inspections) AS reports, n.id AS newest_id, n.received_at AS newest, m.*
FROM (SELECT count(*) AS measurements, count(*) FILTER (WHERE sha256(raw) <> raw_sha256) AS altered FROM measurements) m
LEFT JOIN (SELECT id, received_at FROM measurements ORDER BY id DESC LIMIT 1) n ON true";
    /// The measurements that a restore would lose. IDs are UUIDv7, in the order of arrival.
    LATER = "SELECT count(*) AS later FROM measurements WHERE $1::uuid IS NULL OR id > $1::uuid";
    /// The objects that reports show, with what is known of their bytes.
    OBJECTS = "\
SELECT p.object_key, p.size_bytes, NULL::bytea AS sha256 FROM photos p
UNION ALL
SELECT p.thumb_object_key, NULL, NULL FROM photos p WHERE p.thumb_object_key IS NOT NULL
UNION ALL
SELECT d.object_key, d.size_bytes, d.sha256
FROM inspections i JOIN published_pdfs d ON d.object_key = i.pdf_object_key AND d.organization_id = i.organization_id";
}

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
A dump contains every measurement that was acknowledged before it began. Connect as the owner of the schema, who may read all tables.
Copy the stored files after the dump: objects that a report shows are never changed, and replaced ones are kept for an hour.

Examples:
  partner-api backup create partner.dump
  partner-api backup verify partner.dump                                 with the files of the service
  partner-api backup verify partner.dump --files /srv/backup/files       with a copy of the files
  partner-api backup verify --restored postgresql://localhost:5433/partner    a database that pgBackRest has restored";

/// The time limit for reading a restored database, whose measurements are all read.
const TIMEOUT: Duration = Duration::from_secs(6 * 3600);

/// The number of objects that are read at a time.
const PARALLEL: usize = 8;

/// The number of defects that an error lists.
const SHOWN: usize = 10;

/// Commands on backups.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Dump the database into a file, with pg_dump
    Create(CreateArgs),
    /// Restore a dump into a private cluster, check it with the stored files, and record the result in the audit log
    Verify(VerifyArgs),
}

/// The options of `backup create`.
#[derive(Args, Debug)]
pub struct CreateArgs {
    /// The new file
    file: PathBuf,
}

/// The options of `backup verify`.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// The dump, in pg_dump's custom format
    #[arg(required_unless_present = "restored", conflicts_with = "restored")]
    file: Option<PathBuf>,
    /// A database that was restored by other means; nothing is written to it
    #[arg(long, value_name = "URL")]
    restored: Option<Hidden>,
    /// A folder with a copy of the stored files [default: the files of the service]
    #[arg(long, value_name = "FOLDER")]
    files: Option<PathBuf>,
}

/// The result of `backup create`.
#[derive(Debug, Serialize)]
struct Created {
    file: String,
    size_bytes: u64,
    sha256: String,
}

/// The result of `backup verify`.
#[derive(Debug, Serialize)]
struct Verified {
    /// When its newest measurement was received.
    newest: Option<DateTime<Utc>>,
    reports: i64,
    measurements: i64,
    /// The measurements that were recorded since.
    lost_measurements: i64,
    secrets: usize,
    files: usize,
}

/// An object of a restored database.
struct Object {
    key: String,
    size: Option<i64>,
    sha256: Option<Vec<u8>>,
}

impl Command {
    pub(crate) async fn run(self, session: &Session) -> Result<Output, Failure> {
        match self {
            Self::Create(args) => create(session, &args.file).await,
            Self::Verify(args) => verify(session, &args).await,
        }
    }
}

async fn create(session: &Session, file: &Path) -> Result<Output, Failure> {
    if file.exists() {
        return Err(Failure::Usage(format!(
            "{}: exists already; choose another name",
            file.display()
        )));
    }
    let arguments = [OsString::from("--format=custom"), "--file".into(), file.into()];
    if let Err(failure) = postgres_program("pg_dump", session.target(), &arguments).await {
        // Half a dump must not be mistaken for a backup.
        let _ = fs::remove_file(file);
        return Err(failure);
    }
    let bytes = tokio::fs::read(file).await.map_err(|error| unreadable(file, &error))?;
    let created = Created {
        file: file.display().to_string(),
        size_bytes: bytes.len() as u64,
        sha256: hex(&Sha256::digest(&bytes)),
    };
    let facts = [
        ("file", created.file.clone()),
        ("size", format!("{} bytes", created.size_bytes)),
        ("SHA-256", created.sha256.clone()),
        ("next", format!("partner-api backup verify {}", created.file)),
    ];
    Ok(Output::facts(&created, &facts))
}

async fn verify(session: &Session, args: &VerifyArgs) -> Result<Output, Failure> {
    let mut scratch = session.config.clone();
    let folder = tempfile::tempdir().map_err(|error| Failure::Usage(format!("a temporary folder: {error}")))?;
    // As root, PostgreSQL runs as another user, who must be able to enter.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))
        .map_err(|error| unreadable(folder.path(), &error))?;
    scratch.options.data_dir = folder.path().to_owned();
    scratch.options.statement_timeout = TIMEOUT.into();
    scratch.database = match &args.restored {
        Some(url) => Database::Url(url.clone()),
        None => Database::Embedded {
            postgres_bin: session.config.options.postgres_bin.clone(),
        },
    };
    if let Some(file) = &args.file
        && !file.is_file()
    {
        return Err(Failure::Usage(format!("{}: there is no such file", file.display())));
    }
    let restored = CommandDatabase::open_unchecked(&scratch).await?;
    let outcome = async {
        if let Some(file) = &args.file {
            let arguments = [
                "--exit-on-error",
                "--single-transaction",
                "--no-owner",
                "--no-privileges",
            ];
            let mut arguments: Vec<_> = arguments.map(OsString::from).into();
            let database = restored.target.get_dbname().unwrap_or_default();
            arguments.extend(["--dbname".into(), database.into(), file.into()]);
            postgres_program("pg_restore", &restored.target, &arguments).await?;
        }
        check(session, &restored, args.files.as_deref()).await
    }
    .await;
    restored.close().await;
    let verified = outcome?;
    let named = match (&args.file, &args.restored) {
        (Some(file), _) => file.display().to_string(),
        _ => "the restored database".to_owned(),
    };
    session
        .change("backup verify", async |_| {
            let facts = vec![
                ("newest measurement", when::at_or_none(verified.newest)),
                ("reports", verified.reports.to_string()),
                ("measurements", verified.measurements.to_string()),
                (
                    "lost by a restore",
                    format!("{} measurements", verified.lost_measurements),
                ),
                ("secrets", format!("{}, all decrypted", verified.secrets)),
                ("files", format!("{}, all complete", verified.files)),
            ];
            let what = format!("The backup {named} can be restored.");
            let undo = "not needed: nothing was changed";
            Ok(Changed::of("backup", &named, what, verified).undo(undo).facts(facts))
        })
        .await
}

/// Checks everything that a restored database needs to replace the original.
async fn check(session: &Session, restored: &CommandDatabase, files: Option<&Path>) -> Result<Verified, Failure> {
    let mut defects = Vec::new();
    migrate::status(&restored.target)
        .await
        .and_then(migrate::ensure_current)
        .map_err(|error| Failure::Unhealthy(format!("the backup cannot be used: {error}")))?;
    let connection = Connection::take(&restored.pool, TIMEOUT).await?;
    let missing = schema::missing(&connection).await?;
    defects.extend(missing.iter().map(|object| format!("missing: {object}")));
    let (found, own) = (
        deployment::find(&connection).await?,
        deployment::find(&session.read().await?).await?,
    );
    if found.id != own.id {
        defects.push(format!("it is a backup of {found}, not of {own}"));
    }
    let secrets = doctor::secrets(&session.config, &session.master_key()?, &connection).await?;
    if let Some(first) = secrets.closed.first() {
        let count = secrets.closed.len();
        defects.push(format!(
            "{count} secrets cannot be decrypted with this master key, for example {first}'s"
        ));
    }
    let row = connection.query_one(CONTENT, &[]).await?;
    let altered: i64 = row.try_get("altered")?;
    if altered > 0 {
        defects.push(format!(
            "{altered} measurements differ from the SHA-256 of what was received"
        ));
    }
    let (newest_id, newest): (Option<Uuid>, _) = (row.try_get("newest_id")?, row.try_get("newest")?);
    let objects = objects(&connection).await?;
    let count = objects.len();
    let storage = storage(session, files)?;
    let checked: Vec<Option<String>> = stream::iter(objects)
        .map(|object| check_object(&storage, object))
        .buffer_unordered(PARALLEL)
        .try_collect()
        .await?;
    defects.extend(checked.into_iter().flatten());
    if !defects.is_empty() {
        let more = defects.len().saturating_sub(SHOWN);
        defects.truncate(SHOWN);
        if more > 0 {
            defects.push(format!("and {more} more"));
        }
        let shown = defects.join("\n  ");
        return Err(Failure::Unhealthy(format!("the backup is not complete:\n  {shown}")));
    }
    let later = session.read().await?.query_one(LATER, &[&newest_id]).await?;
    Ok(Verified {
        newest,
        reports: row.try_get("reports")?,
        measurements: row.try_get("measurements")?,
        lost_measurements: later.try_get("later")?,
        secrets: secrets.count,
        files: count,
    })
}

async fn objects(connection: &Connection) -> Result<Vec<Object>, Failure> {
    let rows = connection.query(OBJECTS, &[]).await?;
    let read = |row: &tokio_postgres::Row| {
        Ok(Object {
            key: row.try_get("object_key")?,
            size: row.try_get("size_bytes")?,
            sha256: row.try_get("sha256")?,
        })
    };
    rows.iter().map(read).collect()
}

fn storage(session: &Session, files: Option<&Path>) -> Result<Storage, Failure> {
    let mut config: Config = session.config.clone();
    if let Some(folder) = files {
        if !folder.is_dir() {
            return Err(Failure::Usage(format!("--files: {} is not a folder", folder.display())));
        }
        config.storage = StorageChoice::Folder(folder.to_owned());
    }
    let links = session.master_key()?.derive(purpose::LINKS);
    config
        .open_storage("http://127.0.0.1", links)
        .map_err(|error| Failure::Unhealthy(error.to_string()))
}

/// Returns what is wrong with an object, if anything.
async fn check_object(storage: &Storage, object: Object) -> Result<Option<String>, Failure> {
    let failed = |error: StorageError| Failure::Unhealthy(format!("{}: {error}", object.key));
    let found = match storage.stream(&object.key).await {
        Err(StorageError::NotFound(_)) => return Ok(Some(format!("the file {} is missing", object.key))),
        found => found.map_err(failed)?,
    };
    if object.size.is_some_and(|size| u64::try_from(size) != Ok(found.size)) {
        return Ok(Some(format!("the file {} has {} bytes", object.key, found.size)));
    }
    if let Some(expected) = &object.sha256 {
        let bytes = found.stream.try_fold(
            Sha256::new(),
            |digest, part| async move { Ok(digest.chain_update(&part)) },
        );
        if bytes.await.map_err(failed)?.finalize().as_slice() != expected.as_slice() {
            return Ok(Some(format!("the file {} has other content", object.key)));
        }
    }
    Ok(None)
}

fn unreadable(file: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("{}: {error}", file.display()))
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

/// Runs a client program of PostgreSQL on a database. The password is in its environment, which other users cannot read.
async fn postgres_program(name: &str, target: &tokio_postgres::Config, arguments: &[OsString]) -> Result<(), Failure> {
    let mut program = Program::new(name);
    program.args(arguments).stdin(Stdio::null());
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
    let ran = program.output().await.map_err(|error| {
        Failure::Unhealthy(format!(
            "failed to run {name}: {error}; install PostgreSQL's client programs (postgresql-client)"
        ))
    })?;
    if ran.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&ran.stderr);
    Err(Failure::Unhealthy(format!("{name} failed: {}", message.trim_end())))
}
