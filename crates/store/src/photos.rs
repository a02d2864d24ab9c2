//! The photos of a report that partners may see.

use partner_api_domain::grants::Grants;
use partner_api_domain::personal::StoredText;
use uuid::Uuid;

use super::inspections::{Columns, Visible, with_visible};
use super::{DbError, standby::Reader};
use crate::statement;

statement! {
    /// A row for each shown photo (REP-7), or one row with a null photo if the report has none.
    LIST = concat!(
    with_visible!(),
    ", shown AS MATERIALIZED (SELECT p.* FROM visible \
     JOIN shown_photos p ON p.inspection_id = visible.id AND p.organization_id = visible.organization_id) \
     SELECT visible.id, visible.pii_mode, p.id, p.kind, p.point_code, p.caption, p.object_key, p.thumb_object_key, p.mime_type, \
     p.size_bytes FROM visible LEFT JOIN shown p ON true ORDER BY p.position, p.id"
);
}

/// A photo of a report, with its caption as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Photo {
    /// The ID.
    pub id: Uuid,
    /// The code of the kind of photo.
    pub kind: String,
    /// The point that the photo shows.
    pub point_code: Option<String>,
    /// The inspector's caption.
    pub caption: Option<StoredText>,
    /// The key of the stored photo.
    pub object_key: String,
    /// The key of the stored thumbnail.
    pub thumb_object_key: Option<String>,
    /// The media type.
    pub mime_type: String,
    /// The size in bytes.
    pub size_bytes: i64,
}

/// Returns a report that the partner may see, and its photos in the order of the report.
///
/// # Errors
/// If the query fails.
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
        let visible = Visible::take(&mut columns)?;
        let (_, photos) = found.get_or_insert_with(|| (visible, Vec::with_capacity(rows.len())));
        photos.extend(photo(columns)?);
    }
    Ok(found)
}

/// Reads the photo of a row; `None` if the report has no photos.
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
