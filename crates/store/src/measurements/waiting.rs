//! Measurements that wait for a report, and what would become of their points if they were applied to it now (MEA-13).

use chrono::{DateTime, Utc};
use partner_api_domain::newer::Moment;
use partner_api_domain::plausible::Documented;
use partner_api_domain::threshold::PointStatus;
use rust_decimal::Decimal;
use tokio_postgres::Row;
use uuid::Uuid;

use super::report::{READ, test_line};
use super::{Point, SkipReason};
use crate::DbError;
use crate::connection::Connection;
use crate::statement;

/// Measurements that are shown of those that wait; of more, the newest.
const SHOWN: i64 = 20;

statement! {
    /// The measurements that wait for the report `$1`, by its branch and plate, the newest first, at most `$2`; each with the
    /// registered power of the report's vehicle.
    WAITING = "\
SELECT m.id, m.device_serial, p.name AS partner, m.measured_at, m.received_at, v.factory_power_hp,
       m.point_codes AS codes, m.point_texts::numeric[] AS values
FROM inspections i
JOIN vehicles v ON v.id = i.vehicle_id
JOIN measurements m ON m.branch_id = i.branch_id AND m.plate = i.plate AND m.status = 'PENDING'
JOIN partners p ON p.id = m.partner_id
WHERE i.id = $1
ORDER BY m.received_at DESC, m.id DESC LIMIT $2";
}

/// A measurement that waits.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Its id.
    pub id: Uuid,
    /// The device, where it said its serial number.
    pub device_serial: Option<String>,
    /// Who sent it.
    pub partner: String,
    /// When it was measured, as the device says; else when it arrived.
    pub measured_at: DateTime<Utc>,
    /// When it arrived.
    pub received_at: DateTime<Utc>,
    /// Its points, and the one that would be computed.
    pub points: Vec<WouldBe>,
}

/// A point of a measurement that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WouldBe {
    /// Its code.
    pub code: String,
    /// Its value.
    pub value: Decimal,
    /// The status that it would get, or why it would not be written.
    pub outcome: Result<PointStatus, SkipReason>,
}

/// The measurements that wait for a report, the newest first. Whose report it is has been asked before.
///
/// # Errors
/// What the database says.
pub async fn waiting(
    client: &Connection,
    inspection_id: Uuid,
    documented: Documented,
) -> Result<Vec<Waiting>, DbError> {
    let rows = client.query(WAITING, &[&inspection_id, &SHOWN]).await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let points = client.query(READ, &[&vec![inspection_id]]).await?;
    rows.iter().map(|row| one(row, &points, documented)).collect()
}

fn one(row: &Row, points: &[Row], documented: Documented) -> Result<Waiting, DbError> {
    let moment = Moment {
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
    // Each by itself: which of several will be applied, and in which order, is the inspector's to say.
    let form = test_line(row.try_get("factory_power_hp")?, points, documented)?;
    let outcomes = form.outcomes(moment, &sent).into_iter();
    Ok(Waiting {
        id: row.try_get("id")?,
        device_serial: row.try_get("device_serial")?,
        partner: row.try_get("partner")?,
        measured_at: moment.measured_at,
        received_at: moment.received_at,
        points: outcomes
            .map(|(point, outcome)| WouldBe {
                code: point.code,
                value: point.value,
                outcome: outcome.map(|(_, status)| status),
            })
            .collect(),
    })
}
