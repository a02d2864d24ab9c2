//! Where photos and reports are kept: an S3-compatible service, or a folder whose links the service signs and serves
//! itself. Both hand out links that anybody who holds them can read until they expire.

use std::{fmt, fs::DirBuilder, os::unix::fs::DirBuilderExt, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use object_store::{
    Attribute, Attributes, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutOptions, PutPayload,
    aws::AmazonS3,
    local::LocalFileSystem,
    signer::{Method, Signer},
};
use thiserror::Error;

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

/// How long the links to photos are good for: 900 s (REP-7).
pub const LINK_LIFETIME: Duration = Duration::from_secs(900);

/// Why an object cannot be stored, read or linked to.
#[derive(Debug, Error)]
pub enum StorageError {
    /// Not a key: see the rules at `put`.
    #[error("not a valid object key")]
    InvalidKey,
    /// There is no such object.
    #[error("no object has the key {0}")]
    NotFound(String),
    /// The object has none of the bytes that were asked for.
    #[error("the object has {size} bytes, and none of those asked for")]
    Outside {
        /// How many it has.
        size: u64,
    },
    /// The content type is not the one that the key's ending stands for.
    #[error("an object {key} has the content type {expected}, not {given}")]
    ContentType {
        /// The key.
        key: String,
        /// What its ending stands for.
        expected: &'static str,
        /// What was given.
        given: String,
    },
    /// The store cannot be set up.
    #[error("the object storage cannot be set up: {0}")]
    Setup(String),
    /// The store failed.
    #[error("object storage: {0}")]
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

/// A link that needs no further proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresignedUrl {
    /// The whole URL.
    pub url: String,
    /// Until when it is good, in whole seconds.
    pub expires_at: DateTime<Utc>,
}

/// An object being read, or a part of it.
pub struct StoredObject {
    /// How many bytes are read.
    pub content_length: u64,
    /// The first of them, counted from 0.
    pub first: u64,
    /// How many bytes the object has.
    pub size: u64,
    /// What the store calls this content of the object.
    pub e_tag: Option<String>,
    /// Its media type.
    pub content_type: String,
    /// Its bytes, read as they are asked for.
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
    Folder { store: LocalFileSystem, links: LinkSigner },
    // `signer` differs from `store` where partners reach the service under another name than we do.
    S3 { store: AmazonS3, signer: AmazonS3 },
}

/// The object store in use. Cheap to clone.
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
    /// A folder, made unless it exists. Its links begin with `<public_url>/files/` and are signed with `link_key`.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn folder(folder: &Path, public_url: &str, link_key: Derived) -> Result<Self, StorageError> {
        let failed = |error: &dyn fmt::Display| StorageError::Setup(format!("{}: {error}", folder.display()));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| failed(&error))?;
        let store = LocalFileSystem::new_with_prefix(folder).map_err(|error| failed(&error))?;
        // A report that its database row names must survive a crash as the row does.
        let store = store.with_fsync(true);
        Ok(Self(Arc::new(Backend::Folder {
            store,
            links: LinkSigner::new(public_url, link_key),
        })))
    }

    /// An S3-compatible service. Nothing is asked of it yet.
    ///
    /// # Errors
    /// The settings cannot be used.
    pub fn s3(settings: &S3Settings) -> Result<Self, StorageError> {
        let store = settings.build(settings.endpoint.as_deref())?;
        let signer = match &settings.public_endpoint {
            Some(endpoint) => settings.build(Some(endpoint))?,
            None => store.clone(),
        };
        Ok(Self(Arc::new(Backend::S3 { store, signer })))
    }

    /// Whether the service itself serves the links (`/files/...`).
    #[must_use]
    pub fn serves_links(&self) -> bool {
        matches!(&*self.0, Backend::Folder { .. })
    }

    /// Stores an object, whole or not at all, in place of one that has the same key.
    ///
    /// A key consists of segments of `A-Z a-z 0-9 - _ .` joined by slashes, none of which begins with a dot. The content
    /// type must be the one that the key's ending stands for ([`content_type`]).
    ///
    /// # Errors
    /// A bad key or content type, or the store failed.
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
    /// There is none, or the store failed.
    pub async fn stream(&self, key: &str) -> Result<StoredObject, StorageError> {
        self.open(key, None).await
    }

    /// Opens a part of an object for reading.
    ///
    /// # Errors
    /// There is no object, it has none of these bytes, or the store failed.
    pub async fn stream_part(&self, key: &str, part: ByteRange) -> Result<StoredObject, StorageError> {
        let asked = match part {
            ByteRange::From(first) => GetRange::Offset(first),
            ByteRange::Within(first, last) => GetRange::Bounded(first..last.saturating_add(1)),
            ByteRange::Last(count) => GetRange::Suffix(count),
        };
        let failed = match self.open(key, Some(asked)).await {
            Err(StorageError::Store(error)) => error,
            outcome => return outcome,
        };
        // A store refuses what lies outside in words of its own.
        let size = self.store().head(&key::check(key)?).await?.size;
        match part.of(size) {
            None => Err(StorageError::Outside { size }),
            Some(_) => Err(StorageError::Store(failed)),
        }
    }

    async fn open(&self, key: &str, range: Option<GetRange>) -> Result<StoredObject, StorageError> {
        let options = GetOptions {
            range,
            ..GetOptions::default()
        };
        let found = self.store().get_opts(&key::check(key)?, options).await?;
        Ok(StoredObject {
            content_length: found.range.end - found.range.start,
            first: found.range.start,
            size: found.meta.size,
            e_tag: found.meta.e_tag.clone(),
            content_type: key::content_type(key).to_owned(),
            stream: found.into_stream().map_err(StorageError::from).boxed(),
        })
    }

    /// Deletes an object; that there is none is as good. Who is reading it reads on.
    ///
    /// # Errors
    /// A bad key, or the store failed.
    pub async fn delete(&self, key: &str) -> Result<(), StorageError> {
        match self.store().delete(&key::check(key)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether there is such an object.
    ///
    /// # Errors
    /// A bad key, or the store failed.
    pub async fn exists(&self, key: &str) -> Result<bool, StorageError> {
        match self.store().head(&key::check(key)?).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// A link to an object, good for `lifetime` from now ([`LINK_LIFETIME`]). Whether the object exists is not asked.
    ///
    /// # Errors
    /// A bad key, or (S3) credentials that cannot be had.
    pub async fn presign(&self, key: &str, lifetime: Duration) -> Result<PresignedUrl, StorageError> {
        self.presign_at(key, lifetime, Utc::now()).await
    }

    /// [`Storage::presign`] at a given time. S3 links always begin now.
    ///
    /// # Errors
    /// As [`Storage::presign`].
    pub async fn presign_at(
        &self,
        key: &str,
        lifetime: Duration,
        now: DateTime<Utc>,
    ) -> Result<PresignedUrl, StorageError> {
        let path = key::check(key)?;
        let setup = |error: &dyn fmt::Display| StorageError::Setup(format!("link lifetime: {error}"));
        // S3 counts from the whole second in which it signed, and so do we.
        let expires_at = now
            .duration_trunc(TimeDelta::seconds(1))
            .map_err(|error| setup(&error))?
            + TimeDelta::from_std(lifetime).map_err(|error| setup(&error))?;
        let url = match &*self.0 {
            Backend::Folder { links, .. } => links.sign(key, expires_at.timestamp()),
            Backend::S3 { signer, .. } => signer.signed_url(Method::GET, &path, lifetime).await?.into(),
        };
        Ok(PresignedUrl { url, expires_at })
    }

    /// Whether a link to the folder's `key` (what follows `/files/`), with these query parameters, is to be served at `now`.
    /// A link is good up to and including the second `expires`.
    ///
    /// # Errors
    /// It is not ours, or has expired. With S3 no link is ours.
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
