//! Pending measurements, with a preview of the outcomes if they were applied now (MEA-13).

use chrono::{DateTime, Utc};
use partner_api_domain::newer::ValueTimes;
use partner_api_domain::plausible::DocumentedRanges;
use partner_api_domain::threshold::PointStatus;
use rust_decimal::Decimal;
use tokio_postgres::Row;
use uuid::Uuid;

use super::report::{READ, test_line};
use super::{Point, SkipReason};
use crate::DbError;
use crate::connection::Connection;
use crate::statement;

/// The maximum number of pending measurements that are shown; the one that was measured last comes first.
const MAX_SHOWN: i64 = 20;

statement! {
    /// The `$2` pending measurements with the branch and plate of the report `$1` of the organization `$3` that were measured last,
    /// those first, each with the report's creation time and the registered power of its vehicle.
    PENDING = "\
SELECT m.id, m.device_serial, p.name AS partner, m.measured_at, m.received_at, i.created_at, v.factory_power_hp,
       m.point_codes AS codes, m.point_texts::numeric[] AS values
FROM inspections i
JOIN vehicles v ON v.id = i.vehicle_id
JOIN measurements m ON m.branch_id = i.branch_id AND m.organization_id = i.organization_id AND m.plate = i.plate
    AND m.status = 'PENDING'
JOIN partners p ON p.id = m.partner_id
WHERE i.id = $1 AND i.organization_id = $3
ORDER BY m.measured_at DESC, m.received_at DESC, m.id DESC LIMIT $2";
}

/// A pending measurement.
#[derive(Clone, Debug)]
pub struct PendingMeasurement {
    /// The ID.
    pub id: Uuid,
    /// The serial number of the device, if it was sent.
    pub device_serial: Option<String>,
    /// The name of the partner that sent it.
    pub partner: String,
    /// The time of the measurement according to the device, or else the time of arrival.
    pub measured_at: DateTime<Utc>,
    /// The time of arrival.
    pub received_at: DateTime<Utc>,
    /// The points, including the one that would be computed.
    pub points: Vec<PreviewPoint>,
}

/// A point of a pending measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewPoint {
    /// The code.
    pub code: String,
    /// The value.
    pub value: Decimal,
    /// The status that the value would get, or why it would not be written.
    pub outcome: Result<PointStatus, SkipReason>,
}

/// Returns the pending measurements that match a report of the organization, the one that was measured last first. The caller has
/// checked the access to the report.
///
/// # Errors
/// If the database reports an error.
pub async fn pending(
    client: &Connection,
    organization_id: Uuid,
    inspection_id: Uuid,
    documented: DocumentedRanges,
) -> Result<Vec<PendingMeasurement>, DbError> {
    let rows = client
        .query(PENDING, &[&inspection_id, &MAX_SHOWN, &organization_id])
        .await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let points = client
        .query(READ, &[&vec![inspection_id], &Some(organization_id)])
        .await?;
    rows.iter().map(|row| one(row, &points, documented)).collect()
}

fn one(row: &Row, points: &[Row], documented: DocumentedRanges) -> Result<PendingMeasurement, DbError> {
    let times = ValueTimes {
        measured_at: row.try_get("measured_at")?,
        received_at: row.try_get("received_at")?,
    };
    let (codes, values): (Vec<String>, Vec<Decimal>) = (row.try_get("codes")?, row.try_get("values")?);
    let sent: Vec<Point> = codes
        .into_iter()
        .zip(values)
        .map(|(code, value)| Point {
            code,
            value,
            text: value.to_string(),
        })
        .collect();
    // Each measurement is previewed alone, because the inspector decides which are applied, and in which order.
    let form = test_line(row, points, documented)?;
    let outcomes = form.outcomes(times, &sent).into_iter();
    Ok(PendingMeasurement {
        id: row.try_get("id")?,
        device_serial: row.try_get("device_serial")?,
        partner: row.try_get("partner")?,
        measured_at: times.measured_at,
        received_at: times.received_at,
        points: outcomes
            .map(|(point, outcome)| PreviewPoint {
                code: point.code,
                value: point.value,
                outcome: outcome.map(|(_, status)| status),
            })
            .collect(),
    })
}
