//! The worker, which claims reports, renders their PDFs, and stores them.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use deadpool_postgres::Pool;
use futures::TryStreamExt as _;
use partner_api_domain::pdf_key;
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::orphaned_objects;
use partner_api_store::renderings::{self, Claim, Published, StoredPdf};
use report_pdf::{RenderError, Renderer, Report};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::{MIME_TYPE, printed};
use crate::storage::{Storage, StorageError};

/// The lease of a first claim, by the database's clock.
const LEASE: Duration = Duration::from_secs(120);
/// The timeout of an attempt, by this process's clock. It is shorter than the lease.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(90);
/// The timeout of one use of the database.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(6);
/// The timeout of a step of the sweep.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout of the storage for one object.
const STORAGE_TIMEOUT: Duration = Duration::from_secs(20);
/// The size of the largest photo that is printed, in bytes. A placeholder replaces larger ones.
const PHOTO_MAX: u64 = 16 << 20;
/// The backoff after a report's first failure; it doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_secs(30);
/// The longest backoff of a report. Attempts never end, because a new version of the renderer may succeed.
const MAX_BACKOFF: Duration = Duration::from_secs(3600);
/// The pause after an attempt that failed because the database or the storage was unavailable.
const OUTAGE_PAUSE: Duration = Duration::from_secs(10);
/// The pause after an attempt during which the report was changed.
const CHANGED_PAUSE: Duration = Duration::from_secs(1);
/// The interval at which [`Worker::publish`] polls for a report that another renderer has claimed.
const PUBLISH_POLL: Duration = Duration::from_millis(200);

/// An error while rendering a report. No message contains data of the report.
#[derive(Debug, Error)]
pub enum PublishError {
    /// The database reported an error, is unavailable, or holds a document that cannot be parsed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// A photo could not be read, or the PDF could not be stored.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The storage did not respond in time.
    #[error("the object storage did not respond in time")]
    StorageTimedOut,
    /// The report could not be rendered.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// The rendering thread panicked, or failed to start.
    #[error("the rendering thread panicked or failed to start")]
    ThreadFailed,
    /// The attempt took too long.
    #[error("the report was not rendered in time")]
    TimedOut,
    /// The report has no PDF: it is not published, or has no public slug.
    #[error("the report is not published, or has no public slug")]
    NotPublished,
}

impl PublishError {
    /// Returns whether other reports would fail as well.
    fn is_outage(&self) -> bool {
        match self {
            Self::Db(error) => error.is_unavailable(),
            Self::Storage(error) => matches!(error, StorageError::Store(_)),
            Self::StorageTimedOut => true,
            Self::Render(_) | Self::ThreadFailed | Self::TimedOut | Self::NotPublished => false,
        }
    }
}

/// The outcome of [`Worker::render_next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenderOutcome {
    /// No report is due.
    Idle,
    /// The report has a new PDF.
    Rendered {
        /// The report.
        report: Uuid,
        /// Whether a request needed it.
        is_requested: bool,
    },
    /// There was nothing to do: the report's PDF is current, or it no longer has one.
    UpToDate(Uuid),
    /// The report changed during rendering, or another worker claimed it.
    Superseded(Uuid),
    /// The report could not be rendered and is retried later.
    Failed(Uuid),
    /// The database or the storage was unavailable.
    Outage(Uuid),
    /// The worker was stopped and returned the report.
    Stopped(Uuid),
}

/// Renders reports. Clones share the fonts and the limit of parallel renderings.
#[derive(Clone)]
pub struct Worker {
    pool: Pool,
    storage: Storage,
    // Created for the first report, because a replica that never renders needs no fonts.
    renderer: Arc<OnceLock<Renderer>>,
    slots: Arc<Semaphore>,
}

impl Worker {
    /// Creates a worker with up to `renderings` parallel renderings.
    #[must_use]
    pub fn new(pool: Pool, storage: Storage, renderings: usize) -> Self {
        Self {
            pool,
            storage,
            renderer: Arc::default(),
            slots: Arc::new(Semaphore::new(renderings)),
        }
    }

