//! Test-line measurements: each is recorded once, and applied to the open report of its plate, or else pending (MEA-5, MEA-6).
//!
//! Two mechanisms ensure correctness: the unique index on (partner, external ID), and the lock of a report's row, which every
//! writer of its answers acquires first. Nothing uncommitted is held while waiting for a lock: [`record`] is one statement, and
//! [`record_applied`] locks the reports before it writes anything, and skips locked ones.

mod answers;
mod apply;
mod decide;
mod pending;
mod record;
mod report;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use partner_api_domain::plate::Plate;
use rust_decimal::Decimal;
use uuid::Uuid;

pub use self::apply::{Lock, ReportOutcome, ReportPackages, apply, record_applied};
pub use self::pending::{PendingMeasurement, PreviewPoint, pending};
pub use self::record::{Replay, Target, Verdict, record};
use super::connection::{Connection, Parameters};
use super::{DbError, column};
use crate::statement;

statement! {
    /// Marks a measurement (`$1`) as discarded by an inspector (`$2`), if it is pending in one of the branches `$3` of the organization
    /// `$4`.
    DISCARD = "\
UPDATE measurements SET status = 'DISCARDED', settled_at = now(), settled_by = $2
WHERE id = $1 AND organization_id = $4 AND status = 'PENDING' AND branch_id = ANY ($3::uuid[])";
}

/// One value of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// The measurement point's code.
    pub code: String,
    /// The value, in the point's unit.
    pub value: Decimal,
    /// The decimal text as sent.
    pub text: String,
}

/// A package to record.
#[derive(Clone, Debug)]
pub struct Package {
    /// The ID of the new record.
    pub id: Uuid,
    /// The partner that sent it. The external ID is unique per partner, and the branch must be granted to the partner.
    pub partner_id: Uuid,
    /// The key that it was sent with.
    pub key_id: String,
    /// The branch code, with its letter case folded (`partner_api_domain::branch_code`).
    pub branch_code: String,
    /// The vehicle's plate.
    pub plate: Plate,
    /// The partner's own ID of the measurement.
    pub external_id: Option<String>,
    /// The serial number of the device, for information only.
    pub device_serial: Option<String>,
    /// The time of the measurement; `None` means the time of arrival by the database's clock.
    pub measured_at: Option<DateTime<Utc>>,
    /// The exact bytes of the body.
    pub raw: Bytes,
    /// The values; each code occurs once.
    pub points: Vec<Point>,
}

/// The status of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Applied to a report.
    Applied,
    /// Waiting for a report.
    Pending,
    /// Discarded by an inspector.
    Discarded,
}

/// Why a point was not written to a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The report's template has no such point.
    UnknownPoint,
    /// The organization has no thresholds for the point.
    NoStatus,
    /// The value was measured too long before the report was created.
    Stale,
    /// The report has a device value that was measured later.
    Superseded,
    /// The value is outside the plausible range.
    Implausible,
}

/// A point that was not written to a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The point's code.
    pub code: String,
    /// The reason.
    pub reason: SkipReason,
}

/// The outcomes of a measurement's points.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The codes that were written to the report, in order; the computed `DYNO_RATIO` is the last.
    pub applied: Vec<String>,
    /// The codes that were not written, with the reasons.
    pub skipped: Vec<Skipped>,
}

/// Discards a measurement that is pending in one of `branches` of the organization, on behalf of the inspector `by`. Returns false
/// if it is not pending there. The record and its bytes remain (MEA-13).
///
/// # Errors
/// If the database reports an error.
pub async fn discard(
    client: &Connection,
    organization_id: Uuid,
    measurement_id: Uuid,
    by: &str,
    branches: &[Uuid],
) -> Result<bool, DbError> {
    let parameters: &Parameters<'_> = &[&measurement_id, &by, &branches, &organization_id];
    Ok(client.execute(DISCARD, parameters).await? == 1)
}

column! { Status { Applied = "APPLIED", Pending = "PENDING", Discarded = "DISCARDED" } }
// `measurements.point_outcomes` and the API use the same texts.
column! {
    SkipReason {
        UnknownPoint = "unknown_point",
        NoStatus = "no_status",
        Stale = "stale",
        Superseded = "superseded",
        Implausible = "implausible",
    }
}

/// The text of a written point's outcome in `measurements.point_outcomes`.
const APPLIED: &str = "applied";

fn unexpected(detail: String) -> DbError {
    DbError::Data {
        table: "measurements",
        detail,
    }
}

/// Formats elements as the text of a PostgreSQL array. A statement cannot have an array of arrays of different lengths as its
/// parameter, but it can have an array of these texts.
fn array_text<'a>(elements: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::from("{");
    for (index, element) in elements.enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push('"');
        for character in element.chars() {
            if matches!(character, '"' | '\\') {
                text.push('\\');
            }
            text.push(character);
        }
        text.push('"');
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::array_text;

    #[test]
    fn elements_are_quoted_in_the_text_of_an_array() {
        assert_eq!(array_text([].into_iter()), "{}");
        let elements = ["A_1", "NULL", "-1.40", "a\"b\\c", "", "{x,y}"];
        assert_eq!(
            array_text(elements.into_iter()),
            r#"{"A_1","NULL","-1.40","a\"b\\c","","{x,y}"}"#
        );
    }
}
