//! Waiting for a condition, and for what must end within a bound.

use std::time::{Duration, Instant};

/// How often [`in_time`] tries.
const TRIES: usize = 5;

/// Repeats something that a deadline of the service ends, until it took less than `bound`. Each `attempt` begins with its own
/// set-up and returns how long it took. A service that waits for too long does so in each attempt; a machine that stalls for some
/// tenths of a second does not.
///
/// # Panics
/// If each attempt took longer.
pub async fn in_time(bound: Duration, attempt: impl AsyncFn() -> Duration) {
    let mut took = Vec::new();
    for _ in 0..TRIES {
        let this = attempt().await;
        if this < bound {
            return;
        }
        took.push(this);
    }
    panic!("each time it took {bound:?} or more: {took:?}");
}

/// Polls until something is there, for at most `bound`.
///
/// # Panics
/// If it is not there by then.
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
