//! One report after another: claimed, drawn, uploaded, named.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use deadpool_postgres::Pool;
use futures::TryStreamExt as _;
use partner_api_domain::pdf_key;
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::renderings::{self, Claim, Published, StoredPdf};
use report_pdf::{RenderError, Renderer, Report};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::{MIME_TYPE, printed};
use crate::storage::{Storage, StorageError};

/// How long a first claim holds, by the database's clock.
const LEASE: Duration = Duration::from_secs(120);
/// How long an attempt may take, by ours: it has given up before its lease runs out.
const ATTEMPT: Duration = Duration::from_secs(90);
/// How long one visit to the database may take.
const DATABASE: Duration = Duration::from_secs(6);
/// How long a step of the sweep may take.
const STEP: Duration = Duration::from_secs(20);
/// How long the storage may take for one object.
const STORE: Duration = Duration::from_secs(20);
/// The largest photo that is printed, in bytes; of a larger one the page shows a placeholder.
const PHOTO_MAX: u64 = 16 << 20;
/// The pause after a report's first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause between two attempts at one report. None is given up: what it waits for may be a mended renderer.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// The pause of a report that failed because the database or the storage did.
const OUTAGE_PAUSE: Duration = Duration::from_secs(10);
/// The pause of a report that was changed, or was just being changed, while it was drawn.
const CHANGED_PAUSE: Duration = Duration::from_secs(1);
/// How often somebody who publishes looks whether another renderer, which has the report, is done.
const LOOK: Duration = Duration::from_millis(200);

/// Why a report was not rendered. No message holds anything of the report.
#[derive(Debug, Error)]
pub enum PublishError {
    /// The database cannot be reached or refuses, or holds what cannot be printed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// A photo cannot be read, or the PDF cannot be stored.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The storage did not answer in time.
    #[error("the object storage did not answer in time")]
    StorageTimedOut,
    /// The report cannot be drawn.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// The thread that drew it panicked, or could not be made.
    #[error("the drawing thread was lost")]
    Lost,
    /// All of it took too long.
    #[error("not rendered in time")]
    TimedOut,
    /// The report has no PDF: it is not published, or has no public slug.
    #[error("the report is not published, or has no public slug")]
    NotPublished,
}

impl PublishError {
    /// Whether the fault is not the report's: others would fail as well.
    fn is_outage(&self) -> bool {
        match self {
            Self::Db(error) => error.is_unavailable(),
            Self::Storage(error) => matches!(error, StorageError::Store(_)),
            Self::StorageTimedOut => true,
            Self::Render(_) | Self::Lost | Self::TimedOut | Self::NotPublished => false,
        }
    }
}

/// What became of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// No report is due.
    Idle,
    /// This report has a new PDF; `is_asked`: somebody waited for it.
    Rendered {
        /// The report.
        report: Uuid,
        /// Whether somebody waited for it.
        is_asked: bool,
    },
    /// There was nothing to do: its PDF is current, or it has none any more.
    Settled(Uuid),
    /// What was drawn no longer held when it was uploaded, or the claim was somebody else's by then.
    Overtaken(Uuid),
    /// It failed by its own fault, and comes up again later.
    Failed(Uuid),
    /// It failed because the database or the storage did.
    Outage(Uuid),
    /// The work was given back.
    Stopped(Uuid),
}

/// Renders what is wanted. Clones share the fonts and the number of drawings at the same time.
#[derive(Clone)]
pub struct Worker {
    pool: Pool,
    storage: Storage,
    // Made for the first report: a replica that never draws needs no fonts.
    renderer: Arc<OnceLock<Renderer>>,
    drawing: Arc<Semaphore>,
}

impl Worker {
    /// With so many drawings at the same time.
    #[must_use]
    pub fn new(pool: Pool, storage: Storage, drawings: usize) -> Self {
        Self {
            pool,
            storage,
            renderer: Arc::default(),
            drawing: Arc::new(Semaphore::new(drawings)),
        }
    }

