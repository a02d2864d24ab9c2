//! Test-line measurements: recorded once, applied to the open report of their plate, or waiting for one (contract 4.3).
//!
//! Correctness rests on the unique index over (partner, external id): of two that race, one records and the other waits for
//! it and reads what it recorded. Every function runs inside the caller's transaction; after an error the caller rolls
//! back. Writers of a report's answers lock the report's row first, as the functions here do.

mod apply;
mod statements;

use chrono::{DateTime, Utc};
use deadpool_postgres::GenericClient;
use rust_decimal::Decimal;
use sha2::{Digest, Sha256};
use tokio_postgres::Row;
use uuid::Uuid;

use self::apply::apply_points;
pub use self::apply::{Applied, apply};
use super::DbError;
use crate::rules::plate::Plate;

/// A branch that a measurement can be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The branch.
    pub id: Uuid,
    /// The organisation it belongs to.
    pub organization_id: Uuid,
}

/// What a branch code finds among the active branches in scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchMatch {
    /// Nothing: unknown, inactive or out of scope, which the caller must not tell apart.
    None,
    /// One branch.
    One(Branch),
    /// More than one, in different organisations or in the same.
    Several,
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
#[derive(Clone, Copy, Debug)]
pub struct NewMeasurement<'a> {
    /// Who sent it: an external id is unique per partner.
    pub partner_id: Uuid,
    /// With which key.
    pub key_id: &'a str,
    /// Where it was measured.
    pub branch: Branch,
    /// The vehicle's plate.
    pub plate: &'a Plate,
    /// The partner's own id of the measurement.
    pub external_id: Option<&'a str>,
    /// The device, for tracing only.
    pub device_serial: Option<&'a str>,
    /// When it was measured; `None`: now, by the database's clock.
    pub measured_at: Option<DateTime<Utc>>,
    /// The body, byte for byte as sent.
    pub raw: &'a [u8],
    /// The values, each code once.
    pub points: &'a [Point],
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
}

/// A point that was not written to a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The point's code.
    pub code: String,
    /// Why.
    pub reason: SkipReason,
}

/// What became of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// A new record.
    Recorded {
        /// Its id.
        id: Uuid,
        /// The report it was applied to, and how; `None`: it waits.
        applied: Option<(Uuid, Applied)>,
    },
    /// The external id was recorded before; nothing has changed.
    Replayed(Replay),
}

/// The present state of a measurement that is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The record's id.
    pub id: Uuid,
    /// Its state.
    pub status: Status,
    /// Its plate, which need not be the one sent this time.
    pub plate: String,
    /// The report it was applied to.
    pub inspection_id: Option<Uuid>,
    /// The points that were not written, once it has been applied.
    pub skipped: Vec<Skipped>,
    /// Whether the bytes sent this time are those recorded.
    pub same_raw: bool,
}

/// Finds the active branch that a code names, by the folding of `rules::branch_code`, within a partner's scope.
///
/// # Errors
/// What the database says.
pub async fn find_branch<C: GenericClient>(
    client: &C,
    folded_code: &str,
    whole_organizations: &[Uuid],
    restricted_branches: &[Uuid],
) -> Result<BranchMatch, DbError> {
    let statement = client.prepare_cached(statements::FIND_BRANCH).await?;
    let rows = client
        .query(&statement, &[&folded_code, &whole_organizations, &restricted_branches])
        .await?;
    Ok(match rows.as_slice() {
        [] => BranchMatch::None,
        [row] => BranchMatch::One(Branch {
            id: row.try_get(0)?,
            organization_id: row.try_get(1)?,
        }),
        _ => BranchMatch::Several,
    })
}

/// Records a package and applies it to the open report of its plate, if there is one.
///
/// An external id that is being recorded by another transaction is waited for. The answer holds once the caller's
/// transaction is committed; an error around the commit says nothing about the outcome.
///
/// # Errors
/// What the database says.
pub async fn submit<C: GenericClient>(client: &C, new: &NewMeasurement<'_>) -> Result<Submitted, DbError> {
    let raw_sha256 = Sha256::digest(new.raw).to_vec();
    let Some(id) = record(client, new, &raw_sha256).await? else {
        // Only a package with an external id meets another one.
        return replay(client, new.partner_id, new.external_id.unwrap_or_default(), &raw_sha256).await;
    };
    let statement = client.prepare_cached(statements::LOCK_OPEN_REPORT).await?;
    let report = client
        .query_opt(&statement, &[&new.branch.id, &new.plate.as_str()])
        .await?;
    let Some(report) = report else {
        return Ok(Submitted::Recorded { id, applied: None });
    };
    let inspection_id = report.try_get(0)?;
    let applied = apply_points(client, id, inspection_id, new.points, None).await?;
    Ok(Submitted::Recorded {
        id,
        applied: Some((inspection_id, applied)),
    })
}

