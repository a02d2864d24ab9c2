//! The sandbox: realistic data from a fixed seed, partners with their keys, and `sandbox.json`, which lists them.
//!
//! [`seed`] is called at every start and adds missing data. It inserts all rows in one transaction and checks each picture
//! separately. PDFs are rendered in the background once the sandbox serves. [`refresh`] reopens the open reports.

pub mod args;
pub mod catalog;
pub mod data;
pub mod findings;
pub mod fixtures;
pub mod generate;
mod insert;
pub mod inspectors;
pub mod manifest;
mod partners;
mod progress;
pub mod random;
mod run;
pub mod scenarios;
mod stored;
mod welcome;

pub use partners::Reset;
pub use run::{reset, run};

use std::sync::LazyLock;
use std::time::Duration;

use chrono::Utc;
use deadpool_postgres::Pool;
use partner_api::storage::{Storage, StorageError};
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::secrets::{MasterKey, MasterKeyError};
use thiserror::Error;
use uuid::Uuid;

use data::{Dataset, Opened};
use manifest::Manifest;
use progress::Step;
use stored::Pictures;

/// The data of the sandbox, generated on first use.
static DATA: LazyLock<Dataset> = LazyLock::new(|| generate::dataset(generate::SEED));

/// The advisory lock that is held while rows are inserted, so that two sandboxes on one database do not insert them twice.
const SEED_LOCK: i64 = 0x5341_4e44_424f_5831;
/// Timeout of a database operation. It is long because the disk may be slow and no client waits.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout for inserting all rows.
const SEEDING_TIMEOUT: Duration = Duration::from_secs(600);
/// How often [`keep_open`] moves the open reports.
const REFRESH_EVERY: Duration = Duration::from_secs(10 * 60);

partner_api_store::statement! {
    /// Returns the IDs of all organizations.
    ORGANIZATIONS = "SELECT id FROM organizations";
    /// Waits for another sandbox that inserts rows.
    LOCK = "SELECT pg_advisory_xact_lock($1)";
    /// Updates the planner's statistics.
    ANALYZE = "ANALYZE";
    /// Resets the age of reports that are open, or were open until recently, relative to now.
    REOPEN = "UPDATE inspections SET created_at = now() - make_interval(secs => o.age) \
              FROM unnest($1::uuid[], $2::bigint[]) AS o (id, age) \
              WHERE inspections.id = o.id AND status IN ('DRAFT', 'REVISION_REQUESTED')";
    /// Resets the age of the measurements that are pending for reports of [`REOPEN`], so that they do not become stale.
    RENEW = "UPDATE measurements SET measured_at = now() - make_interval(secs => o.age), \
                    received_at = now() - make_interval(secs => o.age) \
             FROM unnest($1::uuid[], $2::bigint[]) AS o (id, age) \
             WHERE measurements.id = o.id AND status = 'PENDING'";
}

