//! Measurements into a report: new ones as they arrive, and a waiting one by an inspector's click.

use chrono::{DateTime, Utc};
use deadpool_postgres::GenericClient;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::record::{Columns, Target};
use super::report::Statements;
use super::{Applied, Package, Point, array_text, unexpected};
use crate::db::DbError;
use crate::rules::newer::Moment;
use crate::statement;

statement! {
    /// Records packages as applied to a report (`$1`), which the transaction has locked.
    ///
    /// Rows are written in the order of (partner, external id), as everywhere. Where the `external_id` of one is taken, this
    /// fails: nothing of the transaction stands then, and each of them is looked at again.
    pub RECORD_APPLIED = "\
INSERT INTO measurements (id, partner_id, key_id, organization_id, branch_id, plate, external_id, device_serial,
                          measured_at, raw, raw_sha256, status, inspection_id, settled_at, point_codes, point_texts,
                          point_outcomes)
SELECT s.id, s.partner_id, s.key_id, i.organization_id, i.branch_id, i.plate, s.external_id, s.device_serial,
       coalesce(s.measured_at, now()), s.raw, s.raw_sha256, 'APPLIED', i.id, now(), s.point_codes::text[],
       s.point_texts::text[], s.point_outcomes::text[]
FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::bytea[], $9::bytea[],
            $10::text[], $11::text[], $12::text[])
     AS s (id, partner_id, key_id, external_id, device_serial, measured_at, raw, raw_sha256, point_codes, point_texts,
           point_outcomes)
CROSS JOIN inspections i
WHERE i.id = $1
ORDER BY s.partner_id, s.external_id COLLATE \"C\"";
}

statement! {
    /// Locks a waiting measurement (`$1`) and reads its points, wherever they are.
    pub LOCK_WAITING = "\
SELECT m.branch_id, m.plate, m.measured_at, m.received_at,
       CASE WHEN m.point_codes IS NOT NULL THEN m.point_codes
            ELSE ARRAY(SELECT p.code FROM measurement_points p WHERE p.measurement_id = m.id ORDER BY p.position)
       END AS codes,
       CASE WHEN m.point_codes IS NOT NULL THEN m.point_texts::numeric[]
            ELSE ARRAY(SELECT p.value FROM measurement_points p WHERE p.measurement_id = m.id ORDER BY p.position)
       END AS values,
       CASE WHEN m.point_codes IS NOT NULL THEN m.point_texts
            ELSE ARRAY(SELECT p.value_text FROM measurement_points p WHERE p.measurement_id = m.id ORDER BY p.position)
       END AS texts
FROM measurements m
WHERE m.id = $1 AND m.status = 'PENDING'
FOR NO KEY UPDATE OF m";
}

statement! {
    /// Settles a waiting measurement (`$1`) as applied to a report (`$2`) by an inspector (`$3`), and what became of its points
    /// (`$4` codes, `$5` texts, `$6` outcomes).
    pub SETTLE = "\
UPDATE measurements
SET status = 'APPLIED', inspection_id = $2, settled_at = now(), settled_by = $3, point_codes = $4, point_texts = $5,
    point_outcomes = $6
WHERE id = $1 AND status = 'PENDING'";
}

/// Begins a transaction that does not wait for long where another one is at work: who asks again later holds no connection
/// meanwhile.
const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = '100ms'";

/// What became of packages for a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordApplied {
    /// They are recorded and applied; what became of each, in their order.
    Applied(Vec<Applied>),
    /// The report is no longer open for them; nothing has changed.
    NotOpen,
}

