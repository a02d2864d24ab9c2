//! Inserts the data into an empty database, table by table, with COPY.

use std::pin::Pin;

use chrono::{DateTime, Utc};
use partner_api_store::DbError;
use partner_api_store::statement::Statement;
use partner_api_store::transaction::Transaction;
use sandbox_pictures::{self as pictures, SCENES};
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::data::{Dataset, Inspection, Opened, Writer};

pub use measurements::measurements;

/// A table's registered COPY statement and the types of its columns.
struct CopyTable {
    statement: &'static Statement,
    types: &'static [Type],
}

/// Declares the COPY of a table: `copy_table! { VEHICLES = "vehicles", ["id" UUID, "plate" TEXT]; }`.
macro_rules! copy_table {
    ($($name:ident = $table:literal, [$first:literal $first_type:ident $(, $column:literal $type:ident)* $(,)?];)+) => {$(
        static $name: $crate::insert::CopyTable = {
            partner_api_store::statement! {
                $name = concat!("COPY ", $table, " (", $first, $(", ", $column,)* ") FROM STDIN BINARY");
            }
            $crate::insert::CopyTable {
                statement: $name,
                types: &[
                    tokio_postgres::types::Type::$first_type,
                    $(tokio_postgres::types::Type::$type,)*
                ],
            }
        };
    )+};
}

mod measurements;
mod tenants;

copy_table! {
    VEHICLES = "vehicles", [
        "id" UUID, "plate" TEXT, "vin" TEXT, "brand" TEXT, "model" TEXT, "year" INT4, "type" TEXT,
        "fuel_type" TEXT, "transmission" TEXT, "color" TEXT, "mileage_km" INT4, "factory_power_hp" NUMERIC,
    ];
    INSPECTIONS = "inspections", [
        "id" UUID, "report_number" TEXT, "organization_id" UUID, "branch_id" UUID, "vehicle_id" UUID,
        "status" TEXT, "plate" TEXT, "package_name" TEXT, "package_base_price" NUMERIC,
        "base_price" NUMERIC, "discount_percent" NUMERIC, "discount_name" TEXT, "final_price" NUMERIC,
        "payment_type" TEXT, "inspector_name" TEXT, "snapshot_vin" TEXT, "snapshot_mileage_km" INT4, "summary" TEXT,
        "recommendation" TEXT, "overall_score" INT4, "public_slug" TEXT, "published_at" TIMESTAMPTZ,
        "created_at" TIMESTAMPTZ,
    ];
    FORMS = "inspection_forms", [
        "id" UUID, "organization_id" UUID, "inspection_id" UUID, "template_id" UUID, "general_note" TEXT,
    ];
    ANSWERS = "inspection_form_answers", [
        "inspection_form_id" UUID, "point_id" UUID, "organization_id" UUID, "status_code" TEXT, "status_label" TEXT,
        "severity" TEXT, "numeric_value" NUMERIC, "note" TEXT, "by_device" BOOL, "measurement_id" UUID, "written_by" TEXT,
        "written_at" TIMESTAMPTZ,
    ];
    PHOTOS = "photos", [
        "id" UUID, "organization_id" UUID, "inspection_id" UUID, "position" INT4, "kind" TEXT, "point_code" TEXT, "caption" TEXT,
        "object_key" TEXT, "thumb_object_key" TEXT, "mime_type" TEXT, "size_bytes" INT8,
        "show_in_report" BOOL, "created_at" TIMESTAMPTZ,
    ];
}

partner_api_store::statement! {
    /// Sets the time of the last change to a realistic one instead of the time of insertion. Archived and cancelled reports changed
    /// some days after they were published.
    MOVE_REPORTS = "UPDATE inspections SET updated_at = least(now(), published_at + CASE status WHEN 'ARCHIVED' THEN interval '90 days' \
        WHEN 'CANCELLED' THEN interval '2 days' ELSE interval '0' END) WHERE published_at IS NOT NULL";
    /// The same for changes of an organization that all of its reports show.
    MOVE_ORGANIZATIONS = "UPDATE organizations SET reports_changed_at = created_at";
}

