//! The stored files that a database refers to, and copies of them.

use std::path::Path;
use std::pin::pin;

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use partner_api::config::{Config, StorageChoice};
use partner_api::storage::{Storage, StorageError, content_type};
use partner_api_store::secrets::{MasterKey, purpose};
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Row};

use crate::failure::Failure;

partner_api_store::statement! {
    /// The objects that reports show, with what is known of their bytes.
    OBJECTS = "\
SELECT p.object_key, p.size_bytes, NULL::bytea AS sha256 FROM photos p
UNION ALL
SELECT p.thumb_object_key, NULL, NULL FROM photos p WHERE p.thumb_object_key IS NOT NULL
UNION ALL
SELECT d.object_key, d.size_bytes, d.sha256
FROM inspections i JOIN published_pdfs d ON d.object_key = i.pdf_object_key AND d.organization_id = i.organization_id";
}

/// The number of objects that are read at a time.
pub(super) const PARALLEL: usize = 8;

/// An object that a database refers to.
pub(super) struct Object {
    pub(super) key: String,
    pub(super) size: Option<i64>,
    pub(super) sha256: Option<Vec<u8>>,
}

/// The numbers of objects after a copy.
#[derive(Debug, Default)]
pub(super) struct Copied {
    /// The objects in the copy.
    pub(super) all: u64,
    /// Those that were not in it before.
    pub(super) new: u64,
    /// The key of an object that does not exist any more, and the number of these.
    pub(super) missing: Option<(String, u64)>,
}

/// Whether an object is in the copy.
enum Outcome {
    Present,
    Written,
    Missing(String),
}

/// Opens the object storage of the configuration, or a folder with a copy of it.
pub(super) fn storage(config: &Config, copy: Option<&Path>) -> Result<Storage, Failure> {
    let mut config = config.clone();
    if let Some(folder) = copy {
        if !folder.is_dir() {
            return Err(Failure::Usage(format!("--files: {} is not a folder", folder.display())));
        }
        config.storage = StorageChoice::Folder(folder.to_owned());
    }
    // No link is signed here, so the machine that makes backups needs no master key.
    let links = MasterKey::generate()?.derive(purpose::LINKS);
    config
        .open_storage("http://127.0.0.1", links)
        .map_err(|error| Failure::Unhealthy(error.to_string()))
}

/// Reads the objects of a database one after the other, because a list of all of them may not fit into memory.
pub(super) async fn referenced(
    client: &impl GenericClient,
) -> Result<BoxStream<'static, Result<Object, Failure>>, Failure> {
    let rows = client
        .query_raw(OBJECTS.sql(), Vec::<&(dyn ToSql + Sync)>::new())
        .await?;
    Ok(rows.map(|row| read(&row?).map_err(Failure::from)).boxed())
}

fn read(row: &Row) -> Result<Object, tokio_postgres::Error> {
    Ok(Object {
        key: row.try_get("object_key")?,
        size: row.try_get("size_bytes")?,
        sha256: row.try_get("sha256")?,
    })
}

/// Copies the objects of a database that are not in `to` yet. An object is never changed, so one with the right size is complete.
pub(super) async fn copy(client: &impl GenericClient, from: &Storage, to: &Storage) -> Result<Copied, Failure> {
    let objects = referenced(client).await?;
    let mut outcomes = pin!(
        objects
            .map(|object| async { copy_object(from, to, object?).await })
            .buffer_unordered(PARALLEL)
    );
    let mut copied = Copied::default();
    while let Some(outcome) = outcomes.try_next().await? {
        match outcome {
            Outcome::Present => copied.all += 1,
            Outcome::Written => {
                copied.all += 1;
                copied.new += 1;
            }
            Outcome::Missing(key) => copied.missing.get_or_insert((key, 0)).1 += 1,
        }
    }
    Ok(copied)
}

async fn copy_object(from: &Storage, to: &Storage, object: Object) -> Result<Outcome, Failure> {
    let failed = |error: StorageError| Failure::Unhealthy(format!("{}: {error}", object.key));
    match to.stream(&object.key).await {
        Ok(found) if object.size.is_none_or(|size| u64::try_from(size) == Ok(found.size)) => {
            return Ok(Outcome::Present);
        }
        Ok(_) | Err(StorageError::NotFound(_)) => {}
        Err(error) => return Err(failed(error)),
    }
    let bytes = match from.read(&object.key).await {
        Err(StorageError::NotFound(_)) => return Ok(Outcome::Missing(object.key)),
        read => read.map_err(failed)?,
    };
    to.put(&object.key, bytes, content_type(&object.key))
        .await
        .map_err(failed)?;
    Ok(Outcome::Written)
}
