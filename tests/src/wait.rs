//! Waiting for what is about to be there.

use std::time::{Duration, Instant};

/// Looks again and again until something is there, at most so long.
///
/// # Panics
/// When it is not there by then.
pub async fn until<T>(bound: Duration, there: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + bound;
    loop {
        if let Some(found) = there().await {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {bound:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
