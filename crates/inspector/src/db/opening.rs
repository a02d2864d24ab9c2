//! Opening a report.

use partner_api_domain::plate::Plate;
use partner_api_store::DbError;
use partner_api_store::statement;
use partner_api_store::transaction::Transaction;
use rust_decimal::Decimal;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::{execute, moves, row};
use crate::caller::Inspector;
use crate::rules::moves::Status;

statement! {
    /// The vehicle of a plate (`$1`) as the organisation `$2` has inspected it, the one that it did last. What others know of a
    /// plate is theirs.
    VEHICLE = "\
SELECT v.id, v.vin FROM vehicles v JOIN inspections i ON i.vehicle_id = v.id AND i.organization_id = $2
WHERE v.plate = $1 ORDER BY i.created_at DESC, i.id DESC LIMIT 1";

    /// Makes a vehicle.
    MAKE_VEHICLE = "\
INSERT INTO vehicles (id, plate, vin, brand, model, year, type, fuel_type, transmission, color, mileage_km, factory_power_hp)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

    /// Makes a draft: its number is the branch's code, the year, and a running number.
    MAKE = "\
INSERT INTO inspections (id, report_number, organization_id, branch_id, vehicle_id, status, plate, package_name,
                         package_base_price, base_price, final_price, payment_type, snapshot_vin, snapshot_mileage_km,
                         inspector_name)
SELECT $1, b.code || '-' || to_char(now() AT TIME ZONE 'UTC', 'YYYY') || '-' || lpad(n.number, greatest(6, length(n.number)), '0'),
       b.organization_id, b.id, $3, 'DRAFT', $4, $5, $6, $6, $6, 'CASH', $7, $8, $9
FROM branches b CROSS JOIN (SELECT nextval('report_numbers')::text AS number) AS n
-- Nor one of another organization.
WHERE b.id = $2 AND NOT EXISTS (SELECT FROM inspections WHERE id = $1)
ON CONFLICT DO NOTHING";

    /// Whether there is a report with the id `$1`.
    IS_TAKEN = "SELECT EXISTS (SELECT FROM inspections WHERE id = $1) AS is_taken";

    /// Makes the forms of the organisation's templates, as far as the report `$1` has none.
    MAKE_FORMS = "\
INSERT INTO inspection_forms (id, organization_id, inspection_id, template_id)
SELECT gen_random_uuid(), i.organization_id, i.id, t.id FROM inspections i JOIN form_templates t ON t.organization_id = i.organization_id
WHERE i.id = $1 ON CONFLICT DO NOTHING";
}

/// Numbers in a row that may be taken.
const NUMBERS_TAKEN: u32 = 100;

/// A report to open.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The id that it will have.
    pub id: Uuid,
    /// A branch of the inspector's.
    pub branch_id: Uuid,
    /// The plate.
    pub plate: Plate,
    /// What was sold.
    pub package_name: String,
    /// Its price.
    pub base_price: Decimal,
    /// What the odometer shows, in kilometres.
    pub mileage_km: i32,
    /// The vehicle, where it is not known by its plate.
    pub vehicle: Option<NewVehicle>,
}

/// A vehicle that is not known.
#[derive(Clone, Debug)]
pub struct NewVehicle {
    /// The chassis number.
    pub vin: String,
    /// Its brand.
    pub brand: String,
    /// Its model.
    pub model: String,
    /// The model year.
    pub year: i32,
    /// The body's type.
    pub body_type: String,
    /// The fuel.
    pub fuel_type: String,
    /// The transmission.
    pub transmission: String,
    /// The colour.
    pub color: String,
    /// The registered power, in HP.
    pub factory_power_hp: Option<Decimal>,
}

/// What keeps a report from being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unopened {
    /// The plate has no vehicle, and none is given.
    NoVehicle,
    /// There is a report with its id.
    Taken,
}

/// Opens a report at a branch of the inspector's. The transaction must not be committed where it is not opened.
///
/// # Errors
/// What the database says.
pub async fn open(
    transaction: &Transaction<'_>,
    inspector: &Inspector,
    opening: &Opening,
) -> Result<Result<(), Unopened>, DbError> {
    let plate = opening.plate.as_str();
    let known = row(transaction, VEHICLE, &[&plate, &inspector.organization_id()]).await?;
    let known: Option<(Uuid, String)> = match known {
        Some(known) => Some((known.try_get("id")?, known.try_get("vin")?)),
        None => None,
    };
    let (vehicle_id, vin) = match (known, &opening.vehicle) {
        (Some(known), None) => known,
        // A plate may have been given to another car.
        (Some(known), Some(sent)) if known.1 == sent.vin => known,
        (None, None) => return Ok(Err(Unopened::NoVehicle)),
        (_, Some(vehicle)) => {
            let id = Uuid::now_v7();
            let parameters: [&(dyn ToSql + Sync); 12] = [
                &id,
                &plate,
                &vehicle.vin,
                &vehicle.brand,
                &vehicle.model,
                &vehicle.year,
                &vehicle.body_type,
                &vehicle.fuel_type,
                &vehicle.transmission,
                &vehicle.color,
                &opening.mileage_km,
                &vehicle.factory_power_hp,
            ];
            execute(transaction, MAKE_VEHICLE, &parameters).await?;
            (id, vehicle.vin.clone())
        }
    };
    let id = opening.id;
    let by = inspector.name();
    let parameters: [&(dyn ToSql + Sync); 9] = [
        &id,
        &opening.branch_id,
        &vehicle_id,
        &plate,
        &opening.package_name,
        &opening.base_price,
        &vin,
        &opening.mileage_km,
        &by,
    ];
    // A number that somebody else has brought along is passed by.
    let mut numbers = 0;
    while execute(transaction, MAKE, &parameters).await? == 0 {
        if let Some(found) = row(transaction, IS_TAKEN, &[&id]).await?
            && found.try_get("is_taken")?
        {
            return Ok(Err(Unopened::Taken));
        }
        numbers += 1;
        if numbers == NUMBERS_TAKEN {
            return Err(DbError::Data {
                table: "inspections",
                detail: format!("{NUMBERS_TAKEN} report numbers in a row are taken"),
            });
        }
    }
    execute(transaction, MAKE_FORMS, &[&id]).await?;
    moves::note(transaction, inspector, id, None, Status::Draft, None).await?;
    Ok(Ok(()))
}
