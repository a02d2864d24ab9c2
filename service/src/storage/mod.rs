//! The object storage for photos and PDFs: an S3-compatible service, or a folder whose links the service signs and serves itself.
//! Anyone who has a link can read its object until the link expires.
//!
//! The file is long because both kinds of storage share their errors and limits.

use std::{fmt, fs::DirBuilder, ops::Range, os::unix::fs::DirBuilderExt, path::Path, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use object_store::{
    Attribute, Attributes, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutOptions, PutPayload,
    aws::AmazonS3,
    local::LocalFileSystem,
    path::Path as ObjectPath,
    signer::{Method, Signer},
};
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

mod body;
mod key;
mod links;
mod s3;

pub use key::{content_type, is_key};
pub use links::LinkError;
pub use s3::S3Settings;

use links::LinkSigner;
use partner_api_domain::byte_range::ByteRange;
use partner_api_store::secrets::Derived;

/// The lifetime of links to photos: 900 s (REP-7).
pub const LINK_LIFETIME: Duration = Duration::from_secs(900);

/// The number of bytes of a file that are read first. They are in memory before the client reads anything.
const FIRST_PART: u64 = 4 * 1024;

/// The number of bytes of a file that are read at a time after that, or [`FIRST_PART`] while [`MAX_PARTS`] are in memory.
const PART: u64 = 32 * 1024;

/// The maximum number of parts of more than [`FIRST_PART`] bytes that are in memory at a time: 4 MiB. Clients that do not read
/// their responses therefore only slow down the reads of others.
const MAX_PARTS: usize = 128;

/// The maximum number of files that are open for reading at a time. Each is open for one part, so others wait only briefly.
const MAX_OPEN_FILES: usize = 64;

/// An error while storing, reading or linking an object.
#[derive(Debug, Error)]
pub enum StorageError {
    /// The key is not valid; see [`Storage::put`].
    #[error("the object key is not valid")]
    InvalidKey,
    /// The object does not exist.
    #[error("there is no object with the key {0}")]
    NotFound(String),
    /// The requested range is outside the object.
    #[error("the requested range is outside the object, which has {size} bytes")]
    RangeNotSatisfiable {
        /// The size of the object in bytes.
        size: u64,
    },
    /// The content type does not match the key's file extension.
    #[error("the content type of the object {key} must be {expected}, not {given}")]
    ContentType {
        /// The key.
        key: String,
        /// The content type of the file extension.
        expected: &'static str,
        /// The given content type.
        given: String,
    },
    /// The storage cannot be set up.
    #[error("failed to set up the object storage: {0}")]
    Setup(String),
    /// The storage failed.
    #[error("failed to use the object storage: {0}")]
    Store(#[source] object_store::Error),
}

impl From<object_store::Error> for StorageError {
    fn from(error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { path, .. } => Self::NotFound(path),
            error => Self::Store(error),
        }
    }
}

/// A link that needs no further authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresignedUrl {
    /// The URL.
    pub url: String,
    /// When it expires, in whole seconds.
    pub expires_at: DateTime<Utc>,
}

/// An object, or a part of one, that is open for reading.
pub struct StoredObject {
    /// The number of bytes to read.
    pub content_length: u64,
    /// The offset of the first of them.
    pub first: u64,
    /// The size of the object in bytes.
    pub size: u64,
    /// The store's name for this version of the object.
    pub e_tag: Option<String>,
    /// The media type.
    pub content_type: String,
    /// The bytes, read from the store on demand.
    pub stream: BoxStream<'static, Result<Bytes, StorageError>>,
}

impl fmt::Debug for StoredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredObject")
            .field("content_length", &self.content_length)
            .field("content_type", &self.content_type)
            .finish_non_exhaustive()
    }
}

enum Backend {
    Folder {
        store: LocalFileSystem,
        links: LinkSigner,
        open_files: Semaphore,
        parts: Arc<Semaphore>,
    },
    // `signer` differs from `store` if partners reach the S3 service under another URL.
    S3 {
        store: AmazonS3,
        signer: AmazonS3,
    },
}

/// A part of a file, with its place in memory.
struct Part {
    bytes: Bytes,
    _place: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The object storage; cheap to clone.
#[derive(Clone)]
pub struct Storage(Arc<Backend>);

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &*self.0 {
            Backend::Folder { .. } => "Storage(folder)",
            Backend::S3 { .. } => "Storage(s3)",
        })
    }
}

