//! Photos of a report that is edited.

use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::statement;
use partner_api_store::transaction::Transaction;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::writing::LockedReport;
use super::{execute, row, rows};
use crate::caller::Inspector;

/// The maximum number of photos of a report.
pub const MAX_PHOTOS: i64 = 200;

statement! {
    /// The number of photos of the report `$1`, and whether its organization `$4` has a point with the code `$2` and a kind of
    /// photos with the code `$3`.
    COUNT = "\
SELECT (SELECT count(*) FROM photos WHERE inspection_id = $1 AND organization_id = $4) AS photos,
       $2::text IS NULL OR EXISTS (
           SELECT 1 FROM form_templates t
           JOIN form_template_points p ON p.template_id = t.id AND p.organization_id = t.organization_id
           WHERE t.organization_id = $4 AND p.code = $2) AS has_point,
       $3::text IS NULL OR EXISTS (
           SELECT 1 FROM form_templates
           WHERE organization_id = $4 AND photo_kinds @> jsonb_build_array(jsonb_build_object('code', $3::text))) AS has_kind";

    /// Changes the photo of the upload `$2` of the report `$1` of the organization `$6`, if there is one.
    REPEAT = "\
UPDATE photos SET kind = $3, point_code = $4, caption = $5 WHERE inspection_id = $1 AND organization_id = $6 AND upload_id = $2";

    /// Records objects (`$1`) of the report `$2` of the organization `$3` as orphaned before they are stored. If the request ends
    /// before a photo references them, `publishing::Worker::delete_orphaned` deletes them.
    RECORD_ORPHANS = "\
INSERT INTO orphaned_objects (object_key, inspection_id, organization_id, delete_at)
SELECT key, i.id, i.organization_id, now() + interval '1 day' FROM unnest($1::text[]) AS key, inspections i
WHERE i.id = $2 AND i.organization_id = $3";

    /// Takes the objects `$1` of a photo that is added from the orphaned ones, except those whose deletion has begun.
    TAKE = "DELETE FROM orphaned_objects WHERE object_key = ANY ($1::text[]) AND NOT is_condemned";

    /// Adds a photo after the others of the report `$2` of the organization `$10`.
    ADD = "\
INSERT INTO photos (id, organization_id, inspection_id, position, kind, point_code, caption, object_key, thumb_object_key, mime_type,
                    size_bytes, upload_id)
SELECT $1, $10, $2, coalesce((SELECT max(position) FROM photos WHERE inspection_id = $2 AND organization_id = $10), 0) + 1, $3, $4,
       $5, $6, $7, 'image/jpeg', $8, $9";

    /// Begins the deletion of orphaned objects (`$1`), which prevents a photo from referencing them. Waits for a transaction that
    /// adds such a photo.
    CONDEMN = "\
UPDATE orphaned_objects SET is_condemned = true, delete_at = now() + interval '10 minutes'
WHERE object_key = ANY ($1::text[]) AND NOT is_condemned RETURNING object_key";

    /// Changes the photo `$2` of the report `$1` of the organization `$6`. Null leaves a member unchanged, and an empty caption
    /// removes it.
    UPDATE = "\
UPDATE photos SET kind = coalesce($3, kind), caption = CASE WHEN $4::text IS NULL THEN caption ELSE nullif($4, '') END,
    show_in_report = coalesce($5, show_in_report)
