//! The objects of the migrated schema, for the check that none was removed or disabled by hand.

use std::collections::BTreeSet;

use super::DbError;
use super::connection::Connection;
use crate::statement;

/// The objects that the migrations create, one a line, sorted. A test compares the file with a migrated database; `RECORD=1`
/// writes it.
pub const EXPECTED: &str = include_str!("schema.txt");

statement! {
    /// The usable objects of the schema without partitions: an invalid index or a disabled trigger is not one.
    OBJECTS = "\
WITH tables AS (
    SELECT oid, relname, relkind FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'S') AND NOT relispartition)
SELECT CASE relkind WHEN 'v' THEN 'view ' WHEN 'S' THEN 'sequence ' ELSE 'table ' END || relname AS object FROM tables
UNION ALL
SELECT 'index ' || c.relname || ' on ' || t.relname
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN tables t ON t.oid = i.indrelid WHERE i.indisvalid
UNION ALL
SELECT 'trigger ' || g.tgname || ' on ' || t.relname
FROM pg_trigger g JOIN tables t ON t.oid = g.tgrelid WHERE NOT g.tgisinternal AND g.tgenabled IN ('O', 'A')
UNION ALL
SELECT 'constraint ' || k.conname || ' on ' || t.relname
FROM pg_constraint k JOIN tables t ON t.oid = k.conrelid WHERE k.contype IN ('c', 'f')
UNION ALL
SELECT DISTINCT 'function ' || p.proname FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace";
    /// The indexes of partitioned tables that are not usable on a partition. These tables have no triggers.
    UNUSABLE_ON_PARTITIONS = "\
SELECT 'index ' || c.relname || ' on ' || p.relname AS object
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class p ON p.oid = i.indrelid
WHERE p.relispartition AND p.relnamespace = 'public'::regnamespace AND NOT i.indisvalid
ORDER BY object";
}

/// Returns the usable objects of the schema, as in [`EXPECTED`].
///
/// # Errors
/// If the database does not respond.
pub async fn objects(connection: &Connection) -> Result<BTreeSet<String>, DbError> {
    let rows = connection.query(OBJECTS, &[]).await?;
    Ok(rows.iter().map(|row| row.try_get("object")).collect::<Result<_, _>>()?)
}

/// Returns the objects of [`EXPECTED`] that do not exist or are not usable, and the indexes of partitions that are not.
///
/// # Errors
/// If the database does not respond.
pub async fn missing(connection: &Connection) -> Result<Vec<String>, DbError> {
    let existing = objects(connection).await?;
    let expected = EXPECTED.lines().filter(|object| !existing.contains(*object));
    let mut missing: Vec<_> = expected.map(ToOwned::to_owned).collect();
    for row in connection.query(UNUSABLE_ON_PARTITIONS, &[]).await? {
        missing.push(row.try_get("object")?);
    }
    Ok(missing)
}
