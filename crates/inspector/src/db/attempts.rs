//! Counts attempts to sign in, across all replicas (INS-4).

use std::net::IpAddr;
use std::time::Duration;

use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::statement;

/// The number of failed attempts that one address may make within 15 minutes.
pub const MAX_FAILED: i32 = 10;

statement! {
    /// Counts an attempt of an address, for IPv6 of its /64 network. Returns the number of attempts in the current 15 minutes, and
    /// the time until they end.
    COUNT = "\
INSERT INTO sign_in_attempts AS a (address, failed_count)
VALUES (CASE WHEN family($1::inet) = 6 THEN host(network(set_masklen($1::inet, 64)))::inet ELSE $1::inet END, 1)
ON CONFLICT (address) DO UPDATE
SET failed_count = CASE WHEN a.window_started_at > now() - interval '15 minutes' THEN least(a.failed_count + 1, 1000000) ELSE 1 END,
    window_started_at = CASE WHEN a.window_started_at > now() - interval '15 minutes' THEN a.window_started_at ELSE now() END
RETURNING failed_count, extract(epoch FROM window_started_at + interval '15 minutes' - now())::float8 AS ends_in";

    /// Undoes the count of an attempt that succeeded.
    UNDO = "\
UPDATE sign_in_attempts SET failed_count = greatest(failed_count - 1, 0)
WHERE address = CASE WHEN family($1::inet) = 6 THEN host(network(set_masklen($1::inet, 64)))::inet ELSE $1::inet END";

    /// Deletes some of the expired counts.
    DELETE_EXPIRED = "\
DELETE FROM sign_in_attempts WHERE address IN (
    SELECT address FROM sign_in_attempts WHERE window_started_at < now() - interval '15 minutes' LIMIT 100 FOR UPDATE SKIP LOCKED)";
}

/// Counts an attempt before its token is checked, so that simultaneous attempts cannot exceed the limit. Returns the time to wait
/// if the limit is exceeded.
///
/// # Errors
/// The database failed.
pub async fn count(client: &Connection, address: IpAddr) -> Result<Option<Duration>, DbError> {
    client.execute(DELETE_EXPIRED, &[]).await?;
    let row = client.query_one(COUNT, &[&address]).await?;
    let (failed, ends_in): (i32, f64) = (row.try_get("failed_count")?, row.try_get("ends_in")?);
    let left = Duration::try_from_secs_f64(ends_in).unwrap_or_default();
    Ok((failed > MAX_FAILED).then_some(left))
}

/// Undoes the count of an attempt that succeeded.
///
/// # Errors
/// The database failed.
pub async fn undo(client: &Connection, address: IpAddr) -> Result<(), DbError> {
    client.execute(UNDO, &[&address]).await?;
    Ok(())
}
