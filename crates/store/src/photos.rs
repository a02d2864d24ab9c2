//! The photos of a report that partners see.

use partner_api_domain::grants::Grants;
use partner_api_domain::personal::StoredText;
use uuid::Uuid;

use super::inspections::{Columns, Visible, with_seen};
use super::{DbError, standby::Reader};
use crate::statement;

macro_rules! columns {
    () => {
        "p.id, p.kind, p.point_code, p.caption, p.object_key, p.thumb_object_key, p.mime_type, p.size_bytes"
    };
}

statement! {
    /// A row for each photo that is shown (REP-7), and one with a null photo for a report without any.
    LIST = concat!(
    with_seen!(),
    " SELECT seen.id, seen.pii_mode, ",
    columns!(),
    " FROM seen LEFT JOIN shown_photos p ON p.inspection_id = seen.id",
    " ORDER BY p.position, p.id"
);
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

/// A report that a partner sees and its photos, in the report's order.
///
/// # Errors
/// [`DbError`] when the query fails.
pub async fn list(
    client: &Reader,
    grants: &Grants,
    inspection: Uuid,
) -> Result<Option<(Visible, Vec<Photo>)>, DbError> {
    let rows = client
        .query(LIST, &[&inspection, &grants.whole(), &grants.branches()])
        .await?;
    let mut found = None;
    for row in &rows {
        let mut columns = Columns::of(row);
        let seen = Visible::take(&mut columns)?;
        let (_, photos) = found.get_or_insert_with(|| (seen, Vec::with_capacity(rows.len())));
        photos.extend(photo(columns)?);
    }
    Ok(found)
}

/// The photo of a row; `None` when it has none.
fn photo(mut columns: Columns<'_>) -> Result<Option<Photo>, DbError> {
    let Some(id) = columns.take()? else {
        return Ok(None);
    };
    Ok(Some(Photo {
        id,
        kind: columns.take()?,
        point_code: columns.take()?,
        caption: columns.take::<Option<String>>()?.map(StoredText::from),
        object_key: columns.take()?,
        thumb_object_key: columns.take()?,
        mime_type: columns.take()?,
        size_bytes: columns.take()?,
    }))
}
