//! Places in memory for photos that are being uploaded.
//!
//! An upload takes a place only after its first [`FREE_BYTES`], so uploads that send almost nothing occupy no place. Each inspector
//! has at most [`PLACES_PER_INSPECTOR`], so the slow uploads of one inspector do not block those of others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use partner_api::request_log::Reason;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use uuid::Uuid;

use crate::error::ApiError;

/// The maximum number of photos in memory, of up to ten megabytes each.
const PLACES: usize = 16;

/// The maximum number of these photos per inspector, in all sessions together.
const PLACES_PER_INSPECTOR: usize = 4;

/// The number of bytes that an upload may send without a place.
const FREE_BYTES: usize = 64 * 1024;

/// How long an upload waits for a place.
const WAIT: Duration = Duration::from_secs(5);

/// The places in memory.
pub(super) struct PhotoPlaces {
    all: Arc<Semaphore>,
    /// The places of each inspector with an upload in progress.
    by_inspector: Mutex<HashMap<Uuid, Weak<Semaphore>>>,
}

impl Default for PhotoPlaces {
    fn default() -> Self {
        PhotoPlaces {
            all: Arc::new(Semaphore::new(PLACES)),
            by_inspector: Mutex::default(),
        }
    }
}

impl PhotoPlaces {
    /// Returns the hold of an upload that has sent nothing yet.
    pub fn hold(&self, inspector: Uuid) -> PhotoHold {
        let mut by_inspector = self.by_inspector.lock().unwrap_or_else(PoisonError::into_inner);
        let own = by_inspector.get(&inspector).and_then(Weak::upgrade).unwrap_or_else(|| {
            by_inspector.retain(|_, own| own.strong_count() > 0);
            let own = Arc::new(Semaphore::new(PLACES_PER_INSPECTOR));
            by_inspector.insert(inspector, Arc::downgrade(&own));
            own
        });
        PhotoHold {
            own,
            all: self.all.clone(),
            place: None,
        }
    }
}

/// The place of one upload, which is freed when this value is dropped.
#[derive(Debug)]
pub struct PhotoHold {
    own: Arc<Semaphore>,
    all: Arc<Semaphore>,
    place: Option<[OwnedSemaphorePermit; 2]>,
}

impl PhotoHold {
    /// Takes a place once the photo has more than [`FREE_BYTES`].
    ///
    /// # Errors
    /// 503 if no place became free in time.
    pub async fn grow_to(&mut self, bytes: usize) -> Result<(), ApiError> {
        if self.place.is_some() || bytes <= FREE_BYTES {
            return Ok(());
        }
        let places = async {
            let own = self.own.clone().acquire_owned().await?;
            Ok::<_, tokio::sync::AcquireError>([own, self.all.clone().acquire_owned().await?])
        };
        match timeout(WAIT, places).await {
            Ok(Ok(place)) => {
                self.place = Some(place);
                Ok(())
            }
            _ => Err(ApiError::unavailable(Reason::AllBodies)),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// INS-9
    #[tokio::test]
    async fn an_upload_takes_a_place_when_it_has_begun_and_an_inspector_has_four() {
        let places = PhotoPlaces::default();
        let [slow, quick] = [1, 2].map(Uuid::from_u128);
        let mut begun: Vec<PhotoHold> = (0..20).map(|_| places.hold(slow)).collect();
        for upload in &mut begun {
            upload.grow_to(FREE_BYTES).await.unwrap();
        }
        assert_eq!(places.all.available_permits(), PLACES);
        for upload in &mut begun[..PLACES_PER_INSPECTOR] {
            upload.grow_to(FREE_BYTES + 1).await.unwrap();
        }
        assert!(
            begun[PLACES_PER_INSPECTOR]
                .grow_to(FREE_BYTES + 1)
                .now_or_never()
                .is_none()
        );
        places.hold(quick).grow_to(FREE_BYTES + 1).await.unwrap();
        assert_eq!(places.all.available_permits(), PLACES - PLACES_PER_INSPECTOR);
        drop(begun);
        places.hold(quick).grow_to(FREE_BYTES + 1).await.unwrap();
        assert_eq!(places.all.available_permits(), PLACES);
        drop(places.hold(Uuid::from_u128(3)));
        places.hold(Uuid::from_u128(4));
        assert_eq!(
            places.by_inspector.lock().unwrap().len(),
            1,
            "inspectors without an upload are forgotten"
        );
    }
}
