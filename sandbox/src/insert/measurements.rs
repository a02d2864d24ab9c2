//! Measurements with their points.

use deadpool_postgres::Transaction;
use partner_api::db::DbError;
use sha2::{Digest as _, Sha256};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Copy;
use crate::data::Dataset;

/// The measurements, as sent by one partner's key.
pub async fn measurements(
    transaction: &Transaction<'_>,
    data: &Dataset,
    partner: Uuid,
    key_id: &str,
) -> Result<(), DbError> {
    let columns = [
        ("id", Type::UUID),
        ("partner_id", Type::UUID),
        ("key_id", Type::TEXT),
        ("organization_id", Type::UUID),
        ("branch_id", Type::UUID),
        ("plate", Type::TEXT),
        ("external_id", Type::TEXT),
        ("device_serial", Type::TEXT),
        ("measured_at", Type::TIMESTAMPTZ),
        ("received_at", Type::TIMESTAMPTZ),
        ("raw", Type::BYTEA),
        ("raw_sha256", Type::BYTEA),
        ("status", Type::TEXT),
        ("inspection_id", Type::UUID),
        ("settled_at", Type::TIMESTAMPTZ),
        ("settled_by", Type::TEXT),
        ("point_codes", Type::TEXT_ARRAY),
        ("point_texts", Type::TEXT_ARRAY),
        ("point_outcomes", Type::TEXT_ARRAY),
    ];
    let mut copy = Copy::into(transaction, "measurements", &columns).await?;
    for row in &data.measurements {
        let branch = &data.branches[row.branch];
        let digest = Sha256::digest(&row.raw).to_vec();
        let codes: Vec<_> = row.points.iter().map(|point| point.code).collect();
        let texts: Vec<_> = row.points.iter().map(|point| point.value.to_string()).collect();
        // Of one that waits or was ignored nothing is decided.
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
            &row.measured_at,
            &row.received_at,
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
