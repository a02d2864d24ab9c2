//! The tasks of a replica that renders: workers, the sweep for what is stale, the deletion of what is replaced.

use std::time::{Duration, Instant};

use deadpool_postgres::Pool;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::worker::{Turn, Worker};
use crate::storage::Storage;

/// How often an idle worker looks for work.
const POLL: Duration = Duration::from_secs(1);
/// The longest pause between two tries while the database or the storage is out.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often the sweep's next step is offered; one replica takes it.
const SWEEP: Duration = Duration::from_secs(10);
/// How long a stopping worker may take to give its work back.
const STOP: Duration = Duration::from_secs(2);

/// The renderers of a replica, at work until they are stopped.
pub struct Renderers {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Renderers {
    /// Starts so many; none leaves all of it to other replicas.
    #[must_use]
    pub fn start(count: usize, pool: &Pool, storage: &Storage) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let worker = Worker::new(pool.clone(), storage.clone(), count);
        for _ in 0..count {
            tasks.spawn(work(worker.clone(), stopped.clone()));
        }
        if count > 0 {
            tasks.spawn(look_after(worker, stopped));
        }
        Self { stop, tasks }
    }

    /// Stops them; reports under way are given back, for another replica or the next start.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(STOP, ended).await.is_err() {
            tracing::warn!("a renderer did not stop in time; its claim runs out by itself");
        }
    }
}

async fn stopped(mut stop: watch::Receiver<bool>) {
    // An error means that the sender is gone, and with it the service.
    let _ = stop.wait_for(|stopped| *stopped).await;
}

async fn work(worker: Worker, stop: watch::Receiver<bool>) {
    let mut outage = POLL;
    loop {
        let began = Instant::now();
        let turn = worker.turn_until(stopped(stop.clone())).await;
        let pause = match &turn {
            Ok(Turn::Stopped(_)) => return,
            Ok(Turn::Idle) => POLL,
            // What nobody waits for takes no more than half of a core from requests.
            Ok(Turn::Rendered { is_asked: false, .. }) => began.elapsed(),
            Ok(Turn::Rendered { .. } | Turn::Settled(_) | Turn::Overtaken(_) | Turn::Failed(_)) => Duration::ZERO,
            Ok(Turn::Outage(_)) | Err(_) => outage,
        };
        outage = match &turn {
            Ok(Turn::Outage(_)) | Err(_) => LONGEST_PAUSE.min(outage * 2),
            Ok(_) => POLL,
        };
        if let Err(error) = turn {
            tracing::warn!(%error, "the renderer cannot reach its work");
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = stopped(stop.clone()) => return,
        }
    }
}

async fn look_after(worker: Worker, stop: watch::Receiver<bool>) {
    loop {
        let round = async {
            match worker.sweep().await {
                Ok(0) => {}
                Ok(wanted) => tracing::info!(wanted, "reports found whose PDF is missing or stale"),
                Err(error) => tracing::warn!(%error, "the sweep for stale PDFs waits for its next time"),
            }
            if let Err(error) = worker.delete_unnamed().await {
                tracing::warn!(%error, "objects that no report names are deleted later");
            }
            sleep(SWEEP).await;
        };
        tokio::select! {
            () = round => {}
            () = stopped(stop.clone()) => return,
        }
    }
}
