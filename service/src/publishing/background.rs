//! The background tasks of a replica that renders PDFs: workers, the sweep for stale PDFs, and the deletion of replaced ones.

use std::time::{Duration, Instant};

use deadpool_postgres::Pool;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::worker::{RenderOutcome, Worker};
use crate::storage::Storage;

/// The interval at which an idle worker polls for work.
const POLL: Duration = Duration::from_secs(1);
/// The longest pause between two attempts while the database or the storage is unavailable.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// The interval at which the next step of the sweep is attempted; only one replica runs it.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);
/// The timeout of a worker that returns its report when it is stopped.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// The running background tasks of a replica.
pub struct Renderers {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Renderers {
    /// Starts `count` workers; 0 leaves rendering to other replicas.
    #[must_use]
    pub fn start(count: usize, pool: &Pool, storage: &Storage) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let worker = Worker::new(pool.clone(), storage.clone(), count);
        for _ in 0..count {
            tasks.spawn(work(worker.clone(), stopped.clone()));
        }
        if count > 0 {
            tasks.spawn(maintain(worker, stopped));
        }
        Self { stop, tasks }
    }

    /// Stops the tasks. Unfinished reports are returned, so that another replica can render them.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(STOP_TIMEOUT, ended).await.is_err() {
            tracing::warn!("a renderer did not stop in time; the lease of its report will expire");
        }
    }
}

async fn stopped(mut stop: watch::Receiver<bool>) {
    // An error means that the sender was dropped, so the service has ended.
    let _ = stop.wait_for(|stopped| *stopped).await;
}

async fn work(worker: Worker, stop: watch::Receiver<bool>) {
    let mut outage_pause = POLL;
    loop {
        let began = Instant::now();
        let outcome = worker.render_next_until(stopped(stop.clone())).await;
        let pause = match &outcome {
            Ok(RenderOutcome::Stopped(_)) => return,
            Ok(RenderOutcome::Idle) => POLL,
            // Reports that nobody requested use at most half of a core.
            Ok(RenderOutcome::Rendered {
                is_requested: false, ..
            }) => began.elapsed(),
            Ok(
                RenderOutcome::Rendered { .. }
                | RenderOutcome::UpToDate(_)
                | RenderOutcome::Superseded(_)
                | RenderOutcome::Failed(_),
            ) => Duration::ZERO,
            Ok(RenderOutcome::Outage(_)) | Err(_) => outage_pause,
        };
        outage_pause = match &outcome {
            Ok(RenderOutcome::Outage(_)) | Err(_) => MAX_PAUSE.min(outage_pause * 2),
            Ok(_) => POLL,
        };
        if let Err(error) = outcome {
            tracing::warn!(%error, "failed to poll for reports to render");
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = stopped(stop.clone()) => return,
        }
    }
}

async fn maintain(worker: Worker, stop: watch::Receiver<bool>) {
    loop {
        let round = async {
            match worker.sweep().await {
                Ok(0) => {}
                Ok(reports) => tracing::info!(reports, "found reports whose PDF is missing or stale"),
                Err(error) => tracing::warn!(%error, "failed to sweep for stale PDFs; retrying later"),
            }
            if let Err(error) = worker.delete_orphaned().await {
                tracing::warn!(%error, "failed to delete orphaned objects; retrying later");
            }
            sleep(SWEEP_INTERVAL).await;
        };
        tokio::select! {
            () = round => {}
            () = stopped(stop.clone()) => return,
        }
    }
}
