//! Corrections of a report's vehicle.

use partner_api_domain::dyno;
use partner_api_store::DbError;
use partner_api_store::statement;
use partner_api_store::transaction::Transaction;
use rust_decimal::Decimal;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::opening::NewVehicle;
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

    /// Replaces the data of the vehicle `$1`.
    CORRECT_VEHICLE = "\
UPDATE vehicles SET vin = $2, brand = $3, model = $4, year = $5, type = $6, fuel_type = $7, transmission = $8, color = $9,
    factory_power_hp = $10
WHERE id = $1";

    /// Sets the VIN of the report `$1`.
    SET_VIN = "UPDATE inspections SET snapshot_vin = $2, version = version + 1 WHERE id = $1";
}

/// Replaces the data of a locked report's vehicle, and computes the power ratio again. Other reports of the vehicle keep theirs.
///
/// # Errors
/// [`FillError`] if the ratio cannot be computed again; the transaction must not be committed then.
pub async fn correct(
    transaction: &Transaction<'_>,
    inspector: &Inspector,
    report: &LockedReport,
    vehicle: &NewVehicle,
) -> Result<(), FillError> {
    let Some(found) = row(transaction, VEHICLE, &[&report.id]).await? else {
        return Ok(());
    };
    let mut id: Uuid = found.try_get("vehicle_id").map_err(DbError::from)?;
    if found.try_get("is_shared").map_err(DbError::from)? {
        let copy = Uuid::now_v7();
        execute(transaction, COPY_VEHICLE, &[&report.id, &id, &copy]).await?;
        id = copy;
    }
    let parameters: [&(dyn ToSql + Sync); 10] = [
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