/// Records packages and applies them to their report, in their order, in a transaction of its own: two round trips.
///
/// The report is locked before anything is written. No two of the packages have one external id. The connection is in a
/// transaction during the call only, unless the error is one of the connection: then it must not be used again.
///
/// # Errors
/// What the database says. Of what it answers nothing was recorded: `lock_not_available` where the report is locked for
/// longer than 100 ms, `unique_violation` where an external id is taken. An error of the connection says nothing about the
/// outcome.
pub async fn record_applied<C: GenericClient>(
    client: &C,
    target: &Target,
    packages: &[&Package],
) -> Result<RecordApplied, DbError> {
    let statements = Statements::prepare(client).await?;
    let record = client.prepare_cached(RECORD_APPLIED.sql()).await?;
    // Sent together, and worked off in this order.
    let (begun, report) = futures::join!(client.batch_execute(BEGIN), statements.lock(client, target, false));
    let mut report = match begun.map_err(DbError::from).and(report) {
        Ok(Some(report)) => report,
        other => {
            client.batch_execute("ROLLBACK").await?;
            return other.map(|_| RecordApplied::NotOpen);
        }
    };
    let columns = Columns::of(packages);
    let (mut codes, mut texts, mut outcomes, mut applied) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for package in packages {
        let moment = Moment {
            measured_at: package.measured_at.unwrap_or(report.now),
            received_at: report.now,
        };
        let decided = report.test_line.take(package.id, moment, &package.points);
        codes.push(array_text(decided.points.iter().map(|(code, ..)| code.as_str())));
        texts.push(array_text(decided.points.iter().map(|(_, text, _)| text.as_str())));
        outcomes.push(array_text(decided.points.iter().map(|(.., outcome)| *outcome)));
        applied.push(decided.applied);
    }
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 12] = [
        &target.inspection_id,
        &columns.ids,
        &columns.partner_ids,
        &columns.key_ids,
        &columns.external_ids,
        &columns.device_serials,
        &columns.measured_at,
        &columns.raws,
        &columns.raw_sha256s,
        &codes,
        &texts,
        &outcomes,
    ];
    // Behind a statement that failed, this COMMIT is a ROLLBACK.
    let (recorded, written, committed) = futures::join!(
        client.execute(&record, &parameters),
        statements.write_answers(client, &report),
        client.batch_execute("COMMIT"),
    );
    let recorded = recorded?;
    written?;
    committed?;
    if recorded != packages.len() as u64 {
        return Err(unexpected(format!("{recorded} records of {}", packages.len())));
    }
    Ok(RecordApplied::Applied(applied))
}

/// Applies a waiting measurement to a report, as an inspector does with one click (MEA-13).
///
/// The report must be in its writing phase, at the measurement's branch and for its plate; how old it is does not matter
/// here. `by` says who applies it. `None`: the measurement does not wait (any more), or the report is none for it; nothing
/// has changed then.
///
/// # Errors
/// What the database says. Call it inside a transaction, and roll that back after an error.
pub async fn apply<C: GenericClient>(
    client: &C,
    measurement_id: Uuid,
    inspection_id: Uuid,
    by: &str,
) -> Result<Option<Applied>, DbError> {
    let statement = client.prepare_cached(LOCK_WAITING.sql()).await?;
    let Some(waiting) = client.query_opt(&statement, &[&measurement_id]).await? else {
        return Ok(None);
    };
    let target = Target {
        inspection_id,
        branch_id: waiting.try_get("branch_id")?,
        plate: waiting.try_get("plate")?,
    };
    let moment = Moment {
        measured_at: waiting.try_get::<_, DateTime<Utc>>("measured_at")?,
        received_at: waiting.try_get("received_at")?,
    };
    let codes: Vec<String> = waiting.try_get("codes")?;
    let values: Vec<Decimal> = waiting.try_get("values")?;
    let texts: Vec<String> = waiting.try_get("texts")?;
    let points: Vec<Point> = codes
        .into_iter()
        .zip(values)
        .zip(texts)
        .map(|((code, value), text)| Point { code, value, text })
        .collect();
    let statements = Statements::prepare(client).await?;
    let Some(mut report) = statements.lock(client, &target, true).await? else {
        return Ok(None);
    };
    let decided = report.test_line.take(measurement_id, moment, &points);
    settle(client, measurement_id, inspection_id, by, &decided.points).await?;
    statements.write_answers(client, &report).await?;
    Ok(Some(decided.applied))
}

async fn settle<C: GenericClient>(
    client: &C,
    measurement_id: Uuid,
    inspection_id: Uuid,
    by: &str,
    points: &[(String, String, &'static str)],
) -> Result<(), DbError> {
    let codes: Vec<&str> = points.iter().map(|(code, ..)| code.as_str()).collect();
    let texts: Vec<&str> = points.iter().map(|(_, text, _)| text.as_str()).collect();
    let outcomes: Vec<&str> = points.iter().map(|(.., outcome)| *outcome).collect();
    let statement = client.prepare_cached(SETTLE.sql()).await?;
    let settled = client
        .execute(
            &statement,
            &[&measurement_id, &inspection_id, &by, &codes, &texts, &outcomes],
        )
        .await?;
    match settled {
        1 => Ok(()),
        _ => Err(unexpected(format!("{measurement_id} no longer waits"))),
    }
}