    /// Renders the report that is next in line, if there is one.
    ///
    /// # Errors
    /// When the database cannot be asked for work, or told what became of it. A claim that stays comes up again by itself.
    pub async fn turn(&self) -> Result<Turn, DbError> {
        self.turn_until(std::future::pending()).await
    }

    /// [`turn`](Self::turn), but what is under way when `stop` comes is given back.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub async fn turn_until(&self, stop: impl Future<Output = ()>) -> Result<Turn, DbError> {
        // First of all: a drawing that never ends costs this replica its place, but no other report an attempt.
        let Ok(place) = self.drawing.clone().acquire_owned().await else {
            return Ok(Turn::Idle);
        };
        let Some(claim) = renderings::claim(&self.database().await?, LEASE).await? else {
            return Ok(Turn::Idle);
        };
        let report = claim.report();
        let attempt = async {
            match timeout(ATTEMPT, self.render(&claim, place)).await {
                Ok(done) => done,
                Err(_) => Err(PublishError::TimedOut),
            }
        };
        let outcome = tokio::select! {
            outcome = attempt => outcome,
            () = stop => {
                let before = claim.attempt().saturating_sub(1);
                self.postpone(&claim, Duration::ZERO, before).await?;
                return Ok(Turn::Stopped(report));
            }
        };
        let attempt = claim.attempt();
        match outcome {
            Ok(turn) => Ok(turn),
            Err(error) if error.is_outage() => {
                tracing::warn!(%report, attempt, %error, "a report could not be rendered for now");
                self.postpone(&claim, OUTAGE_PAUSE, attempt).await?;
                Ok(Turn::Outage(report))
            }
            Err(error) => {
                let pause = LONGEST_PAUSE.min(FIRST_PAUSE * 2_u32.pow((attempt - 1).min(16)));
                tracing::error!(%report, attempt, ?pause, %error, "a report cannot be rendered");
                self.postpone(&claim, pause, attempt).await?;
                Ok(Turn::Failed(report))
            }
        }
    }

    /// Renders and stores the PDF of one report at once, whoever else is in line, and answers which it is; where it is there
    /// already, nothing is drawn. Another renderer that has the report is waited for.
    ///
    /// Call it when the report's publication is committed. Whatever comes of it, the report is in line: what fails here is done
    /// in the background, sooner or later.
    ///
    /// # Errors
    /// The report has no PDF, or could not be rendered, or not in 90 s.
    pub async fn publish(&self, report: Uuid) -> Result<StoredPdf, PublishError> {
        let all = async {
            loop {
                match renderings::published(&self.database().await?, report).await? {
                    Published::Now(pdf) => return Ok(pdf),
                    Published::Never => return Err(PublishError::NotPublished),
                    Published::NotYet => {}
                }
                let Ok(place) = self.drawing.clone().acquire_owned().await else {
                    return Err(PublishError::Lost);
                };
                let claim = renderings::claim_one(&self.database().await?, report, LEASE).await?;
                match claim {
                    Some(claim) => match self.render(&claim, place).await {
                        Ok(Turn::Overtaken(_)) => sleep(LOOK).await,
                        Ok(_) => {}
                        Err(error) => {
                            // What cannot be postponed keeps its lease, and comes up again after it.
                            let _ = self.postpone(&claim, OUTAGE_PAUSE, claim.attempt()).await;
                            return Err(error);
                        }
                    },
                    None => {
                        drop(place);
                        sleep(LOOK).await;
                    }
                }
            }
        };
        timeout(ATTEMPT, all).await.unwrap_or(Err(PublishError::TimedOut))
    }

    /// Takes the next step of the sweep over all reports, if it is due and no other replica's: wants those rendered whose
    /// PDF is missing or stale. Returns how many.
    ///
    /// # Errors
    /// When the database does not answer; the step is then taken again.
    pub async fn sweep(&self) -> Result<usize, DbError> {
        renderings::sweep(&Connection::take(&self.pool, STEP).await?).await
    }

    /// Deletes the objects that no report names and whose time has come. What fails is tried again by whoever is next.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn delete_unnamed(&self) -> Result<(), DbError> {
        let condemned = renderings::condemn(&self.database().await?).await?;
        for key in condemned {
            match within(STORE, self.storage.delete(&key)).await {
                Ok(()) => renderings::deleted(&self.database().await?, &key).await?,
                Err(error) => tracing::warn!(%error, "an object that no report names could not be deleted"),
            }
        }
        Ok(())
    }

    async fn database(&self) -> Result<Connection, DbError> {
        Connection::take(&self.pool, DATABASE).await
    }

    async fn postpone(&self, claim: &Claim, pause: Duration, attempts: u32) -> Result<bool, DbError> {
        renderings::postpone(&self.database().await?, claim, pause, attempts).await
    }

    async fn render(&self, claim: &Claim, place: OwnedSemaphorePermit) -> Result<Turn, PublishError> {
        let report = claim.report();
        let Some(document) = renderings::document(&self.database().await?, claim).await? else {
            renderings::done(&self.database().await?, claim).await?;
            return Ok(Turn::Settled(report));
        };
        if let Some(key) = &document.current_key
            && within(STORE, self.storage.exists(key)).await?
        {
            renderings::done(&self.database().await?, claim).await?;
            return Ok(Turn::Settled(report));
        }
        let (mut printed, photos) = printed::read(&document.json)?;
        for (photo, key) in printed.photos.iter_mut().zip(&photos) {
            photo.data = within(STORE, self.photo(key)).await?;
        }
        let pdf = self.draw(printed, place).await?;
        let stored = StoredPdf {
            object_key: pdf_key::fresh(report, &document.fingerprint),
            sha256: Sha256::digest(&pdf).to_vec(),
            size_bytes: i64::try_from(pdf.len()).unwrap_or(i64::MAX),
        };
        let key = &stored.object_key;
        renderings::record(&self.database().await?, claim, key).await?;
        within(STORE, self.storage.put(key, Bytes::from(pdf), MIME_TYPE)).await?;
        if renderings::switch(&self.database().await?, claim, &stored, &document.fingerprint).await? {
            let is_asked = claim.is_asked();
            return Ok(Turn::Rendered { report, is_asked });
        }
        renderings::discard(&self.database().await?, key).await?;
        self.postpone(claim, CHANGED_PAUSE, 0).await?;
        Ok(Turn::Overtaken(report))
    }

    /// A photo's bytes; none for one that is lost or too large, of which the page shows a placeholder.
    async fn photo(&self, key: &str) -> Result<Vec<u8>, StorageError> {
        let object = match self.storage.stream(key).await {
            Ok(object) if object.content_length <= PHOTO_MAX => object,
            Ok(_) | Err(StorageError::NotFound(_) | StorageError::InvalidKey) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let parts: Vec<Bytes> = object.stream.try_collect().await?;
        Ok(parts.concat())
    }

    /// Draws on a thread of its own, which ends with the process however long it takes: the service's stop waits for none.
    /// Its `place` is taken until it ends, also when nobody waits for it any more.
    async fn draw(&self, report: Report, place: OwnedSemaphorePermit) -> Result<Vec<u8>, PublishError> {
        let renderer = self.renderer.clone();
        let (sender, drawn) = oneshot::channel();
        let thread = thread::Builder::new().name("render".to_owned()).spawn(move || {
            let _place = place;
            // Nobody waits for it after a stop.
            let _ = sender.send(renderer.get_or_init(Renderer::new).render(&report));
        });
        thread.map_err(|_| PublishError::Lost)?;
        Ok(drawn.await.map_err(|_| PublishError::Lost)??)
    }
}

async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, StorageError>>) -> Result<T, PublishError> {
    match timeout(limit, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(PublishError::StorageTimedOut),
    }
}
