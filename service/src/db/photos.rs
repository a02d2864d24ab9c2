//! The photos of a report that partners see.

use uuid::Uuid;

use super::inspections::Visible;
use super::{DbError, connection::Connection};
use crate::rules::personal::StoredText;
use crate::statement;

statement! {
    /// The view leaves out what is never returned: registration documents, archive documents of third parties and photos
    /// kept out of the report (REP-7).
    LIST = "SELECT p.id, p.kind, p.point_code, p.caption, p.object_key, p.thumb_object_key, p.mime_type, \
    p.size_bytes FROM shown_photos p WHERE p.inspection_id = $1::uuid ORDER BY p.position, p.id";
}

/// A photo of a report, its caption as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Photo {
    /// Its id.
    pub id: Uuid,
    /// What it shows, a code.
    pub kind: String,
    /// The form point it belongs to.
    pub point_code: Option<String>,
    /// The inspector's caption.
    pub caption: Option<StoredText>,
    /// The object that holds it.
    pub object_key: String,
    /// The object that holds a small version of it.
    pub thumb_object_key: Option<String>,
    /// Its media type.
    pub mime_type: String,
    /// Its size in bytes.
    pub size_bytes: i64,
}

/// The photos of a report that partners see, in the report's order.
///
/// # Errors
/// [`DbError`] when the query fails.
pub async fn list(client: &Connection, inspection: &Visible) -> Result<Vec<Photo>, DbError> {
    let rows = client.query(LIST, &[&inspection.id()]).await?;
    rows.iter()
        .map(|row| {
            Ok(Photo {
                id: row.try_get("id")?,
                kind: row.try_get("kind")?,
                point_code: row.try_get("point_code")?,
                caption: row.try_get("caption")?,
                object_key: row.try_get("object_key")?,
                thumb_object_key: row.try_get("thumb_object_key")?,
                mime_type: row.try_get("mime_type")?,
                size_bytes: row.try_get("size_bytes")?,
            })
        })
        .collect()
}
