//! The limit of requests in progress of all addresses, and the queue of those that wait for a permit.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::Shared;
use super::clock::micros;
use super::counts::Event;
use super::limits::Limits;

/// An extension of a request: how long it has waited for a permit to be in progress, before its handler started and while the handler
/// read the body.
#[derive(Clone, Debug)]
pub struct Queued {
    waited: Arc<AtomicU64>,
    limit: Duration,
}

impl Queued {
    /// Returns the time that the request has waited. Its client has waited for at least this time.
    pub fn waited(&self) -> Duration {
        Duration::from_micros(self.waited.load(Relaxed))
    }

    /// Returns whether the request has waited for [`Limits::queue_wait`]. It then runs without a permit, so its handler should
    /// reject it at little cost.
    pub fn is_late(&self) -> bool {
        self.waited() >= self.limit
    }
}

/// The permits of a listener, and the number of requests that wait for one.
#[derive(Debug)]
pub(super) struct InProgress {
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl InProgress {
    pub fn new(limits: &Limits) -> Self {
        InProgress {
            permits: Arc::new(Semaphore::new(limits.in_progress)),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Returns the number of requests that wait for a permit.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }
}

/// Counts a request that waits for a permit until it is dropped.
struct WaitingRequest(Arc<Shared>);

impl WaitingRequest {
    fn new(shared: Arc<Shared>) -> Self {
        shared.in_progress.waiting.fetch_add(1, Relaxed);
        WaitingRequest(shared)
    }

    /// Waits for a permit, at most for `time`.
    async fn permit(self, time: Duration) -> Option<OwnedSemaphorePermit> {
        let permit = timeout(time, self.0.in_progress.permits.clone().acquire_owned()).await;
        // The inner error means that the semaphore was closed, which never happens.
        permit.ok().and_then(Result::ok)
    }
}

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        self.0.in_progress.waiting.fetch_sub(1, Relaxed);
    }
}

type Waiting = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>;

/// A request's permit to be in progress. A request that waits for its body has none.
pub(super) struct RequestPermit {
    shared: Arc<Shared>,
    queued: Queued,
    permit: Option<OwnedSemaphorePermit>,
    waiting: Option<(Instant, Waiting)>,
}

impl RequestPermit {
    pub fn new(shared: Arc<Shared>) -> Self {
        let queued = Queued {
            waited: Arc::default(),
            limit: shared.limits.queue_wait,
        };
        RequestPermit {
            shared,
            queued,
            permit: None,
            waiting: None,
        }
    }

    /// Returns the extension of the request.
    pub fn queued(&self) -> Queued {
        self.queued.clone()
    }

    /// Waits until the request has a permit, or until it has waited for [`Limits::queue_wait`] in all.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.permit.is_some() || self.queued.is_late() {
            return Poll::Ready(());
        }
        let (since, waiting) = match &mut self.waiting {
            Some(waiting) => waiting,
            none => {
                if let Ok(permit) = self.shared.in_progress.permits.clone().try_acquire_owned() {
                    self.permit = Some(permit);
                    return Poll::Ready(());
                }
                let left = self.queued.limit.saturating_sub(self.queued.waited());
                let waiting = WaitingRequest::new(self.shared.clone()).permit(left);
                none.insert((Instant::now(), Box::pin(waiting)))
            }
        };
        let permit = ready!(waiting.as_mut().poll(cx));
        let waited = match permit {
            Some(_) => since.elapsed(),
            None => {
                self.shared.counts.record(Event::Late);
                self.queued.limit
            }
        };
        self.queued.waited.fetch_add(micros(waited), Relaxed);
        self.permit = permit;
        self.waiting = None;
        Poll::Ready(())
    }

    /// Releases the permit, or ends the wait for it. The next poll waits for another one.
    pub fn release(&mut self) {
        self.permit = None;
        self.waiting = None;
    }
}
