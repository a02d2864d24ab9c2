//! `backup verify`: restores a dump into a private cluster, and checks everything that it needs to replace the original.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _};
use partner_api::config::{Database, Hidden};
use partner_api::startup::CommandDatabase;
use partner_api::storage::{Storage, StorageError};
use partner_api_store::connection::Connection;
use partner_api_store::{deployment, migrate, pool, schema};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::files::{self, Object};
use super::{RESTORE, newest, postgres_program, unreadable};
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
}

/// The time limit for reading a restored database, whose measurements are all read.
const TIMEOUT: Duration = Duration::from_secs(6 * 3600);

/// The number of defects that an error lists.
const SHOWN: usize = 10;

/// The options of `backup verify`.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// The dump, in pg_dump's custom format, or a folder, of which the newest dump is verified
    #[arg(required_unless_present = "restored", conflicts_with = "restored")]
    file: Option<PathBuf>,
    /// A database that was restored by other means; nothing is written to it
    #[arg(long, value_name = "URL")]
    restored: Option<Hidden>,
    /// A folder with a copy of the stored files [default: the files of the service]
    #[arg(long, value_name = "FOLDER")]
    files: Option<PathBuf>,
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

pub(super) async fn verify(session: &Session, args: &VerifyArgs) -> Result<Output, Failure> {
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
    let file = args.file.as_deref().map(newest).transpose()?;
    let restored = CommandDatabase::open_unchecked(&scratch).await?;
    let outcome = async {
        if let Some(file) = &file {
            let mut arguments: Vec<_> = RESTORE.map(OsString::from).into();
            let database = restored.target.get_dbname().unwrap_or_default();
            arguments.extend(["--dbname".into(), database.into(), file.into()]);
            postgres_program("pg_restore", &restored.target, &arguments).await?;
        }
        check(session, &restored, args).await
    }
    .await;
    restored.close().await;
    let verified = outcome?;
    let named = match &file {
        Some(file) => file.display().to_string(),
        None => "the restored database".to_owned(),
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
async fn check(session: &Session, restored: &CommandDatabase, args: &VerifyArgs) -> Result<Verified, Failure> {
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
    let storage = files::storage(&session.config, args.files.as_deref())?;
    let client = pool::dedicated(&restored.target, "partner-api backup").await?;
    let objects = files::referenced(&client).await?;
    let mut checked = pin!(
        objects
            .map(|object| async { check_object(&storage, object?).await })
            .buffer_unordered(files::PARALLEL)
    );
    let mut count = 0;
    while let Some(defect) = checked.try_next().await? {
        count += 1;
        defects.extend(defect);
    }
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
