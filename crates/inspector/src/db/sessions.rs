//! The inspectors' sessions (INS-4).

use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::statement;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::caller::{Branch, Session};

statement! {
    /// Begins a session with the cookie's digest `$2`, if the token with the digest `$1` is active.
    BEGIN = "\
WITH inspector AS (SELECT id, organization_id FROM inspectors WHERE token_hash = $1 AND revoked_at IS NULL)
INSERT INTO inspector_sessions (cookie_hash, inspector_id, organization_id)
SELECT $2, id, organization_id FROM inspector";

    /// The valid session of the cookie's digest `$1`: a row for each active branch, or one row without a branch. If `$2` is true, the
    /// session is kept alive, at most every 30 s.
    FIND = "\
WITH session AS (
    SELECT s.cookie_hash, s.inspector_id, s.organization_id, i.name, s.created_at + interval '12 hours' AS ends_at
    FROM inspector_sessions s JOIN inspectors i ON i.id = s.inspector_id
    WHERE s.cookie_hash = $1 AND i.revoked_at IS NULL AND s.created_at > now() - interval '12 hours'
      AND s.seen_at > now() - interval '30 minutes'
), touched AS (
    UPDATE inspector_sessions t SET seen_at = now() FROM session
    WHERE $2 AND t.cookie_hash = session.cookie_hash AND t.seen_at < now() - interval '30 seconds'
)
SELECT session.inspector_id, session.organization_id, session.name, session.ends_at, b.id AS branch_id, b.code AS branch_code,
       b.name AS branch_name
FROM session
LEFT JOIN (inspector_branches ib JOIN branches b ON b.id = ib.branch_id AND b.organization_id = ib.organization_id AND b.is_active)
       ON ib.inspector_id = session.inspector_id AND ib.organization_id = session.organization_id
ORDER BY b.code, b.id";

    /// The active branches of the valid session of a cookie's digest. Does not keep the session alive.
    BRANCHES = "\
WITH session AS MATERIALIZED (
    SELECT s.inspector_id, s.organization_id FROM inspector_sessions s JOIN inspectors i ON i.id = s.inspector_id
    WHERE s.cookie_hash = $1 AND i.revoked_at IS NULL AND s.created_at > now() - interval '12 hours'
      AND s.seen_at > now() - interval '30 minutes'
)
SELECT coalesce(array_agg(b.id ORDER BY b.code, b.id) FILTER (WHERE b.id IS NOT NULL), '{}') AS branches
FROM session
LEFT JOIN (inspector_branches ib JOIN branches b ON b.id = ib.branch_id AND b.organization_id = ib.organization_id AND b.is_active)
       ON ib.inspector_id = session.inspector_id AND ib.organization_id = session.organization_id
GROUP BY session.inspector_id";

    /// Ends a session.
    END = "DELETE FROM inspector_sessions WHERE cookie_hash = $1";

    /// Deletes some of the expired sessions.
    DELETE_EXPIRED = "\
DELETE FROM inspector_sessions WHERE cookie_hash IN (
    SELECT cookie_hash FROM inspector_sessions WHERE created_at < now() - interval '12 hours' LIMIT 100 FOR UPDATE SKIP LOCKED)";
}

/// Begins a session. Returns false if no active token has this digest.
///
/// # Errors
/// The database failed.
pub async fn begin(client: &Connection, token_digest: &[u8; 32], cookie_digest: &[u8; 32]) -> Result<bool, DbError> {
    client.execute(DELETE_EXPIRED, &[]).await?;
    let begun = client
        .execute(BEGIN, &[&token_digest.as_slice(), &cookie_digest.as_slice()])
        .await?;
    Ok(begun == 1)
}

/// Returns the session of a cookie, if it is valid. With `keep_alive` the session is kept alive.
///
/// # Errors
/// The database failed.
pub async fn find(client: &Connection, cookie_digest: &[u8; 32], keep_alive: bool) -> Result<Option<Session>, DbError> {
    let rows = client.query(FIND, &[&cookie_digest.as_slice(), &keep_alive]).await?;
    let Some(first) = rows.first() else { return Ok(None) };
    let branches: Result<Vec<Option<Branch>>, DbError> = rows.iter().map(branch).collect();
    Ok(Some(Session {
        inspector_id: first.try_get("inspector_id")?,
        organization_id: first.try_get("organization_id")?,
        name: first.try_get("name")?,
        ends_at: first.try_get("ends_at")?,
        branches: branches?.into_iter().flatten().collect(),
    }))
}

/// Returns the active branches of a cookie's session, in the order of [`find`]; `None` without a valid session. Does not keep the
/// session alive.
///
/// # Errors
/// The database failed.
pub async fn branches(client: &Connection, cookie_digest: &[u8; 32]) -> Result<Option<Vec<Uuid>>, DbError> {
    let row = client.query_opt(BRANCHES, &[&cookie_digest.as_slice()]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// Ends a session.
///
/// # Errors
/// The database failed.
pub async fn end(client: &Connection, cookie_digest: &[u8; 32]) -> Result<(), DbError> {
    client.execute(END, &[&cookie_digest.as_slice()]).await?;
    Ok(())
}

fn branch(row: &Row) -> Result<Option<Branch>, DbError> {
    let Some(id) = row.try_get("branch_id")? else {
        return Ok(None);
    };
    Ok(Some(Branch {
        id,
        code: row.try_get("branch_code")?,
        name: row.try_get("branch_name")?,
    }))
}
