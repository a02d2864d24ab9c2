//! The thresholds of an organization, which determine the status of device values (`partner_api_domain::threshold`).

use partner_api_domain::threshold::Bounds;
use tokio_postgres::Row;
use uuid::Uuid;

use super::{DbError, connection::Connection};
use crate::statement;

statement! {
    /// Sets the bounds of a point.
    SET = "\
INSERT INTO thresholds (organization_id, point_code, good_min, good_max, borderline_min, borderline_max)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (organization_id, point_code) DO UPDATE
SET good_min = excluded.good_min, good_max = excluded.good_max,
    borderline_min = excluded.borderline_min, borderline_max = excluded.borderline_max";
}

/// Sets an organization's bounds for a measurement point. Values that are already written to reports keep their status.
///
/// # Errors
/// If the database reports an error, for example because both good bounds are missing.
pub async fn set(client: &Connection, organization_id: Uuid, point_code: &str, bounds: &Bounds) -> Result<(), DbError> {
    client
        .execute(
            SET,
            &[
                &organization_id,
                &point_code,
                &bounds.good_min,
                &bounds.good_max,
                &bounds.borderline_min,
                &bounds.borderline_max,
            ],
        )
        .await?;
    Ok(())
}

/// Reads the four bounds from a row with the columns of the table.
///
/// # Errors
/// If a bound cannot be represented exactly as a [`Decimal`](rust_decimal::Decimal).
pub fn bounds(row: &Row) -> Result<Bounds, DbError> {
    Ok(Bounds {
        good_min: row.try_get("good_min")?,
        good_max: row.try_get("good_max")?,
        borderline_min: row.try_get("borderline_min")?,
        borderline_max: row.try_get("borderline_max")?,
    })
}
