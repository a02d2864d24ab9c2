//! Brings the data into an empty database, table by table, with COPY.

mod measurements;
mod tenants;

use std::pin::Pin;

use chrono::{DateTime, Utc};
use deadpool_postgres::Transaction;
use partner_api::db::DbError;
use sandbox_pictures::{self as pictures, SCENES};
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use super::data::{Dataset, Inspection, Opened};

pub use measurements::measurements;

/// A COPY under way.
struct Copy(Pin<Box<BinaryCopyInWriter>>);

impl Copy {
    async fn into(transaction: &Transaction<'_>, table: &str, columns: &[(&str, Type)]) -> Result<Self, DbError> {
        let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
        let types: Vec<_> = columns.iter().map(|(_, of)| of.clone()).collect();
        let statement = format!("COPY {table} ({}) FROM STDIN BINARY", names.join(", "));
        let sink = transaction.copy_in(&statement).await?;
        Ok(Self(Box::pin(BinaryCopyInWriter::new(sink, &types))))
    }

    async fn row(&mut self, values: &[&(dyn ToSql + Sync)]) -> Result<(), DbError> {
        Ok(self.0.as_mut().write(values).await?)
    }

    async fn finish(mut self) -> Result<(), DbError> {
        self.0.as_mut().finish().await?;
        Ok(())
    }
}

/// When a report was opened, for a sandbox that starts at `now`.
pub fn created_at(inspection: &Inspection, now: DateTime<Utc>) -> DateTime<Utc> {
    match inspection.opened {
        Opened::At(time) => time,
        Opened::Before(age) => now - age,
    }
}

fn position(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}

/// All rows that do not belong to a partner. `sizes` are those of the scenes' pictures in bytes.
pub async fn tenants_and_reports(
    transaction: &Transaction<'_>,
    data: &Dataset,
    sizes: &[i64],
    now: DateTime<Utc>,
) -> Result<(), DbError> {
    tenants::organizations_and_branches(transaction, data).await?;
    tenants::templates_and_thresholds(transaction, data).await?;
    vehicles(transaction, data).await?;
    inspections(transaction, data, now).await?;
    forms(transaction, data, now).await?;
    photos(transaction, data, sizes, now).await
}

async fn vehicles(transaction: &Transaction<'_>, data: &Dataset) -> Result<(), DbError> {
    let columns = [
        ("id", Type::UUID),
        ("plate", Type::TEXT),
        ("vin", Type::TEXT),
        ("brand", Type::TEXT),
        ("model", Type::TEXT),
        ("year", Type::INT4),
        ("type", Type::TEXT),
        ("fuel_type", Type::TEXT),
        ("transmission", Type::TEXT),
        ("color", Type::TEXT),
        ("mileage_km", Type::INT4),
        ("factory_power_hp", Type::NUMERIC),
    ];
    let mut copy = Copy::into(transaction, "vehicles", &columns).await?;
    for row in &data.vehicles {
        copy.row(&[
            &row.id,
            &row.plate,
            &row.vin,
            &row.brand,
            &row.model,
            &row.year,
            &row.body,
            &row.fuel,
            &row.transmission,
            &row.color,
            &row.mileage_km,
            &row.factory_power_hp,
        ])
        .await?;
    }
    copy.finish().await
}