WHERE inspection_id = $1 AND id = $2 AND organization_id = $6";

    /// Deletes the photo `$2` of the report `$1` of the organization `$3`. Its objects become orphaned, and are deleted when links
    /// to them have expired. An imported photo's objects stay, because other photos may reference them.
    DELETE = "\
WITH gone AS (
    DELETE FROM photos WHERE inspection_id = $1 AND id = $2 AND organization_id = $3
    RETURNING organization_id, inspection_id, object_key, thumb_object_key
), orphaned AS (
    INSERT INTO orphaned_objects (object_key, inspection_id, organization_id, delete_at)
    SELECT key, inspection_id, organization_id, now() + interval '1 hour'
    FROM gone CROSS JOIN LATERAL unnest(ARRAY[object_key, thumb_object_key]) AS key
    WHERE starts_with(key, 'photos/' || inspection_id || '/' || $2::text)
    ON CONFLICT DO NOTHING
)
SELECT 1 FROM gone";

    /// The IDs of the photos of the report `$1` of the organization `$2`.
    IDS = "SELECT id FROM photos WHERE inspection_id = $1 AND organization_id = $2";

    /// Sorts the photos (`$2`) of the report `$1` of the organization `$3` in this order.
    ORDER = "\
UPDATE photos p SET position = o.place::integer FROM unnest($2::uuid[]) WITH ORDINALITY AS o (id, place)
WHERE p.id = o.id AND p.inspection_id = $1 AND p.organization_id = $3";
}

/// What the client states about a photo.
#[derive(Clone, Copy, Debug)]
pub struct Description<'a> {
    /// The kind of photo.
    pub kind: &'a str,
    /// The code of the point that it shows.
    pub point_code: Option<&'a str>,
    /// The caption.
    pub caption: Option<&'a str>,
    /// The ID of its upload. A repeated upload has the same one.
    pub upload_id: Option<Uuid>,
}

/// A photo to add.
#[derive(Clone, Copy, Debug)]
pub struct NewPhoto<'a> {
    /// Its ID.
    pub id: Uuid,
    /// The client's statements.
    pub description: Description<'a>,
    /// The key of its object.
    pub object_key: &'a str,
    /// The key of its thumbnail's object.
    pub thumb_object_key: &'a str,
    /// Its size in bytes.
    pub size_bytes: i64,
}

/// Why a photo was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddError {
    /// The report has the maximum number of photos.
    TooMany,
    /// The organization has no point with the code.
    NoPoint,
    /// The organization's templates have no such kind of photos.
    NoKind,
    /// The request took so long that the deletion of its objects has begun.
    TooLate,
}

/// Checks the description of a photo of a locked report. If its upload has already added it, it gets this description. Returns
/// whether that is so.
///
/// # Errors
/// The database failed.
pub async fn repeat(
    transaction: &Transaction<'_>,
    report: &LockedReport,
    description: Description<'_>,
) -> Result<Result<bool, AddError>, DbError> {
    let Description {
        kind,
        point_code,
        caption,
        upload_id,
    } = description;
    let organization = &report.organization_id;
    let parameters: [&(dyn ToSql + Sync); 4] = [&report.id, &point_code, &kind, organization];
    let Some(found) = row(transaction, COUNT, &parameters).await? else {
        return Ok(Err(AddError::NoPoint));
    };
    if !found.try_get::<_, bool>("has_point")? {
        return Ok(Err(AddError::NoPoint));
    }
    if !found.try_get::<_, bool>("has_kind")? {
        return Ok(Err(AddError::NoKind));
    }
    let parameters: [&(dyn ToSql + Sync); 6] = [&report.id, &upload_id, &kind, &point_code, &caption, organization];
    if upload_id.is_some() && execute(transaction, REPEAT, &parameters).await? > 0 {
        report.increment_version(transaction).await?;
        return Ok(Ok(true));
    }
    if found.try_get::<_, i64>("photos")? >= MAX_PHOTOS {
        return Ok(Err(AddError::TooMany));
    }
    Ok(Ok(false))
}

/// Adds a photo to a locked report, unless its upload has already added it. Returns whether it was added.
///
/// # Errors
/// The database failed.
pub async fn add(
    transaction: &Transaction<'_>,
    report: &LockedReport,
    photo: &NewPhoto<'_>,
) -> Result<Result<bool, AddError>, DbError> {
    match repeat(transaction, report, photo.description).await? {
        Ok(false) => {}
        Ok(true) => return Ok(Ok(false)),
        Err(error) => return Ok(Err(error)),
    }
    let keys = vec![photo.object_key, photo.thumb_object_key];
    if execute(transaction, TAKE, &[&keys]).await? < 2 {
        return Ok(Err(AddError::TooLate));
    }
    let parameters: [&(dyn ToSql + Sync); 10] = [
        &photo.id,
        &report.id,
        &photo.description.kind,
        &photo.description.point_code,
        &photo.description.caption,
        &photo.object_key,
        &photo.thumb_object_key,
        &photo.size_bytes,
        &photo.description.upload_id,
        &report.organization_id,
    ];
    execute(transaction, ADD, &parameters).await?;
    report.increment_version(transaction).await?;
    Ok(Ok(true))
}

