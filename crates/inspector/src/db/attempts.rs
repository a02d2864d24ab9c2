//! Attempts to sign in, counted for all replicas before it is known how they end (INS).

use std::net::IpAddr;
use std::time::Duration;

use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::statement;

/// The attempts of one address that may fail in a quarter of an hour.
pub const MOST: i32 = 10;

statement! {
    /// Counts an attempt of an address, of IPv6 of its network of 64 bits; how many there were in this quarter of an hour, and how
    /// long it lasts still.
    COUNT = "\
INSERT INTO sign_in_attempts AS a (address, failed_count)
VALUES (CASE WHEN family($1::inet) = 6 THEN host(network(set_masklen($1::inet, 64)))::inet ELSE $1::inet END, 1)
ON CONFLICT (address) DO UPDATE
SET failed_count = CASE WHEN a.window_started_at > now() - interval '15 minutes' THEN least(a.failed_count + 1, 1000000) ELSE 1 END,
    window_started_at = CASE WHEN a.window_started_at > now() - interval '15 minutes' THEN a.window_started_at ELSE now() END
RETURNING failed_count, extract(epoch FROM window_started_at + interval '15 minutes' - now())::float8 AS ends_in";

    /// Takes back what an attempt that succeeded was counted as.
    TAKE_BACK = "\
UPDATE sign_in_attempts SET failed_count = greatest(failed_count - 1, 0)
WHERE address = CASE WHEN family($1::inet) = 6 THEN host(network(set_masklen($1::inet, 64)))::inet ELSE $1::inet END";

    /// Forgets what is over, some at a time.
    FORGET = "\
DELETE FROM sign_in_attempts WHERE address IN (
    SELECT address FROM sign_in_attempts WHERE window_started_at < now() - interval '15 minutes' LIMIT 100 FOR UPDATE SKIP LOCKED)";
}

/// Counts an attempt before anything is looked at, so that of any number at once no more pass; `Some`: it is one too many, and so
/// long is to be waited.
///
/// # Errors
/// What the database says.
pub async fn count(client: &Connection, address: IpAddr) -> Result<Option<Duration>, DbError> {
    client.execute(FORGET, &[]).await?;
    let row = client.query_one(COUNT, &[&address]).await?;
    let (failed, ends_in): (i32, f64) = (row.try_get("failed_count")?, row.try_get("ends_in")?);
    let left = Duration::try_from_secs_f64(ends_in).unwrap_or_default();
    Ok((failed > MOST).then_some(left))
}

/// Takes an attempt back that succeeded.
///
/// # Errors
/// What the database says.
pub async fn take_back(client: &Connection, address: IpAddr) -> Result<(), DbError> {
    client.execute(TAKE_BACK, &[&address]).await?;
    Ok(())
}
