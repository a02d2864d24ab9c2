//! Waiting for conditions, and checks of time bounds.

use std::time::{Duration, Instant};

/// The number of attempts of [`in_time`].
const ATTEMPTS: usize = 5;

/// Repeats an operation that a deadline of the service ends, until it takes less than `bound`. Each `attempt` includes its own
/// setup and returns the time of the operation. A service that waits too long fails in each attempt; a machine that stalls for
/// some tenths of a second does not.
///
/// # Panics
/// If each attempt took longer.
pub async fn in_time(bound: Duration, attempt: impl AsyncFn() -> Duration) {
    let mut times = Vec::new();
    for _ in 0..ATTEMPTS {
        let time = attempt().await;
        if time < bound {
            return;
        }
        times.push(time);
    }
    panic!("every attempt took {bound:?} or more: {times:?}");
}

/// Polls until `condition` returns a value, for at most `bound`.
///
/// # Panics
/// If it does not return one by then.
pub async fn until<T>(bound: Duration, condition: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + bound;
    loop {
        if let Some(found) = condition().await {
            return found;
        }
        assert!(Instant::now() < deadline, "the condition did not hold within {bound:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