/// Records objects of a report of the inspector's organization as orphaned before they are stored.
///
/// # Errors
/// The database failed.
pub async fn record_orphans(
    client: &Connection,
    inspector: &Inspector,
    report: Uuid,
    keys: &[String],
) -> Result<(), DbError> {
    let parameters: [&(dyn ToSql + Sync); 3] = [&keys, &report, &inspector.organization_id()];
    client.execute(RECORD_ORPHANS, &parameters).await?;
    Ok(())
}

/// Begins the deletion of objects that no photo references. Returns the keys that the caller has to delete from the storage.
///
/// # Errors
/// The database failed.
pub async fn begin_deletion(client: &Connection, keys: &[String]) -> Result<Vec<String>, DbError> {
    let rows = client.query(CONDEMN, &[&keys]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Sorts a locked report's photos. Returns false unless `ids` names each photo exactly once and no other photo.
///
/// # Errors
/// The database failed.
pub async fn order(transaction: &Transaction<'_>, report: &LockedReport, ids: &[Uuid]) -> Result<bool, DbError> {
    let mut existing: Vec<Uuid> = Vec::new();
    for row in rows(transaction, IDS, &[&report.id, &report.organization_id]).await? {
        existing.push(row.try_get(0)?);
    }
    let mut named = ids.to_vec();
    named.sort_unstable();
    existing.sort_unstable();
    if named != existing {
        return Ok(false);
    }
    execute(transaction, ORDER, &[&report.id, &ids, &report.organization_id]).await?;
    report.increment_version(transaction).await?;
    Ok(true)
}

/// Changes of a photo; `None` leaves a member unchanged.
#[derive(Clone, Debug, Default)]
pub struct PhotoUpdate<'a> {
    /// The kind of photo.
    pub kind: Option<&'a str>,
    /// The caption; an empty one removes it.
    pub caption: Option<&'a str>,
    /// Whether it is shown.
    pub is_shown: Option<bool>,
}

/// Why a photo was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateError {
    /// The report has no such photo.
    NoPhoto,
    /// The organization's templates have no such kind of photos.
    NoKind,
}

/// Changes a photo of a locked report.
///
/// # Errors
/// The database failed.
pub async fn update(
    transaction: &Transaction<'_>,
    report: &LockedReport,
    id: Uuid,
    update: &PhotoUpdate<'_>,
) -> Result<Result<(), UpdateError>, DbError> {
    let organization = &report.organization_id;
    let parameters: [&(dyn ToSql + Sync); 4] = [&report.id, &None::<&str>, &update.kind, organization];
    let found = row(transaction, COUNT, &parameters).await?;
    if let Some(found) = found
        && !found.try_get::<_, bool>("has_kind")?
    {
        return Ok(Err(UpdateError::NoKind));
    }
    let parameters: [&(dyn ToSql + Sync); 6] = [
        &report.id,
        &id,
        &update.kind,
        &update.caption,
        &update.is_shown,
        organization,
    ];
    if execute(transaction, UPDATE, &parameters).await? == 0 {
        return Ok(Err(UpdateError::NoPhoto));
    }
    report.increment_version(transaction).await?;
    Ok(Ok(()))
}

/// Deletes a photo of a locked report. Returns false if the report has no such photo.
///
/// # Errors
/// The database failed.
pub async fn delete(transaction: &Transaction<'_>, report: &LockedReport, id: Uuid) -> Result<bool, DbError> {
    let parameters: [&(dyn ToSql + Sync); 3] = [&report.id, &id, &report.organization_id];
    let is_found = row(transaction, DELETE, &parameters).await?.is_some();
    report.increment_version(transaction).await?;
    Ok(is_found)
}
