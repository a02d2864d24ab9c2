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
    /// The vehicle of the report `$1`, whether other reports have it as well, and the measured power in its test-line form.
    VEHICLE = "\
SELECT i.vehicle_id, EXISTS (SELECT FROM inspections o WHERE o.vehicle_id = i.vehicle_id AND o.id <> i.id) AS is_shared,
       v.factory_power_hp, t.code AS template_code, a.numeric_value AS measured_hp
FROM inspections i JOIN vehicles v ON v.id = i.vehicle_id
LEFT JOIN form_templates t ON t.organization_id = i.organization_id AND t.is_test_line
LEFT JOIN form_template_points p ON p.template_id = t.id AND p.code = 'DYNO_MEASURED_HP'
LEFT JOIN inspection_forms f ON f.inspection_id = i.id AND f.template_id = t.id
LEFT JOIN inspection_form_answers a ON a.inspection_form_id = f.id AND a.point_id = p.id
WHERE i.id = $1";

    /// Copies the vehicle `$2` under the ID `$3`, and gives the copy to the report `$1`.
    COPY_VEHICLE = "\
WITH copy AS (
    INSERT INTO vehicles (id, plate, vin, brand, model, year, type, fuel_type, transmission, color, mileage_km, factory_power_hp)
    SELECT $3, plate, vin, brand, model, year, type, fuel_type, transmission, color, mileage_km, factory_power_hp
    FROM vehicles WHERE id = $2
)
UPDATE inspections SET vehicle_id = $3 WHERE id = $1";

    /// Replaces the data of the vehicle `$1`; its plate (`$11`) only if it is not null.
    CORRECT_VEHICLE = "\
UPDATE vehicles SET vin = $2, brand = $3, model = $4, year = $5, type = $6, fuel_type = $7, transmission = $8, color = $9,
    factory_power_hp = $10, plate = coalesce($11, plate)
WHERE id = $1";

    /// Sets the plate of the report `$1` to `$2`, and records the correction by the inspector with the ID `$3` and the name `$4`.
    CORRECT_PLATE = "\
WITH report AS (SELECT id, organization_id, plate FROM inspections WHERE id = $1), corrected AS (
    UPDATE inspections SET plate = $2 WHERE id = $1
)
INSERT INTO plate_corrections (inspection_id, number, organization_id, old_plate, new_plate, inspector_id, inspector_name)
SELECT id, coalesce((SELECT max(number) FROM plate_corrections WHERE inspection_id = $1), 0) + 1, organization_id, plate, $2, $3, $4
FROM report";

    /// Sets the VIN of the report `$1`.
    SET_VIN = "UPDATE inspections SET snapshot_vin = $2, version = version + 1 WHERE id = $1";
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
    let Some(found) = row(transaction, VEHICLE, &[&report.id]).await? else {
        return Ok(());
    };
    if let Some(plate) = plate {
        let others = lock_plate(transaction, report.branch_id, plate, report.id).await?;
        if let Some(number) = others.filter(|_| !correction.even_if_open) {
            return Err(CorrectError::AlreadyOpen(number));
        }
        let by: [&(dyn ToSql + Sync); 4] = [&report.id, &plate, &inspector.id(), &inspector.name()];
        execute(transaction, CORRECT_PLATE, &by).await?;
    }
    let mut id: Uuid = found.try_get("vehicle_id").map_err(DbError::from)?;
    if found.try_get("is_shared").map_err(DbError::from)? {
        let copy = Uuid::now_v7();
        execute(transaction, COPY_VEHICLE, &[&report.id, &id, &copy]).await?;
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
    execute(transaction, SET_VIN, &[&report.id, &vehicle.vin]).await?;
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
