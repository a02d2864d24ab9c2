//! The sandbox: believable data from a fixed seed, partners with their keys, and `sandbox.json`, which names them.
//!
//! [`seed`] makes what is missing and can be called at every start: the rows come in one transaction, so they are all there
//! or none is; pictures are looked for one by one. PDFs are rendered in the
//! background once the sandbox serves. [`refresh`] opens again the reports that were left open.

pub mod args;
pub mod catalogue;
pub mod data;
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

pub use run::run;

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

/// What the sandbox serves, made when it is first wanted.
static DATA: LazyLock<Dataset> = LazyLock::new(|| generate::dataset(generate::SEED));

/// Held while rows are made, so that of two sandboxes on one database the second finds the first one's.
const SEED_LOCK: i64 = 0x5341_4e44_424f_5831;
/// How long one visit to the database may take: the disk may be slow, and nobody waits for an answer.
const DATABASE: Duration = Duration::from_secs(60);
/// How long making all rows may take.
const SEEDING: Duration = Duration::from_secs(600);
/// How often [`keep_open`] moves the open reports.
const REFRESH_EVERY: Duration = Duration::from_secs(10 * 60);

partner_api_store::statement! {
    /// Which organisations there are.
    ORGANIZATIONS = "SELECT id FROM organizations";
    /// Waits for another sandbox that makes rows.
    LOCK = "SELECT pg_advisory_xact_lock($1)";
    /// Tells the planner of the rows.
    ANALYZE = "ANALYZE";
    /// Moves open reports, and those that just are no longer, to their ages before now.
    REOPEN = "UPDATE inspections SET created_at = now() - make_interval(secs => o.age) \
              FROM unnest($1::uuid[], $2::bigint[]) AS o (id, age) \
              WHERE inspections.id = o.id AND status IN ('DRAFT', 'REVISION_REQUESTED')";
}

/// Why there is no sandbox.
#[derive(Debug, Error)]
pub enum SandboxError {
    /// The database cannot be reached or refuses.
    #[error(transparent)]
    Db(#[from] DbError),
    /// The database holds something else.
    #[error("the database holds other data than this sandbox's; give it an empty one, or remove the data folder")]
    OtherData,
    /// Pictures cannot be stored.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A secret cannot be sealed or opened.
    #[error(transparent)]
    MasterKey(#[from] MasterKeyError),
    /// A picture cannot be drawn.
    #[error("a picture cannot be drawn: {0}")]
    Picture(#[from] sandbox_pictures::PictureError),
    /// A thread that drew pictures was lost.
    #[error("drawing was interrupted: {0}")]
    Interrupted(#[from] tokio::task::JoinError),
    /// `sandbox.json` cannot be written or read.
    #[error("{path}: {source}")]
    Manifest {
        /// The file.
        path: String,
        /// What is wrong with it.
        source: std::io::Error,
    },
}

/// What [`seed`] found and made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Whether the rows were made now; false when they were there.
    pub is_new: bool,
    /// Reports in the data set.
    pub inspections: usize,
    /// Pictures drawn now.
    pub pictures: usize,
}

impl From<tokio_postgres::Error> for SandboxError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Db(error.into())
    }
}

/// Makes all that is missing of the sandbox's data, but the PDFs, in a migrated database and its storage; opens the open
/// reports again.
///
/// # Errors
/// [`SandboxError::OtherData`] when the database holds organisations that are not the sandbox's; else what failed. What was
/// made until then is found by the next call.
pub async fn seed(
    pool: &Pool,
    storage: &Storage,
    master_key: &MasterKey,
    key_prefix: &str,
) -> Result<Summary, SandboxError> {
    let pictures = Pictures::draw_missing(storage).await?;
    fill(pool, &pictures, master_key, key_prefix).await
}

/// The part of [`seed`] that is the database's.
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
    let connection = Connection::take(pool, DATABASE).await?;
    inspectors::ensure(&connection, &DATA, master_key).await?;
    drop(connection);
    reopen(pool, &DATA).await?;
    Ok(Summary {
        is_new: !has_rows,
        inspections: DATA.inspections.len(),
        pictures: pictures.drawn,
    })
}

/// Moves the open reports, and those that just are no longer, to their ages before now. Each start does it, and so does
/// [`keep_open`] while the sandbox runs.
///
/// # Errors
/// When the database cannot be reached or refuses.
pub async fn refresh(pool: &Pool) -> Result<(), DbError> {
    reopen(pool, &DATA).await
}

/// Calls [`refresh`] from time to time, for as long as it is polled. A failure waits for the next time.
pub async fn keep_open(pool: Pool) {
    loop {
        tokio::time::sleep(REFRESH_EVERY).await;
        if let Err(error) = refresh(&pool).await {
            tracing::warn!(%error, "the sandbox's open reports could not be kept open");
        }
    }
}

/// What `sandbox.json` says of this database, served at `base_url`.
///
/// # Errors
/// When the database cannot be reached, or its keys were sealed under another master key.
pub async fn manifest(pool: &Pool, master_key: &MasterKey, base_url: &str) -> Result<Manifest, SandboxError> {
    let connection = Connection::take(pool, DATABASE).await?;
    let partners = partners::load(&connection, master_key).await?;
    Ok(Manifest::new(
        &DATA,
        base_url,
        partners,
        inspectors::all(&DATA, master_key),
    ))
}

async fn has_rows(pool: &Pool, data: &Dataset) -> Result<bool, SandboxError> {
    let rows = Connection::take(pool, DATABASE)
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
    let client = Connection::take(pool, SEEDING).await?;
    // A slow disk may take longer than a request may.
    let transaction = client
        .transaction()
        .statement_timeout(SEEDING / 5)
        .lock_timeout(SEEDING / 5);
    let lock = transaction.prepare(LOCK).await?;
    let organizations = transaction.prepare(ORGANIZATIONS).await?;
    transaction.execute(&lock, &[&SEED_LOCK]).await?;
    if !transaction.query(&organizations, &[]).await?.is_empty() {
        // Another sandbox was faster.
        transaction.rollback().await?;
        step.finish();
        return Ok(());
    }
    let now = Utc::now();
    insert::tenants_and_reports(&transaction, data, now).await?;
    step.advance();
    let (sender, key_id) = partners::insert(&transaction, data, master_key, key_prefix).await?;
    insert::measurements(&transaction, data, sender, &key_id).await?;
    insert::forms_and_photos(&transaction, data, sizes, now).await?;
    step.advance();
    transaction.commit().await?;
    // The planner knows nothing of rows that came a moment ago.
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
    Connection::take(pool, DATABASE)
        .await?
        .execute(REOPEN, &[&ids, &seconds])
        .await?;
    Ok(())
}
