//! Inserts measurements with their points.

use chrono::{DateTime, TimeDelta, Utc};
use partner_api_store::DbError;
use partner_api_store::transaction::Transaction;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::Copy;
use crate::data::Dataset;
use crate::generate::base;

copy_table! {
    MEASUREMENTS = "measurements", [
        "id" UUID, "partner_id" UUID, "key_id" TEXT, "organization_id" UUID, "branch_id" UUID, "plate" TEXT,
        "external_id" TEXT, "device_serial" TEXT, "measured_at" TIMESTAMPTZ, "received_at" TIMESTAMPTZ,
        "raw" BYTEA, "raw_sha256" BYTEA, "status" TEXT, "inspection_id" UUID, "settled_at" TIMESTAMPTZ,
        "settled_by" TEXT, "point_codes" TEXT_ARRAY, "point_texts" TEXT_ARRAY, "point_outcomes" TEXT_ARRAY,
    ];
}

/// Inserts the measurements, as sent with one partner's key, into a sandbox that starts at `now`.
pub async fn measurements(
    transaction: &Transaction<'_>,
    data: &Dataset,
    partner: Uuid,
    key_id: &str,
    now: DateTime<Utc>,
) -> Result<(), DbError> {
    let mut copy = Copy::into(transaction, &MEASUREMENTS).await?;
    for row in &data.measurements {
        let branch = &data.branches[row.branch];
        let moved = if row.is_recent { now - base() } else { TimeDelta::zero() };
        let digest = Sha256::digest(&row.raw).to_vec();
        let codes: Vec<_> = row.points.iter().map(|point| point.code).collect();
        let texts: Vec<_> = row.points.iter().map(|point| point.value.to_string()).collect();
        // Pending and discarded measurements have no outcomes.
        let outcomes: Option<Vec<_>> = row.points.iter().map(|point| point.outcome).collect();
        copy.row(&[
            &row.id,
            &partner,
            &key_id,
            &data.organizations[branch.organization].id,
            &branch.id,
            &row.plate,
            &row.external_id,
            &row.device_serial,
            &(row.measured_at + moved),
            &(row.received_at + moved),
            &row.raw,
            &digest,
            &row.status,
            &row.inspection.map(|inspection| data.inspections[inspection].id),
            &row.settled_at,
            &row.settled_by,
            &codes,
            &texts,
            &outcomes,
        ])
        .await?;
    }
    copy.finish().await
}
