//! Objects in the storage that no report references, and their deletion.

use super::DbError;
use super::connection::Connection;
use crate::statement;

statement! {
    /// Schedules the deletion of an object that no report references.
    DISCARD = "UPDATE orphaned_objects SET delete_at = now() WHERE object_key = $1::text AND NOT is_condemned";

    /// Claims orphaned objects for deletion, except those that a report references again, as its PDF or as a photo. If the replica
    /// crashes before it deletes them, they are returned again.
    CLAIM = "\
WITH due AS (
    SELECT u.object_key, EXISTS (
        SELECT FROM inspections i WHERE i.id = u.inspection_id AND i.pdf_object_key = u.object_key
        UNION ALL
        SELECT FROM photos p
        WHERE p.inspection_id = u.inspection_id AND u.object_key IN (p.object_key, p.thumb_object_key)) AS is_referenced
    FROM orphaned_objects u WHERE u.delete_at <= now() ORDER BY u.delete_at LIMIT 100 FOR UPDATE SKIP LOCKED
), spared AS (
    DELETE FROM orphaned_objects u USING due WHERE u.object_key = due.object_key AND due.is_referenced
)
UPDATE orphaned_objects u SET is_condemned = true, delete_at = now() + interval '10 minutes'
FROM due WHERE u.object_key = due.object_key AND NOT due.is_referenced
RETURNING u.object_key";

    /// Removes the record of a deleted object.
    DELETED = "DELETE FROM orphaned_objects WHERE object_key = $1::text AND is_condemned";
}

/// Schedules the immediate deletion of an object that no report references.
///
/// # Errors
/// If the query fails.
pub async fn discard(client: &Connection, key: &str) -> Result<(), DbError> {
    client.execute(DISCARD, &[&key]).await?;
    Ok(())
}

/// Returns the keys of the objects to delete from the storage now. No report references them, and none can anymore.
///
/// # Errors
/// If the query fails.
pub async fn claim(client: &Connection) -> Result<Vec<String>, DbError> {
    let rows = client.query(CLAIM, &[]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Removes the record of an object that has been deleted.
///
/// # Errors
/// If the query fails.
pub async fn deleted(client: &Connection, key: &str) -> Result<(), DbError> {
    client.execute(DELETED, &[&key]).await?;
    Ok(())
}
