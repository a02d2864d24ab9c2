//! A limit for lookups of session cookies that this replica does not know.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use partner_api_store::DbError;
use partner_api_store::deadline::Deadline;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The number of unknown cookies that are looked up at a time, out of the inspectors' share of connections.
const CONCURRENT_LOOKUPS: usize = 2;

/// The maximum number of cookies that are remembered, about 0.5 MB. If they are exceeded, all are forgotten.
const MAX_KNOWN: usize = 10_000;

/// Limits the lookups of cookies whose session this replica has not found before. Anyone can make up cookies, and each one is
/// looked up, because only the database knows the sessions of other replicas. Without this limit they would take the connections of
/// the inspectors.
pub(crate) struct CookieLookups {
    permits: Semaphore,
    known: Mutex<HashSet<[u8; 32]>>,
}

impl Default for CookieLookups {
    fn default() -> Self {
        CookieLookups {
            permits: Semaphore::new(CONCURRENT_LOOKUPS),
            known: Mutex::default(),
        }
    }
}

impl CookieLookups {
    /// Waits for a permit to look up a cookie's digest. A known one needs none.
    ///
    /// # Errors
    /// No permit was free before the deadline.
    pub(crate) async fn permit(
        &self,
        digest: &[u8; 32],
        deadline: Deadline,
    ) -> Result<Option<SemaphorePermit<'_>>, DbError> {
        if self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(digest)
        {
            return Ok(None);
        }
        match deadline.within(self.permits.acquire()).await {
            Some(Ok(permit)) => Ok(Some(permit)),
            // The semaphore is never closed.
            Some(Err(_)) | None => Err(DbError::TimedOut),
        }
    }

    /// Remembers whether a cookie's digest has a session.
    pub(crate) fn learn(&self, digest: [u8; 32], has_session: bool) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !has_session {
            known.remove(&digest);
        } else if !known.contains(&digest) {
            if known.len() >= MAX_KNOWN {
                known.clear();
            }
            known.insert(digest);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// INS-4
    #[tokio::test]
    async fn while_made_up_cookies_wait_an_inspector_is_looked_up_at_once() {
        let lookups = CookieLookups::default();
        let (inspector, made_up) = ([1; 32], [2; 32]);
        lookups.learn(inspector, true);
        let permit = |digest| lookups.permit(digest, Deadline::begin()).now_or_never();
        let first: Vec<_> = (0..CONCURRENT_LOOKUPS).map(|_| permit(&made_up)).collect();
        assert!(first.iter().all(|permit| matches!(permit, Some(Ok(Some(_))))));
        assert!(permit(&made_up).is_none());
        assert!(matches!(permit(&inspector), Some(Ok(None))));
        // A session that has ended is unknown, and so is one among too many.
        lookups.learn(inspector, false);
        assert!(permit(&inspector).is_none());
        drop(first);
        assert!(matches!(permit(&made_up), Some(Ok(Some(_)))));
    }
}
