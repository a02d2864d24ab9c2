//! Test-line measurements: recorded once, applied to the open report of their plate, or waiting for one (MEA-5, MEA-6).
//!
//! Correctness rests on the unique index over (partner, external id) and on the lock of a report's row, which every writer
//! of its answers takes first. Nothing uncommitted is held while a lock is waited for: [`record`] is one statement, and
//! [`record_applied`] locks reports, as far as they are free, before it writes anything.

mod apply;
mod decide;
mod record;
mod report;
mod waiting;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use partner_api_domain::plate::Plate;
use rust_decimal::Decimal;
use uuid::Uuid;

pub use self::apply::{Lock, ReportOutcome, ReportPackages, apply, record_applied};
pub use self::record::{Replay, Target, Verdict, record};
pub use self::waiting::{Waiting, WouldBe, waiting};
use super::connection::Connection;
use super::{DbError, column};
use crate::statement;

statement! {
    /// Settles a waiting measurement (`$1`) as ignored by an inspector (`$2`), if it waits at one of the branches `$3`.
    DISCARD = "\
UPDATE measurements SET status = 'DISCARDED', settled_at = now(), settled_by = $2
WHERE id = $1 AND status = 'PENDING' AND branch_id = ANY ($3::uuid[])";
}

/// One value of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// The measurement point's code.
    pub code: String,
    /// The value, in the point's unit.
    pub value: Decimal,
    /// Its decimal text as sent.
    pub text: String,
}

/// A package to record.
#[derive(Clone, Debug)]
pub struct Package {
    /// The id its record will have.
    pub id: Uuid,
    /// Who sent it: an external id is unique per partner, and the branch is looked up among those granted to it.
    pub partner_id: Uuid,
    /// With which key.
    pub key_id: String,
    /// The branch's code, folded (`partner_api_domain::branch_code`).
    pub branch_code: String,
    /// The vehicle's plate.
    pub plate: Plate,
    /// The partner's own id of the measurement.
    pub external_id: Option<String>,
    /// The device, for tracing only.
    pub device_serial: Option<String>,
    /// When it was measured; `None`: when it arrives, by the database's clock.
    pub measured_at: Option<DateTime<Utc>>,
    /// The body, byte for byte as sent.
    pub raw: Bytes,
    /// The values, each code once.
    pub points: Vec<Point>,
}

/// A measurement's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Written to a report.
    Applied,
    /// Waiting for a report.
    Pending,
    /// Ignored by an inspector.
    Discarded,
}

/// Why a point was not written to a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The report's template has no such point.
    UnknownPoint,
    /// The organisation has no threshold that gives the value a status.
    NoStatus,
    /// The report has a device value that was measured later.
    Superseded,
    /// It is a value that cannot be.
    Implausible,
}

/// A point that was not written to a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The point's code.
    pub code: String,
    /// Why.
    pub reason: SkipReason,
}

/// What became of a measurement's points when it was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Codes written to the report, in their order; the computed `DYNO_RATIO` last.
    pub applied: Vec<String>,
    /// Codes not written, and why.
    pub skipped: Vec<Skipped>,
}

/// Settles a measurement that waits at one of `branches` as ignored by the inspector `by`; false when it does not wait there
/// (any more). Its record and its bytes stay (MEA-13).
///
/// # Errors
/// What the database says.
pub async fn discard(client: &Connection, measurement_id: Uuid, by: &str, branches: &[Uuid]) -> Result<bool, DbError> {
    Ok(client.execute(DISCARD, &[&measurement_id, &by, &branches]).await? == 1)
}

column! { Status { Applied = "APPLIED", Pending = "PENDING", Discarded = "DISCARDED" } }
// As `measurements.point_outcomes` holds it, which is also how partners read it.
column! {
    SkipReason {
        UnknownPoint = "unknown_point",
        NoStatus = "no_status",
        Superseded = "superseded",
        Implausible = "implausible",
    }
}

/// A point's outcome as `measurements.point_outcomes` holds it.
const APPLIED: &str = "applied";

fn unexpected(detail: String) -> DbError {
    DbError::Data {
        table: "measurements",
        detail,
    }
}

/// Elements as the text of a Postgres array. An array of arrays of different lengths is no parameter of a statement; an
/// array of such texts is.
fn array_text<'a>(elements: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::from("{");
    for (place, element) in elements.enumerate() {
        if place > 0 {
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
    fn every_element_stays_itself_in_the_text_of_an_array() {
        assert_eq!(array_text([].into_iter()), "{}");
        let elements = ["A_1", "NULL", "-1.40", "a\"b\\c", "", "{x,y}"];
        assert_eq!(
            array_text(elements.into_iter()),
            r#"{"A_1","NULL","-1.40","a\"b\\c","","{x,y}"}"#
        );
    }
}
