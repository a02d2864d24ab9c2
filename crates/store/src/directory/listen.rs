//! Notifications from the database about changes to keys and grants.
//!
//! They take effect before the next poll. Polling continues, because a notification is lost with its connection, and some
//! connection poolers do not forward any.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_postgres::Config;

use crate::pool;

/// The channel that the trigger function `bump_directory_version` notifies.
const CHANNEL: &str = "directory";

/// The delay before reconnecting.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// The time limit for connecting and `LISTEN`. It is long, because a server that was frozen still has to process the attempts that were
/// abandoned.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(60);

/// Notifies `changed` of each change, forever.
pub(super) async fn forward_changes(config: Config, changed: Arc<Notify>) {
    let mut failing = false;
    loop {
        let listening = tokio::time::timeout(LISTEN_TIMEOUT, pool::listen(&config, CHANNEL, changed.clone()));
        match listening.await {
            Ok(Ok(lost)) => {
                failing = false;
                // Changes may have been missed before the connection was established.
                changed.notify_one();
                lost.await;
                tracing::info!("lost the connection for notifications about keys; reconnecting");
            }
            Ok(Err(error)) if !failing => {
                failing = true;
                tracing::warn!(%error, "failed to listen for changes to keys; polling every second");
            }
            Err(_) if !failing => {
                failing = true;
                tracing::warn!(
                    "failed to listen for changes to keys: the database did not respond; polling every second"
                );
            }
            Ok(Err(_)) | Err(_) => {}
        }
        tokio::time::sleep(RECONNECT_DELAY).await;
    }
}