impl Storage {
    /// Opens a folder, which is created if it does not exist. Its links start with `<public_url>/files/` and are signed with
    /// `link_key`.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn folder(folder: &Path, public_url: &str, link_key: Derived) -> Result<Self, StorageError> {
        let failed = |error: &dyn fmt::Display| StorageError::Setup(format!("{}: {error}", folder.display()));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| failed(&error))?;
        let store = LocalFileSystem::new_with_prefix(folder).map_err(|error| failed(&error))?;
        // A PDF must survive a crash like the database row that references it.
        let store = store.with_fsync(true);
        Ok(Self(Arc::new(Backend::Folder {
            store,
            links: LinkSigner::new(public_url, link_key),
            open_files: Semaphore::new(MAX_OPEN_FILES),
            parts: Arc::new(Semaphore::new(MAX_PARTS)),
        })))
    }

    /// Sets up an S3-compatible service, without connecting to it.
    ///
    /// # Errors
    /// If the settings are not valid.
    pub fn s3(settings: &S3Settings) -> Result<Self, StorageError> {
        let store = settings.build(settings.endpoint.as_deref())?;
        let signer = match &settings.public_endpoint {
            Some(endpoint) => settings.build(Some(endpoint))?,
            None => store.clone(),
        };
        Ok(Self(Arc::new(Backend::S3 { store, signer })))
    }

    /// Returns whether the service itself serves the links (`/files/…`).
    #[must_use]
    pub fn serves_links(&self) -> bool {
        matches!(&*self.0, Backend::Folder { .. })
    }

    /// Stores an object atomically. It replaces an object with the same key.
    ///
    /// A key consists of segments of `A-Z a-z 0-9 - _ .` joined by slashes; no segment starts with a dot. The content type must
    /// match the key's file extension ([`content_type`]).
    ///
    /// # Errors
    /// If the key or the content type is not valid, or the storage fails.
    pub async fn put(&self, key: &str, bytes: Bytes, content_type: &str) -> Result<(), StorageError> {
        let path = key::check(key)?;
        let expected = key::content_type(key);
        if content_type != expected {
            return Err(StorageError::ContentType {
                key: key.to_owned(),
                expected,
                given: content_type.to_owned(),
            });
        }
        let payload = PutPayload::from_bytes(bytes);
        match &*self.0 {
            Backend::Folder { store, .. } => store.put(&path, payload).await?,
            Backend::S3 { store, .. } => {
                let attributes = Attributes::from_iter([(Attribute::ContentType, content_type.to_owned())]);
                store
                    .put_opts(
                        &path,
                        payload,
                        PutOptions {
                            attributes,
                            ..PutOptions::default()
                        },
                    )
                    .await?
            }
        };
        Ok(())
    }

    /// Opens an object for reading.
    ///
    /// # Errors
    /// If the key is not valid, the object does not exist, or the storage fails.
    pub async fn stream(&self, key: &str) -> Result<StoredObject, StorageError> {
        self.open(key, None).await
    }

    /// Reads a whole object into memory.
    ///
    /// # Errors
    /// If the key is not valid, the object does not exist, or the storage fails.
    pub async fn read(&self, key: &str) -> Result<Bytes, StorageError> {
        let parts: BytesMut = self.stream(key).await?.stream.try_collect().await?;
        Ok(parts.freeze())
    }

    /// Opens a part of an object for reading.
    ///
    /// # Errors
    /// If the key is not valid, the object does not exist, the range is outside it, or the storage fails.
    pub async fn stream_part(&self, key: &str, part: ByteRange) -> Result<StoredObject, StorageError> {
        let range = match part {
            ByteRange::From(first) => GetRange::Offset(first),
            ByteRange::Within(first, last) => GetRange::Bounded(first..last.saturating_add(1)),
            ByteRange::Last(count) => GetRange::Suffix(count),
        };
        let failed = match self.open(key, Some(range)).await {
            Err(StorageError::Store(error)) => error,
            outcome => return outcome,
        };
        // Each store reports a range outside the object in its own way.
        let size = self.store().head(&key::check(key)?).await?.size;
        match part.of(size) {
            None => Err(StorageError::RangeNotSatisfiable { size }),
            Some(_) => Err(StorageError::Store(failed)),
        }
    }

    async fn open(&self, key: &str, range: Option<GetRange>) -> Result<StoredObject, StorageError> {
        let options = GetOptions {
            range,
            ..GetOptions::default()
        };
        let path = key::check(key)?;
        let _permit = self.permit_open_file().await;
        let found = self.store().get_opts(&path, options).await?;
        Ok(StoredObject {
            content_length: found.range.end - found.range.start,
            first: found.range.start,
            size: found.meta.size,
            e_tag: found.meta.e_tag.clone(),
            content_type: key::content_type(key).to_owned(),
            stream: match &*self.0 {
                Backend::Folder { .. } => self
                    .clone()
                    .read_parts(path, found.range.clone(), found.meta.e_tag.clone()),
                Backend::S3 { .. } => found.into_stream().map_err(StorageError::from).boxed(),
            },
        })
    }

    /// Reads a file in parts. It is open only while a part is read, so that clients that do not read their responses cannot
    /// occupy all file descriptors. The read fails if the file has another ETag by then.
    fn read_parts(
        self,
        path: ObjectPath,
        range: Range<u64>,
        e_tag: Option<String>,
    ) -> BoxStream<'static, Result<Bytes, StorageError>> {
        let parts = stream::try_unfold((range, false), move |(rest, is_later)| {
            let (storage, path, if_match) = (self.clone(), path.clone(), e_tag.clone());
            async move {
                if rest.is_empty() {
                    return Ok(None);
                }
                let place = if is_later { storage.place_for_part() } else { None };
                let size = if place.is_some() { PART } else { FIRST_PART };
                let end = rest.end.min(rest.start + size);
                let options = GetOptions {
                    range: Some(GetRange::Bounded(rest.start..end)),
                    if_match,
                    ..GetOptions::default()
                };
                let _permit = storage.permit_open_file().await;
                let part = storage.store().get_opts(&path, options).await?.bytes().await?;
                let part = match place {
                    Some(place) => Bytes::from_owner(Part {
                        bytes: part,
                        _place: place,
                    }),
                    None => part,
                };
                Ok(Some((part, (end..rest.end, true))))
            }
        });
        parts.boxed()
    }

    /// Returns a place in memory for a part, if one is free.
    fn place_for_part(&self) -> Option<OwnedSemaphorePermit> {
        match &*self.0 {
            Backend::Folder { parts, .. } => parts.clone().try_acquire_owned().ok(),
            Backend::S3 { .. } => None,
        }
    }

    /// Waits until another file may be opened. Objects in S3 need no permit.
    async fn permit_open_file(&self) -> Option<SemaphorePermit<'_>> {
        match &*self.0 {
            Backend::Folder { open_files, .. } => open_files.acquire().await.ok(),
            Backend::S3 { .. } => None,
        }
    }

    /// Deletes an object, if it exists. A read in progress fails at its next part. The caller therefore deletes
    /// an object only when nothing has referenced it for an hour.
    ///
    /// # Errors
    /// If the key is not valid, or the storage fails.
    pub async fn delete(&self, key: &str) -> Result<(), StorageError> {
        match self.store().delete(&key::check(key)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether an object exists.
    ///
    /// # Errors
    /// If the key is not valid, or the storage fails.
    pub async fn exists(&self, key: &str) -> Result<bool, StorageError> {
        match self.store().head(&key::check(key)?).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns a link to an object that is valid for `lifetime` from now ([`LINK_LIFETIME`]). Does not check that the object exists.
    ///
    /// # Errors
    /// If the key is not valid, or the S3 credentials are not available.
    pub async fn presign(&self, key: &str, lifetime: Duration) -> Result<PresignedUrl, StorageError> {
        self.presign_at(key, lifetime, Utc::now()).await
    }

    /// Like [`Storage::presign`], at a given time. S3 links are always valid from now.
    ///
    /// # Errors
    /// As for [`Storage::presign`].
    pub async fn presign_at(
        &self,
        key: &str,
        lifetime: Duration,
        now: DateTime<Utc>,
    ) -> Result<PresignedUrl, StorageError> {
        if !is_key(key) {
            return Err(StorageError::InvalidKey);
        }
        let setup = |error: &dyn fmt::Display| StorageError::Setup(format!("link lifetime: {error}"));
        // Like S3, counts from the start of the current second.
        let expires_at = now
            .duration_trunc(TimeDelta::seconds(1))
            .map_err(|error| setup(&error))?
            + TimeDelta::from_std(lifetime).map_err(|error| setup(&error))?;
        let url = match &*self.0 {
            Backend::Folder { links, .. } => links.sign(key, expires_at.timestamp()),
            Backend::S3 { signer, .. } => signer
                .signed_url(Method::GET, &key::check(key)?, lifetime)
                .await?
                .into(),
        };
        Ok(PresignedUrl { url, expires_at })
    }

    /// Verifies a link to `key` (the path after `/files/`) with these query parameters at `now`. A link is valid up to and including
    /// the second `expires`.
    ///
    /// # Errors
    /// If the link is invalid or has expired. With S3, every link is invalid.
    pub fn verify_link(&self, key: &str, expires: i64, signature: &str, now: DateTime<Utc>) -> Result<(), LinkError> {
        match &*self.0 {
            Backend::Folder { links, .. } => links.verify(key, expires, signature, now),
            Backend::S3 { .. } => Err(LinkError::Invalid),
        }
    }

    fn store(&self) -> &dyn ObjectStore {
        match &*self.0 {
            Backend::Folder { store, .. } => store,
            Backend::S3 { store, .. } => store,
        }
    }
}
