//! Word from the database of a change to keys or grants, so that it need not wait for the next look. The looks stay: word can
//! be lost with its connection, and some poolers in between pass none on.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_postgres::Config;

use crate::pool;

/// What `bump_directory_version` sends to.
const CHANNEL: &str = "directory";

/// The rest after a connection was lost.
const REST: Duration = Duration::from_secs(1);

/// How long the database may take to take the request.
const BOUND: Duration = Duration::from_secs(5);

/// Tells `changed` of each change, for ever.
pub(super) async fn tell(config: Config, changed: Arc<Notify>) {
    let mut failing = false;
    loop {
        let listening = tokio::time::timeout(BOUND, pool::listen(&config, CHANNEL, changed.clone()));
        match listening.await {
            Ok(Ok(lost)) => {
                failing = false;
                // What came while nobody listened.
                changed.notify_one();
                lost.await;
                tracing::info!("the connection that hears of changes to keys was lost; it is made again");
            }
            Ok(Err(error)) if !failing => {
                failing = true;
                tracing::warn!(%error, "changes to keys are not heard of at once, but looked for every second");
            }
            Err(_) if !failing => {
                failing = true;
                tracing::warn!("changes to keys are not heard of at once: the database does not answer");
            }
            Ok(Err(_)) | Err(_) => {}
        }
        tokio::time::sleep(REST).await;
    }
}
