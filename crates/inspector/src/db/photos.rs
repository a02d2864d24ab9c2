//! Photos of a report that is written.

use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::statement;
use partner_api_store::transaction::Transaction;
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

    /// Notes objects (`$1`) of the report `$2` before they are stored, so that a request that ends before the report names them
    /// leaves none that nobody knows of: `publishing::Worker::delete_unnamed` finds them.
    NOTE = "\
INSERT INTO orphaned_objects (object_key, inspection_id, organization_id, delete_at)
SELECT key, i.id, i.organization_id, now() + interval '1 day' FROM unnest($1::text[]) AS key, inspections i WHERE i.id = $2";

    /// Adds a photo behind the others, whose two objects have a name then, unless their deletion has begun.
    ADD = "\
WITH named AS (
    DELETE FROM orphaned_objects WHERE object_key IN ($6, $7) AND NOT is_condemned RETURNING object_key
)
INSERT INTO photos (id, organization_id, inspection_id, position, kind, point_code, caption, object_key, thumb_object_key, mime_type,
                    size_bytes)
SELECT $1, i.organization_id, i.id, coalesce((SELECT max(position) FROM photos WHERE inspection_id = $2), 0) + 1, $3, $4, $5, $6, $7,
       'image/jpeg', $8
FROM inspections i WHERE i.id = $2 AND (SELECT count(*) FROM named) = 2";

    /// Begins the deletion of objects (`$1`) that have no name: none will come to have one. Waits for whoever gives them one.
    CONDEMN = "\
UPDATE orphaned_objects SET is_condemned = true, delete_at = now() + interval '10 minutes'
WHERE object_key = ANY ($1::text[]) AND NOT is_condemned RETURNING object_key";

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
    /// The request has taken so long that its objects are being deleted.
    TooLate,
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
    if execute(transaction, ADD, &parameters).await? == 0 {
        return Ok(Err(Unadded::TooLate));
    }
    execute(transaction, CHANGED, &[&report.id]).await?;
    Ok(Ok(()))
}

/// Notes objects of a report that are about to be stored.
///
/// # Errors
/// What the database says.
pub async fn note(client: &Connection, report: Uuid, keys: &[String]) -> Result<(), DbError> {
    client.execute(NOTE, &[&keys, &report]).await?;
    Ok(())
}

/// Those of the objects that are now to be deleted, for no report names them or ever will.
///
/// # Errors
/// What the database says.
pub async fn condemn(client: &Connection, keys: &[String]) -> Result<Vec<String>, DbError> {
    let rows = client.query(CONDEMN, &[&keys]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
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
