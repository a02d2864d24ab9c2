//! Photos of a report that is written.

use partner_api::db::DbError;
use partner_api::db::connection::Connection;
use partner_api::db::transaction::Transaction;
use partner_api::statement;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::writing::{CHANGED, Locked};
use super::{execute, row, rows};

/// The photos that a report may have.
pub const MOST: i64 = 200;

statement! {
    /// How many photos the report `$1` has, and whether its organisation has a point with the code `$2`.
    COUNT = "\
SELECT (SELECT count(*) FROM photos WHERE inspection_id = $1) AS photos,
       $2::text IS NULL OR EXISTS (
           SELECT FROM inspections i JOIN form_templates t ON t.organization_id = i.organization_id
           JOIN form_template_points p ON p.template_id = t.id WHERE i.id = $1 AND p.code = $2) AS has_point";

    /// Adds a photo behind the others.
    ADD = "\
INSERT INTO photos (id, inspection_id, position, kind, point_code, caption, object_key, thumb_object_key, mime_type, size_bytes)
SELECT $1, $2, coalesce((SELECT max(position) FROM photos WHERE inspection_id = $2), 0) + 1, $3, $4, $5, $6, $7, 'image/jpeg', $8";

    /// Whether any report has the photo `$1`.
    IS_THERE = "SELECT EXISTS (SELECT FROM photos WHERE id = $1)";

    /// The ids of the report's photos.
    IDS = "SELECT id FROM photos WHERE inspection_id = $1";

    /// Puts photos (`$2`) of the report `$1` into this order.
    ORDER = "\
UPDATE photos p SET position = o.place::integer FROM unnest($2::uuid[]) WITH ORDINALITY AS o (id, place)
WHERE p.id = o.id AND p.inspection_id = $1";
}

/// A photo to add.
#[derive(Clone, Debug)]
pub struct NewPhoto<'a> {
    /// Its id.
    pub id: Uuid,
    /// What it shows.
    pub kind: &'a str,
    /// The point that it shows.
    pub point_code: Option<&'a str>,
    /// What stands below it.
    pub caption: Option<&'a str>,
    /// The object that holds it.
    pub object_key: &'a str,
    /// The object that holds its small version.
    pub thumb_object_key: &'a str,
    /// Its size in bytes.
    pub size_bytes: i64,
}

/// What keeps a photo from being added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unadded {
    /// The report has as many as it may have.
    TooMany,
    /// The organisation has no such point.
    NoPoint,
}

/// Adds a photo to a locked report.
///
/// # Errors
/// What the database says.
pub async fn add(
    transaction: &Transaction<'_>,
    report: &Locked,
    photo: &NewPhoto<'_>,
) -> Result<Result<(), Unadded>, DbError> {
    let found = row(transaction, COUNT, &[&report.id, &photo.point_code]).await?;
    let Some(found) = found else {
        return Ok(Err(Unadded::NoPoint));
    };
    if found.try_get::<_, i64>("photos")? >= MOST {
        return Ok(Err(Unadded::TooMany));
    }
    if !found.try_get::<_, bool>("has_point")? {
        return Ok(Err(Unadded::NoPoint));
    }
    let parameters: [&(dyn ToSql + Sync); 8] = [
        &photo.id,
        &report.id,
        &photo.kind,
        &photo.point_code,
        &photo.caption,
        &photo.object_key,
        &photo.thumb_object_key,
        &photo.size_bytes,
    ];
    execute(transaction, ADD, &parameters).await?;
    execute(transaction, CHANGED, &[&report.id]).await?;
    Ok(Ok(()))
}

/// Whether any report has a photo.
///
/// # Errors
/// What the database says.
pub async fn is_there(client: &Connection, photo: Uuid) -> Result<bool, DbError> {
    Ok(client.query_one(IS_THERE, &[&photo]).await?.try_get(0)?)
}

/// Puts a locked report's photos into an order; false unless each is named, and no other.
///
/// # Errors
/// What the database says.
pub async fn order(transaction: &Transaction<'_>, report: &Locked, ids: &[Uuid]) -> Result<bool, DbError> {
    let mut there: Vec<Uuid> = Vec::new();
    for row in rows(transaction, IDS, &[&report.id]).await? {
        there.push(row.try_get(0)?);
    }
    let mut named = ids.to_vec();
    named.sort_unstable();
    there.sort_unstable();
    if named != there {
        return Ok(false);
    }
    execute(transaction, ORDER, &[&report.id, &ids]).await?;
    execute(transaction, CHANGED, &[&report.id]).await?;
    Ok(true)
}
