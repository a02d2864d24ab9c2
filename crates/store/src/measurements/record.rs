//! Recording of packages: many at once, in one statement.

use sha2::{Digest, Sha256};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::{APPLIED, Package, SkipReason, Skipped, Status, array_text, unexpected};
use crate::DbError;
use crate::connection::Connection;
use crate::statement;

statement! {
    /// Decides on each package, and records those without an open report as pending. For each package it looks up:
    ///
    /// - The branch, which must be active, have this code and be granted to the partner. Grants are read here, not cached.
    /// - A measurement with the same `external_id` of the partner. The same statement stores a different body beside it.
    /// - The newest open report of the plate at the branch, created within the last 24 hours by the database's clock. Its
    ///   package is not recorded here, because that requires the lock of the report, and other packages must not wait for it.
    ///
    /// Rows are inserted in the order of (partner, external ID), so that two replicas cannot deadlock. Of two concurrent
    /// packages with the same `external_id`, one is recorded; the other is neither recorded nor found, and is processed again.
    ///
    /// The lookups are lateral joins with a `LIMIT`, so that each uses an index whatever the planner estimates.
    pub RECORD = "\
WITH found AS (
    SELECT sent.*, branch.ids AS branch_ids, branch.organization_ids, old.id AS old_id, old.status AS old_status,
           old.plate AS old_plate, old.inspection_id AS old_inspection_id, old.codes AS old_codes,
           old.outcomes AS old_outcomes, old.raw_sha256 = sent.raw_sha256 AS same_raw, report.id AS report_id
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[],
                $9::bytea[], $10::bytea[], $11::text[], $12::text[]) WITH ORDINALITY
         AS sent (id, partner_id, key_id, branch_code, plate, external_id, device_serial, measured_at, raw, raw_sha256,
                  point_codes, point_texts, place)
    CROSS JOIN LATERAL (
        SELECT array_agg(b.id) AS ids, array_agg(b.organization_id) AS organization_ids
        FROM branches b
        JOIN grants g ON g.partner_id = sent.partner_id AND g.organization_id = b.organization_id
        WHERE b.code_folded = sent.branch_code AND b.is_active
          AND (g.all_branches OR EXISTS (
              SELECT FROM grant_branches r WHERE r.partner_id = sent.partner_id AND r.branch_id = b.id))
    ) AS branch
    LEFT JOIN LATERAL (
        SELECT m.id, m.status, m.plate, m.inspection_id, m.raw_sha256, m.point_codes AS codes, m.point_outcomes AS outcomes
        FROM measurements m
        WHERE m.partner_id = sent.partner_id AND m.external_id = sent.external_id AND cardinality(branch.ids) = 1
        LIMIT 1
    ) AS old ON true
    LEFT JOIN LATERAL (
        SELECT i.id
        FROM inspections i
        WHERE i.branch_id = branch.ids[1] AND i.plate = sent.plate AND i.status IN ('DRAFT', 'REVISION_REQUESTED')
          AND i.created_at >= now() - interval '24 hours' AND cardinality(branch.ids) = 1 AND old.id IS NULL
        ORDER BY i.created_at DESC, i.id DESC
        LIMIT 1
    ) AS report ON true
), recorded AS (
    INSERT INTO measurements (id, partner_id, key_id, organization_id, branch_id, plate, external_id, device_serial,
                              measured_at, raw, raw_sha256, status, point_codes, point_texts)
    SELECT id, partner_id, key_id, organization_ids[1], branch_ids[1], plate, external_id, device_serial,
           coalesce(measured_at, now()), raw, raw_sha256, 'PENDING', point_codes::text[], point_texts::text[]
    FROM found
    WHERE cardinality(branch_ids) = 1 AND old_id IS NULL AND report_id IS NULL
    ORDER BY partner_id, external_id COLLATE \"C\", place
    ON CONFLICT (partner_id, external_id) WHERE external_id IS NOT NULL DO NOTHING
    RETURNING id
), mismatched AS (
    INSERT INTO measurement_mismatches (measurement_id, raw_sha256, partner_id, raw, key_id)
    SELECT old_id, raw_sha256, partner_id, raw, key_id
    FROM found
    WHERE NOT same_raw
    ORDER BY old_id, raw_sha256, place
    ON CONFLICT DO NOTHING
)
SELECT coalesce(cardinality(f.branch_ids), 0) AS branches, f.branch_ids[1] AS branch_id, f.organization_ids[1] AS organization_id,
       recorded.id IS NOT NULL AS recorded, f.report_id, f.old_id, f.old_status, f.old_plate, f.old_inspection_id, f.old_codes, f.old_outcomes, f.same_raw
FROM found f LEFT JOIN recorded USING (id)
ORDER BY f.place";
}

/// The open report that a package is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The report.
    pub inspection_id: Uuid,
    /// The organization of the report.
    pub organization_id: Uuid,
    /// The branch it was found at.
    pub branch_id: Uuid,
    /// The plate it was found for.
    pub plate: String,
}

/// The result of [`record`] for a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The package is recorded and pending.
    Recorded,
    /// The external ID was recorded before. If the bytes differ, they are stored as well.
    Replayed(Replay),
    /// The package belongs to this open report, and is not recorded yet.
    ForReport(Target),
    /// No active granted branch has the code. The caller must not distinguish unknown, inactive and ungranted branches.
    UnknownBranch,
    /// More than one granted branch has the code.
    AmbiguousBranch,
    /// The external ID is being recorded by a concurrent statement. Record the package again; it will then be a replay.
    InProgress,
}