/// A running COPY.
struct Copy(Pin<Box<BinaryCopyInWriter>>);

impl Copy {
    async fn into(transaction: &Transaction<'_>, table: &CopyTable) -> Result<Self, DbError> {
        let statement = transaction.prepare(table.statement).await?;
        let sink = transaction.copy_in(&statement).await?;
        Ok(Self(Box::pin(BinaryCopyInWriter::new(sink, table.types))))
    }

    async fn row(&mut self, values: &[&(dyn ToSql + Sync)]) -> Result<(), DbError> {
        Ok(self.0.as_mut().write(values).await?)
    }

    async fn finish(mut self) -> Result<(), DbError> {
        self.0.as_mut().finish().await?;
        Ok(())
    }
}

/// Returns the time at which a report was opened, for a sandbox that starts at `now`.
pub fn created_at(inspection: &Inspection, now: DateTime<Utc>) -> DateTime<Utc> {
    match inspection.opened {
        Opened::At(time) => time,
        Opened::Before(age) => now - age,
    }
}

fn organization(data: &Dataset, inspection: &Inspection) -> Uuid {
    data.organizations[data.branches[inspection.branch].organization].id
}

fn position(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}

/// Inserts tenants and reports, which measurements reference.
pub async fn tenants_and_reports(
    transaction: &Transaction<'_>,
    data: &Dataset,
    now: DateTime<Utc>,
) -> Result<(), DbError> {
    tenants::organizations_and_branches(transaction, data).await?;
    tenants::templates_and_thresholds(transaction, data).await?;
    vehicles(transaction, data).await?;
    inspections(transaction, data, now).await
}

/// Inserts forms and photos, which reference measurements. `sizes` are the sizes of the scenes' pictures in bytes.
pub async fn forms_and_photos(
    transaction: &Transaction<'_>,
    data: &Dataset,
    sizes: &[i64],
    now: DateTime<Utc>,
) -> Result<(), DbError> {
    forms(transaction, data, now).await?;
    photos(transaction, data, sizes, now).await?;
    for update in [MOVE_REPORTS, MOVE_ORGANIZATIONS] {
        let statement = transaction.prepare(update).await?;
        transaction.execute(&statement, &[]).await?;
    }
    Ok(())
}

async fn vehicles(transaction: &Transaction<'_>, data: &Dataset) -> Result<(), DbError> {
    let mut copy = Copy::into(transaction, &VEHICLES).await?;
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
    let mut copy = Copy::into(transaction, &INSPECTIONS).await?;
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
            &row.inspector_name,
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
    let mut copy = Copy::into(transaction, &FORMS).await?;
    for inspection in &data.inspections {
        let organization = organization(data, inspection);
        for row in &inspection.forms {
            copy.row(&[&row.id, &organization, &inspection.id, &row.template, &row.general_note])
                .await?;
        }
    }
    copy.finish().await?;
    let mut copy = Copy::into(transaction, &ANSWERS).await?;
    for inspection in &data.inspections {
        let (written_at, organization) = (created_at(inspection, now), organization(data, inspection));
        for (form, row) in inspection
            .forms
            .iter()
            .flat_map(|form| form.answers.iter().map(move |row| (form.id, row)))
        {
            let (by_device, measurement, written_by) = match row.writer {
                Writer::Inspector(name) => (false, None, Some(name)),
                Writer::Device(measurement) => (true, Some(measurement), None),
            };
            copy.row(&[
                &form,
                &row.point,
                &organization,
                &row.status_code,
                &row.status_label,
                &row.severity,
                &row.numeric_value,
                &row.note,
                &by_device,
                &measurement,
                &written_by,
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
    let mut copy = Copy::into(transaction, &PHOTOS).await?;
    for inspection in &data.inspections {
        let (taken_at, organization) = (created_at(inspection, now), organization(data, inspection));
        for (index, row) in inspection.photos.iter().enumerate() {
            let scene = &SCENES[row.scene];
            let size = sizes.get(row.scene).copied().unwrap_or_default();
            copy.row(&[
                &row.id,
                &organization,
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
