//! Objects in the storage that no report references, and their deletion.

use uuid::Uuid;

use super::DbError;
use super::connection::{Connection, Parameters};
use crate::statement;

statement! {
    /// Schedules the deletion of an object that no report references.
    DISCARD = "UPDATE orphaned_objects SET delete_at = now() WHERE object_key = $1::text AND NOT is_condemned";

    /// Locks orphaned objects that are due. If the replica crashes before it deletes them, they are returned again.
    LOCK_DUE = "\
SELECT object_key, inspection_id, organization_id FROM orphaned_objects
WHERE delete_at <= now() ORDER BY delete_at LIMIT 100 FOR UPDATE SKIP LOCKED";

    /// Those objects (`$1`) of reports (`$2`) of organizations (`$3`) that the report references again, as its PDF or as a photo.
    REFERENCED = "\
SELECT u.object_key
FROM unnest($1::text[], $2::uuid[], $3::uuid[]) AS u (object_key, inspection_id, organization_id)
JOIN inspections i ON i.id = u.inspection_id AND i.organization_id = u.organization_id AND i.pdf_object_key = u.object_key
UNION ALL
SELECT u.object_key
FROM unnest($1::text[], $2::uuid[], $3::uuid[]) AS u (object_key, inspection_id, organization_id)
JOIN photos p ON p.inspection_id = u.inspection_id AND p.organization_id = u.organization_id
    AND u.object_key IN (p.object_key, p.thumb_object_key)";

    /// Removes the records of objects that are referenced again.
    REMOVE = "DELETE FROM orphaned_objects WHERE object_key = ANY ($1::text[])";

    /// Begins the deletion of objects.
    CONDEMN = "\
UPDATE orphaned_objects SET is_condemned = true, delete_at = now() + interval '10 minutes' WHERE object_key = ANY ($1::text[])";

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
    let transaction = client.transaction();
    let prepare = async |statement| transaction.prepare(statement).await;
    let (lock, referenced) = (prepare(LOCK_DUE).await?, prepare(REFERENCED).await?);
    let (remove, condemn) = (prepare(REMOVE).await?, prepare(CONDEMN).await?);
    let (mut keys, mut reports, mut owners) = (Vec::<String>::new(), Vec::<Uuid>::new(), Vec::<Uuid>::new());
    for row in transaction.query(&lock, &[]).await? {
        keys.push(row.try_get(0)?);
        reports.push(row.try_get(1)?);
        owners.push(row.try_get(2)?);
    }
    if keys.is_empty() {
        transaction.rollback().await?;
        return Ok(keys);
    }
    let mut referenced_keys: Vec<String> = Vec::new();
    for row in transaction.query(&referenced, &[&keys, &reports, &owners]).await? {
        referenced_keys.push(row.try_get(0)?);
    }
    keys.retain(|key| !referenced_keys.contains(key));
    let (of_referenced, of_condemned): (&Parameters<'_>, &Parameters<'_>) = (&[&referenced_keys], &[&keys]);
    let (removed, condemned, committed) = futures::join!(
        transaction.execute(&remove, of_referenced),
        transaction.execute(&condemn, of_condemned),
        transaction.commit()
    );
    removed.and(condemned)?;
    committed?;
    Ok(keys)
}

/// Removes the record of an object that has been deleted.
///
/// # Errors
/// If the query fails.
pub async fn deleted(client: &Connection, key: &str) -> Result<(), DbError> {
    client.execute(DELETED, &[&key]).await?;
    Ok(())
}