async fn inspections(transaction: &Transaction<'_>, data: &Dataset, now: DateTime<Utc>) -> Result<(), DbError> {
    let columns = [
        ("id", Type::UUID),
        ("report_number", Type::TEXT),
        ("organization_id", Type::UUID),
        ("branch_id", Type::UUID),
        ("vehicle_id", Type::UUID),
        ("status", Type::TEXT),
        ("plate", Type::TEXT),
        ("package_name", Type::TEXT),
        ("package_base_price", Type::NUMERIC),
        ("base_price", Type::NUMERIC),
        ("discount_percent", Type::NUMERIC),
        ("discount_name", Type::TEXT),
        ("final_price", Type::NUMERIC),
        ("payment_type", Type::TEXT),
        ("snapshot_vin", Type::TEXT),
        ("snapshot_mileage_km", Type::INT4),
        ("summary", Type::TEXT),
        ("recommendation", Type::TEXT),
        ("overall_score", Type::INT4),
        ("public_slug", Type::TEXT),
        ("published_at", Type::TIMESTAMPTZ),
        ("created_at", Type::TIMESTAMPTZ),
    ];
    let mut copy = Copy::into(transaction, "inspections", &columns).await?;
    for row in &data.inspections {
        let branch = &data.branches[row.branch];
        let vehicle = &data.vehicles[row.vehicle];
        copy.row(&[
            &row.id,
            &row.report_number,
            &data.organizations[branch.organization].id,
            &branch.id,
            &vehicle.id,
            &row.status,
            &vehicle.plate,
            &row.package_name,
            &row.package_base_price,
            &row.base_price,
            &row.discount_percent,
            &row.discount_name,
            &row.final_price,
            &row.payment_type,
            &vehicle.vin,
            &row.snapshot_mileage_km,
            &row.summary,
            &row.recommendation,
            &row.overall_score,
            &row.public_slug,
            &row.published_at,
            &created_at(row, now),
        ])
        .await?;
    }
    copy.finish().await
}

async fn forms(transaction: &Transaction<'_>, data: &Dataset, now: DateTime<Utc>) -> Result<(), DbError> {
    let columns = [
        ("id", Type::UUID),
        ("inspection_id", Type::UUID),
        ("template_id", Type::UUID),
        ("general_note", Type::TEXT),
    ];
    let mut copy = Copy::into(transaction, "inspection_forms", &columns).await?;
    for inspection in &data.inspections {
        for row in &inspection.forms {
            copy.row(&[&row.id, &inspection.id, &row.template, &row.general_note])
                .await?;
        }
    }
    copy.finish().await?;
    let columns = [
        ("inspection_form_id", Type::UUID),
        ("point_id", Type::UUID),
        ("status_code", Type::TEXT),
        ("status_label", Type::TEXT),
        ("severity", Type::TEXT),
        ("numeric_value", Type::NUMERIC),
        ("note", Type::TEXT),
        ("written_by", Type::TEXT),
        ("written_at", Type::TIMESTAMPTZ),
    ];
    let mut copy = Copy::into(transaction, "inspection_form_answers", &columns).await?;
    for inspection in &data.inspections {
        let written_at = created_at(inspection, now);
        for (form, row) in inspection
            .forms
            .iter()
            .flat_map(|form| form.answers.iter().map(move |row| (form.id, row)))
        {
            copy.row(&[
                &form,
                &row.point,
                &row.status_code,
                &row.status_label,
                &row.severity,
                &row.numeric_value,
                &row.note,
                &row.written_by,
                &written_at,
            ])
            .await?;
        }
    }
    copy.finish().await
}

async fn photos(
    transaction: &Transaction<'_>,
    data: &Dataset,
    sizes: &[i64],
    now: DateTime<Utc>,
) -> Result<(), DbError> {
    let columns = [
        ("id", Type::UUID),
        ("inspection_id", Type::UUID),
        ("position", Type::INT4),
        ("kind", Type::TEXT),
        ("point_code", Type::TEXT),
        ("caption", Type::TEXT),
        ("object_key", Type::TEXT),
        ("thumb_object_key", Type::TEXT),
        ("mime_type", Type::TEXT),
        ("size_bytes", Type::INT8),
        ("show_in_report", Type::BOOL),
        ("created_at", Type::TIMESTAMPTZ),
    ];
    let mut copy = Copy::into(transaction, "photos", &columns).await?;
    for inspection in &data.inspections {
        let taken_at = created_at(inspection, now);
        for (index, row) in inspection.photos.iter().enumerate() {
            let scene = &SCENES[row.scene];
            let size = sizes.get(row.scene).copied().unwrap_or_default();
            copy.row(&[
                &row.id,
                &inspection.id,
                &position(index),
                &row.kind,
                &row.point_code,
                &row.caption,
                &scene.object_key(),
                &row.has_thumbnail.then(|| scene.thumbnail_key()),
                &pictures::MIME_TYPE,
                &size,
                &row.show_in_report,
                &taken_at,
            ])
            .await?;
        }
    }
    copy.finish().await
}
