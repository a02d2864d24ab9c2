//! The pictures in the storage. Missing ones are drawn and stored.

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use partner_api::storage::{Storage, StorageError};
use sandbox_pictures::{MIME_TYPE, SCENES};

use super::SandboxError;
use super::progress::Step;

/// The number of pictures that are drawn or written at the same time.
const CONCURRENCY: usize = 16;

/// The pictures of all scenes.
pub struct Pictures {
    /// The size of each scene's picture in bytes.
    pub sizes: Vec<i64>,
    /// The number of pictures that were drawn.
    pub drawn: usize,
}

impl Pictures {
    /// Draws and stores the pictures that are not in the storage.
    ///
    /// # Errors
    /// A picture could not be drawn or stored.
    pub async fn draw_missing(storage: &Storage) -> Result<Self, SandboxError> {
        let mut pictures = Self {
            sizes: vec![0; SCENES.len()],
            drawn: 0,
        };
        let mut missing = Vec::new();
        for (index, scene) in SCENES.iter().enumerate() {
            let has_thumbnail = size(storage, &scene.thumbnail_key()).await?.is_some();
            match size(storage, &scene.object_key()).await? {
                Some(size) if has_thumbnail => pictures.sizes[index] = size,
                _ => missing.push(index),
            }
        }
        if missing.is_empty() {
            return Ok(pictures);
        }
        let step = Step::begin("Drawing photos", missing.len());
        let drawing = stream::iter(missing).map(|index| async move {
            let scene = &SCENES[index];
            let picture = tokio::task::spawn_blocking(move || scene.draw()).await??;
            let size = bytes(picture.full.len());
            let put = |key: String, jpeg: Vec<u8>| async move { storage.put(&key, Bytes::from(jpeg), MIME_TYPE).await };
            futures::try_join!(
                put(scene.object_key(), picture.full),
                put(scene.thumbnail_key(), picture.thumbnail)
            )?;
            Ok::<_, SandboxError>((index, size))
        });
        let mut drawing = drawing.buffer_unordered(CONCURRENCY);
        while let Some((index, size)) = drawing.try_next().await? {
            pictures.sizes[index] = size;
            pictures.drawn += 1;
            step.advance();
        }
        step.finish();
        Ok(pictures)
    }
}

/// Returns an object's size in bytes, if it exists.
async fn size(storage: &Storage, key: &str) -> Result<Option<i64>, StorageError> {
    match storage.stream(key).await {
        Ok(object) => Ok(Some(bytes(object.content_length))),
        Err(StorageError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn bytes(length: impl TryInto<i64>) -> i64 {
    length.try_into().unwrap_or(i64::MAX)
}