    /// Renders the next report of the queue, if one is due.
    ///
    /// # Errors
    /// If the database is unavailable. The report of a claim that was not finished is due again when its lease expires.
    pub async fn render_next(&self) -> Result<RenderOutcome, DbError> {
        self.render_next_until(std::future::pending()).await
    }

    /// Like [`render_next`](Self::render_next), but returns an unfinished report to the queue when `stop` completes.
    ///
    /// # Errors
    /// As for [`render_next`](Self::render_next).
    pub async fn render_next_until(&self, stop: impl Future<Output = ()>) -> Result<RenderOutcome, DbError> {
        // Acquired before the claim, so that a rendering that never ends uses up a slot but no attempts of other reports.
        let Ok(slot) = self.slots.clone().acquire_owned().await else {
            return Ok(RenderOutcome::Idle);
        };
        let Some(claim) = renderings::claim(&self.database().await?, LEASE).await? else {
            return Ok(RenderOutcome::Idle);
        };
        let report = claim.report();
        let attempt = async {
            match timeout(ATTEMPT_TIMEOUT, self.render(&claim, slot)).await {
                Ok(done) => done,
                Err(_) => Err(PublishError::TimedOut),
            }
        };
        let outcome = tokio::select! {
            outcome = attempt => outcome,
            () = stop => {
                let attempts = claim.attempt().saturating_sub(1);
                self.postpone(&claim, Duration::ZERO, attempts).await?;
                return Ok(RenderOutcome::Stopped(report));
            }
        };
        let attempt = claim.attempt();
        match outcome {
            Ok(outcome) => Ok(outcome),
            Err(error) if error.is_outage() => {
                tracing::warn!(%report, attempt, %error, "failed to render a report because the database or the storage is unavailable");
                self.postpone(&claim, OUTAGE_PAUSE, attempt).await?;
                Ok(RenderOutcome::Outage(report))
            }
            Err(error) => {
                let backoff = MAX_BACKOFF.min(FIRST_BACKOFF * 2_u32.pow((attempt - 1).min(16)));
                tracing::error!(%report, attempt, ?backoff, %error, "failed to render a report");
                self.postpone(&claim, backoff, attempt).await?;
                Ok(RenderOutcome::Failed(report))
            }
        }
    }

    /// Renders and stores the PDF of one report at once, ahead of the queue, and returns it. If another renderer has claimed the
    /// report, waits for that one. A current PDF is not rendered again.
    ///
    /// Call it after the report's publication is committed. The report is in the queue in any case, so if this fails, it is
    /// rendered in the background.
    ///
    /// # Errors
    /// If the report has no PDF, or was not rendered in 90 s.
    pub async fn publish(&self, report: Uuid) -> Result<StoredPdf, PublishError> {
        let work = async {
            loop {
                match renderings::published(&self.database().await?, report).await? {
                    Published::Now(pdf) => return Ok(pdf),
                    Published::Never => return Err(PublishError::NotPublished),
                    Published::NotYet => {}
                }
                let Ok(slot) = self.slots.clone().acquire_owned().await else {
                    return Err(PublishError::ThreadFailed);
                };
                let claim = renderings::claim_one(&self.database().await?, report, LEASE).await?;
                match claim {
                    Some(claim) => match self.render(&claim, slot).await {
                        Ok(RenderOutcome::Superseded(_)) => sleep(PUBLISH_POLL).await,
                        Ok(_) => {}
                        Err(error) => {
                            // If this fails, the report is due again when its lease expires.
                            let _ = self.postpone(&claim, OUTAGE_PAUSE, claim.attempt()).await;
                            return Err(error);
                        }
                    },
                    None => {
                        drop(slot);
                        sleep(PUBLISH_POLL).await;
                    }
                }
            }
        };
        timeout(ATTEMPT_TIMEOUT, work)
            .await
            .unwrap_or(Err(PublishError::TimedOut))
    }

    /// Runs the next step of the sweep over all reports, if it is due and no other replica runs it. Queues the reports whose PDF is
    /// missing or stale, and returns their number.
    ///
    /// # Errors
    /// If the database does not respond. The step is then repeated.
    pub async fn sweep(&self) -> Result<usize, DbError> {
        renderings::sweep(&Connection::take(&self.pool, SWEEP_TIMEOUT).await?).await
    }

