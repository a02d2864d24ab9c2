//! Waiting for what is about to be there.

use std::time::{Duration, Instant};

/// How often what is to be over in time is tried.
const TRIES: usize = 5;

/// Does something that ends by a deadline of the service's own, until it took less than `bound`; `attempt`
/// begins with a world of its own, and returns how long it took. What waits for longer than it should does so at each try, for no
/// timer ends early; a machine that stands still for some tenths of a second does not do so at each.
///
/// # Panics
/// When each try took longer.
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