/// The current state of a measurement that was sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The ID of the record.
    pub id: Uuid,
    /// The status of the record.
    pub status: Status,
    /// The recorded plate, which may differ from the one sent this time.
    pub plate: String,
    /// The report that the measurement was applied to.
    pub inspection_id: Option<Uuid>,
    /// The points that were not written, if the measurement has been applied.
    pub skipped: Vec<Skipped>,
    /// Whether the bytes sent this time equal the recorded ones.
    pub same_raw: bool,
}

/// Records the packages without an open report. Returns a verdict for each package, in order, or an error if the data about
/// that package cannot be read.
///
/// This is a single statement that commits by itself. If the database reports an error, nothing was recorded; after an error
/// of the connection, the outcome is unknown.
///
/// # Errors
/// If the database reports an error.
pub async fn record(client: &Connection, packages: &[&Package]) -> Result<Vec<Result<Verdict, DbError>>, DbError> {
    let columns = PackageColumns::of(packages);
    let points: Vec<String> = packages.iter().map(|package| codes(package)).collect();
    let texts: Vec<String> = packages.iter().map(|package| texts(package)).collect();
    let branch_codes: Vec<&str> = packages.iter().map(|package| package.branch_code.as_str()).collect();
    let plates: Vec<&str> = packages.iter().map(|package| package.plate.as_str()).collect();
    let parameters: [&(dyn ToSql + Sync); 12] = [
        &columns.ids,
        &columns.partner_ids,
        &columns.key_ids,
        &branch_codes,
        &plates,
        &columns.external_ids,
        &columns.device_serials,
        &columns.measured_at,
        &columns.raws,
        &columns.raw_sha256s,
        &points,
        &texts,
    ];
    let rows = client.query(RECORD, &parameters).await?;
    if rows.len() != packages.len() {
        return Err(unexpected(format!("{} verdicts of {}", rows.len(), packages.len())));
    }
    let verdicts = rows.iter().zip(packages);
    Ok(verdicts.map(|(row, package)| verdict(row, package)).collect())
}

fn verdict(row: &Row, package: &Package) -> Result<Verdict, DbError> {
    match row.try_get::<_, i32>("branches")? {
        0 => return Ok(Verdict::UnknownBranch),
        1 => {}
        _ => return Ok(Verdict::AmbiguousBranch),
    }
    if row.try_get("recorded")? {
        return Ok(Verdict::Recorded);
    }
    if let Some(inspection_id) = row.try_get("report_id")? {
        return Ok(Verdict::ForReport(Target {
            inspection_id,
            organization_id: row.try_get("organization_id")?,
            branch_id: row.try_get("branch_id")?,
            plate: package.plate.as_str().to_owned(),
        }));
    }
    match row.try_get("old_id")? {
        Some(id) => replay(row, id).map(Verdict::Replayed),
        None => Ok(Verdict::InProgress),
    }
}

fn replay(row: &Row, id: Uuid) -> Result<Replay, DbError> {
    let codes: Vec<String> = row.try_get::<_, Option<_>>("old_codes")?.unwrap_or_default();
    let outcomes: Vec<Option<String>> = row.try_get::<_, Option<_>>("old_outcomes")?.unwrap_or_default();
    let skipped = codes
        .into_iter()
        .zip(&outcomes)
        .filter_map(|(code, outcome)| match outcome.as_deref() {
            None | Some(APPLIED) => None,
            Some(reason) => Some(
                SkipReason::from_text(reason)
                    .map(|reason| Skipped { code, reason })
                    .ok_or_else(|| unexpected(format!("outcome {reason}"))),
            ),
        });
    Ok(Replay {
        id,
        status: row.try_get("old_status")?,
        plate: row.try_get("old_plate")?,
        inspection_id: row.try_get("old_inspection_id")?,
        skipped: skipped.collect::<Result<_, _>>()?,
        same_raw: row.try_get("same_raw")?,
    })
}

/// The parameters of statements that record packages: an array for each column.
pub(super) struct PackageColumns<'a> {
    pub ids: Vec<Uuid>,
    pub partner_ids: Vec<Uuid>,
    pub key_ids: Vec<&'a str>,
    pub external_ids: Vec<Option<&'a str>>,
    pub device_serials: Vec<Option<&'a str>>,
    pub measured_at: Vec<Option<chrono::DateTime<chrono::Utc>>>,
    pub raws: Vec<&'a [u8]>,
    pub raw_sha256s: Vec<Vec<u8>>,
}

impl<'a> PackageColumns<'a> {
    pub fn of(packages: &[&'a Package]) -> Self {
        fn each<'a, T>(packages: &[&'a Package], column: impl Fn(&'a Package) -> T) -> Vec<T> {
            packages.iter().map(|package| column(package)).collect()
        }
        PackageColumns {
            ids: each(packages, |package| package.id),
            partner_ids: each(packages, |package| package.partner_id),
            key_ids: each(packages, |package| package.key_id.as_str()),
            external_ids: each(packages, |package| package.external_id.as_deref()),
            device_serials: each(packages, |package| package.device_serial.as_deref()),
            measured_at: each(packages, |package| package.measured_at),
            raws: each(packages, |package| package.raw.as_ref()),
            raw_sha256s: each(packages, |package| Sha256::digest(&package.raw).to_vec()),
        }
    }
}

fn codes(package: &Package) -> String {
    array_text(package.points.iter().map(|point| point.code.as_str()))
}

fn texts(package: &Package) -> String {
    array_text(package.points.iter().map(|point| point.text.as_str()))
}