    /// Deletes the objects that no report references and whose grace period is over. Failed deletions are retried by the next call
    /// on any replica.
    ///
    /// # Errors
    /// If the database does not respond.
    pub async fn delete_orphaned(&self) -> Result<(), DbError> {
        let orphaned = orphaned_objects::claim(&self.database().await?).await?;
        for key in orphaned {
            match within(STORAGE_TIMEOUT, self.storage.delete(&key)).await {
                Ok(()) => orphaned_objects::deleted(&self.database().await?, &key).await?,
                Err(error) => tracing::warn!(%error, "failed to delete an orphaned object"),
            }
        }
        Ok(())
    }

    async fn database(&self) -> Result<Connection, DbError> {
        Connection::take(&self.pool, DATABASE_TIMEOUT).await
    }

    async fn postpone(&self, claim: &Claim, pause: Duration, attempts: u32) -> Result<bool, DbError> {
        renderings::postpone(&self.database().await?, claim, pause, attempts).await
    }

    async fn render(&self, claim: &Claim, slot: OwnedSemaphorePermit) -> Result<RenderOutcome, PublishError> {
        let report = claim.report();
        let Some(document) = renderings::document(&self.database().await?, claim).await? else {
            renderings::done(&self.database().await?, claim).await?;
            return Ok(RenderOutcome::UpToDate(report));
        };
        if let Some(key) = &document.current_key
            && within(STORAGE_TIMEOUT, self.storage.exists(key)).await?
        {
            renderings::done(&self.database().await?, claim).await?;
            return Ok(RenderOutcome::UpToDate(report));
        }
        let (mut printed, photos) = printed::read(&document.json)?;
        for (photo, key) in printed.photos.iter_mut().zip(&photos) {
            photo.data = within(STORAGE_TIMEOUT, self.photo(key)).await?;
        }
        let pdf = self.render_pdf(printed, slot).await?;
        let stored = StoredPdf {
            object_key: pdf_key::new_key(report, &document.fingerprint),
            sha256: Sha256::digest(&pdf).to_vec(),
            size_bytes: i64::try_from(pdf.len()).unwrap_or(i64::MAX),
        };
        let key = &stored.object_key;
        renderings::record(&self.database().await?, claim, key).await?;
        within(STORAGE_TIMEOUT, self.storage.put(key, Bytes::from(pdf), MIME_TYPE)).await?;
        if renderings::switch(&self.database().await?, claim, &stored, &document.fingerprint).await? {
            let is_requested = claim.is_requested();
            return Ok(RenderOutcome::Rendered { report, is_requested });
        }
        orphaned_objects::discard(&self.database().await?, key).await?;
        self.postpone(claim, CHANGED_PAUSE, 0).await?;
        Ok(RenderOutcome::Superseded(report))
    }

    /// Reads a photo. Returns no bytes if it is missing or too large; a placeholder replaces it.
    async fn photo(&self, key: &str) -> Result<Vec<u8>, StorageError> {
        let object = match self.storage.stream(key).await {
            Ok(object) if object.content_length <= PHOTO_MAX => object,
            Ok(_) | Err(StorageError::NotFound(_) | StorageError::InvalidKey) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let parts: Vec<Bytes> = object.stream.try_collect().await?;
        Ok(parts.concat())
    }

    /// Renders on a dedicated thread, which a shutdown does not wait for. The thread keeps its `slot` until it ends, even after a
    /// timeout.
    async fn render_pdf(&self, report: Report, slot: OwnedSemaphorePermit) -> Result<Vec<u8>, PublishError> {
        let renderer = self.renderer.clone();
        let (sender, pdf) = oneshot::channel();
        let thread = thread::Builder::new().name("render".to_owned()).spawn(move || {
            let _slot = slot;
            // After a timeout or a stop, the receiver is dropped.
            let _ = sender.send(renderer.get_or_init(Renderer::new).render(&report));
        });
        thread.map_err(|_| PublishError::ThreadFailed)?;
        Ok(pdf.await.map_err(|_| PublishError::ThreadFailed)??)
    }
}

async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, StorageError>>) -> Result<T, PublishError> {
    match timeout(limit, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(PublishError::StorageTimedOut),
    }
}
