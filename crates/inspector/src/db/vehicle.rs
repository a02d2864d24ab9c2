//! Corrections of a report's vehicle.

use partner_api_domain::dyno;
use partner_api_domain::plate::Plate;
use partner_api_store::DbError;
use partner_api_store::statement;
use partner_api_store::transaction::Transaction;
use rust_decimal::Decimal;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::opening::{NewVehicle, lock_plate};
use super::writing::{FillError, Filling, LockedReport, fill};
use super::{execute, row};
use crate::caller::Inspector;
use crate::rules::answers::NewAnswer;

statement! {
    /// The vehicle of the report `$1` of the organization `$2`, and the measured power in its test-line form.
    VEHICLE = "\
SELECT i.vehicle_id, v.factory_power_hp, t.code AS template_code, a.numeric_value AS measured_hp
FROM inspections i JOIN vehicles v ON v.id = i.vehicle_id
LEFT JOIN form_templates t ON t.organization_id = i.organization_id AND t.is_test_line
LEFT JOIN form_template_points p
       ON p.template_id = t.id AND p.organization_id = t.organization_id AND p.code = 'DYNO_MEASURED_HP'
LEFT JOIN inspection_forms f ON f.inspection_id = i.id AND f.template_id = t.id AND f.organization_id = i.organization_id
LEFT JOIN inspection_form_answers a
       ON a.inspection_form_id = f.id AND a.point_id = p.id AND a.organization_id = f.organization_id
WHERE i.id = $1 AND i.organization_id = $2";

    /// Whether reports other than `$2` have the vehicle `$1`, in any organization.
    IS_SHARED = "SELECT EXISTS (SELECT 1 FROM inspections WHERE vehicle_id = $1 AND id <> $2) AS is_shared";

    /// Copies the vehicle `$1` under the ID `$2`.
    COPY_VEHICLE = "\
INSERT INTO vehicles (id, plate, vin, brand, model, year, type, fuel_type, transmission, color, mileage_km, factory_power_hp)
SELECT $2, plate, vin, brand, model, year, type, fuel_type, transmission, color, mileage_km, factory_power_hp
FROM vehicles WHERE id = $1";

    /// Replaces the data of the vehicle `$1`; its plate (`$11`) only if it is not null.
    CORRECT_VEHICLE = "\
UPDATE vehicles SET vin = $2, brand = $3, model = $4, year = $5, type = $6, fuel_type = $7, transmission = $8, color = $9,
    factory_power_hp = $10, plate = coalesce($11, plate)
WHERE id = $1";

    /// Records that the plate of the report `$1` of the organization `$2` is corrected from `$3` to `$4` by the inspector with the
    /// ID `$5` and the name `$6`.
    RECORD_CORRECTION = "\
INSERT INTO plate_corrections (inspection_id, number, organization_id, old_plate, new_plate, inspector_id, inspector_name)
SELECT $1, coalesce((SELECT max(number) FROM plate_corrections WHERE inspection_id = $1 AND organization_id = $2), 0) + 1, $2, $3,
       $4, $5, $6";

    /// Sets the vehicle of the report `$1` of the organization `$2` to `$3`, the VIN to `$4`, and the plate to `$5`, if that is not
    /// null.
    CORRECT_REPORT = "\
UPDATE inspections SET vehicle_id = $3, snapshot_vin = $4, plate = coalesce($5, plate), version = version + 1
WHERE id = $1 AND organization_id = $2";
}

/// A correction of a report's vehicle.
#[derive(Clone, Debug)]
pub struct Correction {
    /// The vehicle's data.
    pub vehicle: NewVehicle,
    /// The plate; `None` leaves it unchanged.
    pub plate: Option<Plate>,
    /// Whether to correct the plate although another report is open for it at the branch.
    pub even_if_open: bool,
}

/// Why a vehicle was not corrected.
#[derive(Debug)]
pub enum CorrectError {
    /// A report with this number is open for the corrected plate at the branch.
    AlreadyOpen(String),
    /// The ratio of the power could not be computed again, or the database failed.
    Fill(FillError),
}

impl From<FillError> for CorrectError {
    fn from(error: FillError) -> Self {
        CorrectError::Fill(error)
    }
}

impl From<DbError> for CorrectError {
    fn from(error: DbError) -> Self {
        CorrectError::Fill(error.into())
    }
}

/// Replaces the data of a locked report's vehicle, and computes the power ratio again. Other reports of the vehicle keep theirs.
///
/// With a corrected plate, the pending measurements of that plate are the report's. Measurements that were already applied stay
/// applied, because only an inspector knows whether they were of this vehicle; each of them can be taken back.
///
/// # Errors
/// [`CorrectError`]; the transaction must not be committed then.
pub async fn correct(
    transaction: &Transaction<'_>,
    inspector: &Inspector,
    report: &LockedReport,
    correction: &Correction,
) -> Result<(), CorrectError> {
    let vehicle = &correction.vehicle;
    let plate = correction.plate.as_ref().map(Plate::as_str);
    let plate = plate.filter(|plate| *plate != report.plate);
    let organization = &report.organization_id;
    let Some(found) = row(transaction, VEHICLE, &[&report.id, organization]).await? else {
        return Ok(());
    };
    if let Some(plate) = plate {
        let others = lock_plate(transaction, inspector, report.branch_id, plate, report.id).await?;
        if let Some(number) = others.filter(|_| !correction.even_if_open) {
            return Err(CorrectError::AlreadyOpen(number));
        }
        let parameters: [&(dyn ToSql + Sync); 6] = [
            &report.id,
            organization,
            &report.plate,
            &plate,
            &inspector.id(),
            &inspector.name(),
        ];
        execute(transaction, RECORD_CORRECTION, &parameters).await?;
    }
    let mut id: Uuid = found.try_get("vehicle_id").map_err(DbError::from)?;
    if let Some(others) = row(transaction, IS_SHARED, &[&id, &report.id]).await?
        && others.try_get("is_shared").map_err(DbError::from)?
    {
        let copy = Uuid::now_v7();
        execute(transaction, COPY_VEHICLE, &[&id, &copy]).await?;
        id = copy;
    }
    let parameters: [&(dyn ToSql + Sync); 11] = [
        &id,
        &vehicle.vin,
        &vehicle.brand,
        &vehicle.model,
        &vehicle.year,
        &vehicle.body_type,
        &vehicle.fuel_type,
        &vehicle.transmission,
        &vehicle.color,
        &vehicle.factory_power_hp,
        &plate,
    ];
    execute(transaction, CORRECT_VEHICLE, &parameters).await?;
    let parameters: [&(dyn ToSql + Sync); 5] = [&report.id, organization, &id, &vehicle.vin, &plate];
    execute(transaction, CORRECT_REPORT, &parameters).await?;
    let before: Option<Decimal> = found.try_get("factory_power_hp").map_err(DbError::from)?;
    let measured: Option<Decimal> = found.try_get("measured_hp").map_err(DbError::from)?;
    if let (Some(measured), true) = (measured, before != vehicle.factory_power_hp) {
        // The same power again, which gives the new ratio and keeps the author.
        let again = NewAnswer {
            point_code: dyno::MEASURED_HP.to_owned(),
            status: None,
            number: Some(measured),
            note: None,
        };
        let filling = Filling {
            template_code: found.try_get("template_code").map_err(DbError::from)?,
            general_note: None,
            clear: Vec::new(),
            answers: vec![again],
        };
        fill(transaction, inspector, report, &filling).await?;
    }
    Ok(())
}