/// The reason why the sandbox could not be created.
#[derive(Debug, Error)]
pub enum SandboxError {
    /// A database operation failed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// The database contains other data.
    #[error("the database must be empty or contain this sandbox's data; use an empty one, or remove the data folder")]
    OtherData,
    /// The sandbox has no partner with this name.
    #[error("the sandbox has no partner `{0}`; its partners are alpha, beta, gamma and delta")]
    NoPartner(String),
    /// A picture could not be stored.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A secret could not be encrypted or decrypted.
    #[error(transparent)]
    MasterKey(#[from] MasterKeyError),
    /// A picture could not be drawn.
    #[error("failed to draw a picture: {0}")]
    Picture(#[from] sandbox_pictures::PictureError),
    /// A thread that drew pictures panicked or was canceled.
    #[error("drawing was interrupted: {0}")]
    Interrupted(#[from] tokio::task::JoinError),
    /// `sandbox.json` could not be written or read.
    #[error("{path}: {source}")]
    Manifest {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
}

/// The result of [`seed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Whether the rows were inserted; false if they existed.
    pub is_new: bool,
    /// The number of reports in the data set.
    pub inspections: usize,
    /// The number of pictures that were drawn.
    pub pictures: usize,
}

impl From<tokio_postgres::Error> for SandboxError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Db(error.into())
    }
}

/// Creates the missing data, except the PDFs, in a migrated database and its storage, and reopens the open reports.
///
/// # Errors
/// [`SandboxError::OtherData`] if the database contains organizations that are not the sandbox's, or the error of the operation
/// that failed. The next call continues from there.
pub async fn seed(
    pool: &Pool,
    storage: &Storage,
    master_key: &MasterKey,
    key_prefix: &str,
) -> Result<Summary, SandboxError> {
    let pictures = Pictures::draw_missing(storage).await?;
    fill(pool, &pictures, master_key, key_prefix).await
}

/// Does the part of [`seed`] that concerns the database.
async fn fill(
    pool: &Pool,
    pictures: &Pictures,
    master_key: &MasterKey,
    key_prefix: &str,
) -> Result<Summary, SandboxError> {
    let has_rows = has_rows(pool, &DATA).await?;
    if !has_rows {
        insert_rows(pool, &DATA, &pictures.sizes, master_key, key_prefix).await?;
    }
    let connection = Connection::take(pool, DATABASE_TIMEOUT).await?;
    inspectors::ensure(&connection, &DATA, master_key).await?;
    drop(connection);
    reopen(pool, &DATA).await?;
    Ok(Summary {
        is_new: !has_rows,
        inspections: DATA.inspections.len(),
        pictures: pictures.drawn,
    })
}

/// Resets the age of reports that are open, or were open until recently, relative to now. This happens at each start and
/// periodically in [`keep_open`].
///
/// # Errors
/// The database operation failed.
pub async fn refresh(pool: &Pool) -> Result<(), DbError> {
    reopen(pool, &DATA).await
}

/// Calls [`refresh`] periodically and never returns. It logs failures.
pub async fn keep_open(pool: Pool) {
    loop {
        tokio::time::sleep(REFRESH_EVERY).await;
        if let Err(error) = refresh(&pool).await {
            tracing::warn!(%error, "failed to keep the sandbox's open reports open");
        }
    }
}

/// Returns the content of `sandbox.json` for this database, served at `base_url`.
///
/// # Errors
/// The database operation failed, or the keys were encrypted with another master key.
pub async fn manifest(pool: &Pool, master_key: &MasterKey, base_url: &str) -> Result<Manifest, SandboxError> {
    let connection = Connection::take(pool, DATABASE_TIMEOUT).await?;
    let partners = partners::load(&connection, master_key).await?;
    Ok(Manifest::new(
        &DATA,
        base_url,
        partners,
        inspectors::all(&DATA, master_key),
    ))
}

/// Gives a partner the state of a new sandbox, also while the sandbox serves: its newest key, its grants, a full quota, and
/// only the measurements of the data set. Values that it wrote are removed from open reports.
///
/// # Errors
/// [`SandboxError::NoPartner`], or the database operation failed.
pub async fn reset_partner(pool: &Pool, name: &str) -> Result<Reset, SandboxError> {
    let client = Connection::take(pool, DATABASE_TIMEOUT).await?;
    let transaction = client.transaction();
    let reset = partners::reset(&transaction, &DATA, name).await?;
    transaction.commit().await?;
    Ok(reset)
}

async fn has_rows(pool: &Pool, data: &Dataset) -> Result<bool, SandboxError> {
    let rows = Connection::take(pool, DATABASE_TIMEOUT)
        .await?
        .query(ORGANIZATIONS, &[])
        .await?;
    let found: Vec<Uuid> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let ours = |id: &Uuid| data.organizations.iter().any(|organization| organization.id == *id);
    match found.iter().filter(|id| ours(id)).count() {
        0 if found.is_empty() => Ok(false),
        count if count == data.organizations.len() => Ok(true),
        _ => Err(SandboxError::OtherData),
    }
}

async fn insert_rows(
    pool: &Pool,
    data: &Dataset,
    sizes: &[i64],
    master_key: &MasterKey,
    key_prefix: &str,
) -> Result<(), SandboxError> {
    let step = Step::begin("Inserting rows", 3);
    let client = Connection::take(pool, SEEDING_TIMEOUT).await?;
    // The statement timeout of requests is too short for a slow disk.
    let transaction = client
        .transaction()
        .statement_timeout(SEEDING_TIMEOUT / 5)
        .lock_timeout(SEEDING_TIMEOUT / 5);
    let lock = transaction.prepare(LOCK).await?;
    let organizations = transaction.prepare(ORGANIZATIONS).await?;
    transaction.execute(&lock, &[&SEED_LOCK]).await?;
    if !transaction.query(&organizations, &[]).await?.is_empty() {
        // Another sandbox has inserted them.
        transaction.rollback().await?;
        step.finish();
        return Ok(());
    }
    let now = Utc::now();
    insert::tenants_and_reports(&transaction, data, now).await?;
    step.advance();
    let (sender, key_id) = partners::insert(&transaction, data, master_key, key_prefix).await?;
    insert::measurements(&transaction, data, sender, &key_id, now).await?;
    insert::forms_and_photos(&transaction, data, sizes, now).await?;
    step.advance();
    transaction.commit().await?;
    client.execute(ANALYZE, &[]).await?;
    step.advance();
    step.finish();
    Ok(())
}

async fn reopen(pool: &Pool, data: &Dataset) -> Result<(), DbError> {
    let mut ids = Vec::new();
    let mut seconds = Vec::new();
    for inspection in &data.inspections {
        if let Opened::Before(age) = inspection.opened {
            ids.push(inspection.id);
            seconds.push(age.num_seconds());
        }
    }
    let client = Connection::take(pool, DATABASE_TIMEOUT).await?;
    client.execute(REOPEN, &[&ids, &seconds]).await?;
    let recent = data.measurements.iter().filter(|measurement| measurement.is_recent);
    let (ids, seconds): (Vec<Uuid>, Vec<i64>) = recent
        .map(|measurement| {
            (
                measurement.id,
                (generate::base() - measurement.received_at).num_seconds(),
            )
        })
        .unzip();
    client.execute(RENEW, &[&ids, &seconds]).await?;
    Ok(())
}