/// Settles a waiting measurement as ignored by the inspector `by`; false when it does not wait (any more).
///
/// # Errors
/// What the database says.
pub async fn discard<C: GenericClient>(client: &C, measurement_id: Uuid, by: &str) -> Result<bool, DbError> {
    let statement = client.prepare_cached(statements::DISCARD).await?;
    Ok(client.execute(&statement, &[&measurement_id, &by]).await? == 1)
}

async fn record<C: GenericClient>(
    client: &C,
    new: &NewMeasurement<'_>,
    raw_sha256: &[u8],
) -> Result<Option<Uuid>, DbError> {
    let id = Uuid::now_v7();
    let codes: Vec<&str> = new.points.iter().map(|point| point.code.as_str()).collect();
    let values: Vec<Decimal> = new.points.iter().map(|point| point.value).collect();
    let texts: Vec<&str> = new.points.iter().map(|point| point.text.as_str()).collect();
    let statement = client.prepare_cached(statements::RECORD).await?;
    let recorded = client
        .query_opt(
            &statement,
            &[
                &id,
                &new.partner_id,
                &new.key_id,
                &new.branch.organization_id,
                &new.branch.id,
                &new.plate.as_str(),
                &new.external_id,
                &new.device_serial,
                &new.measured_at,
                &new.raw,
                &raw_sha256,
                &codes,
                &values,
                &texts,
            ],
        )
        .await?;
    Ok(recorded.map(|_| id))
}

async fn replay<C: GenericClient>(
    client: &C,
    partner_id: Uuid,
    external_id: &str,
    raw_sha256: &[u8],
) -> Result<Submitted, DbError> {
    let statement = client.prepare_cached(statements::REPLAY).await?;
    let row = client
        .query_opt(&statement, &[&partner_id, &external_id, &raw_sha256])
        .await?
        .ok_or_else(|| DbError::Data {
            table: "measurements",
            detail: "an external id is taken, but its record is not there".into(),
        })?;
    let codes: Vec<String> = row.try_get("codes")?;
    let outcomes: Vec<String> = row.try_get("outcomes")?;
    let skipped = codes
        .into_iter()
        .zip(&outcomes)
        .map(|(code, outcome)| SkipReason::parse(outcome).map(|reason| Skipped { code, reason }));
    Ok(Submitted::Replayed(Replay {
        id: row.try_get("id")?,
        status: Status::parse(row.try_get("status")?)?,
        plate: row.try_get("plate")?,
        inspection_id: row.try_get("inspection_id")?,
        skipped: skipped.collect::<Result<_, _>>()?,
        same_raw: row.try_get("same_raw")?,
    }))
}

impl Point {
    fn from_row(row: &Row) -> Result<Self, DbError> {
        Ok(Point {
            code: row.try_get("code")?,
            value: row.try_get("value")?,
            text: row.try_get("value_text")?,
        })
    }
}

impl Status {
    fn parse(text: &str) -> Result<Self, DbError> {
        match text {
            "APPLIED" => Ok(Status::Applied),
            "PENDING" => Ok(Status::Pending),
            "DISCARDED" => Ok(Status::Discarded),
            other => Err(DbError::Data {
                table: "measurements",
                detail: format!("status {other}"),
            }),
        }
    }
}

impl SkipReason {
    /// As `measurement_points.outcome` holds it, which is also how partners read it.
    pub fn as_str(self) -> &'static str {
        match self {
            SkipReason::UnknownPoint => "unknown_point",
            SkipReason::NoStatus => "no_status",
        }
    }

    fn parse(text: &str) -> Result<Self, DbError> {
        match text {
            "unknown_point" => Ok(SkipReason::UnknownPoint),
            "no_status" => Ok(SkipReason::NoStatus),
            other => Err(DbError::Data {
                table: "measurement_points",
                detail: format!("outcome {other}"),
            }),
        }
    }
}
