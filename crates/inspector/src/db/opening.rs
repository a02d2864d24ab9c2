//! Opens reports.

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
    /// The vehicle that the organization `$2` last inspected under the plate `$1`. Vehicles of other organizations are not used.
    VEHICLE = "\
SELECT v.id, v.vin FROM vehicles v JOIN inspections i ON i.vehicle_id = v.id AND i.organization_id = $2
WHERE v.plate = $1 ORDER BY i.created_at DESC, i.id DESC LIMIT 1";

    /// Inserts a vehicle.
    INSERT_VEHICLE = "\
INSERT INTO vehicles (id, plate, vin, brand, model, year, type, fuel_type, transmission, color, mileage_km, factory_power_hp)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

    /// Inserts a draft of the organization `$10`. Its number consists of the branch's code, the year, and a serial number. Without
    /// `RETURNING`, a distributed database would count a row that it did not insert.
    INSERT = "\
INSERT INTO inspections (id, report_number, organization_id, branch_id, vehicle_id, status, plate, package_name,
                         package_base_price, base_price, final_price, payment_type, snapshot_vin, snapshot_mileage_km,
                         inspector_name)
SELECT $1, b.code || '-' || to_char(now() AT TIME ZONE 'UTC', 'YYYY') || '-' || lpad(n.number, greatest(6, length(n.number)), '0'),
       b.organization_id, b.id, $3, 'DRAFT', $4, $5, $6, $6, $6, 'CASH', $7, $8, $9
FROM branches b CROSS JOIN (SELECT nextval('report_numbers')::text AS number) AS n
-- The id must not belong to a report of another organization.
WHERE b.id = $2 AND b.organization_id = $10 AND NOT EXISTS (SELECT 1 FROM inspections WHERE id = $1)
ON CONFLICT DO NOTHING RETURNING id";

    /// Locks the plate `$2` at the branch `$1` until the transaction ends, so that of two inspectors who take it at the same time
    /// the second one sees the first one's report. Nothing else in the database uses advisory locks with two keys.
    LOCK_PLATE = "SELECT pg_advisory_xact_lock(hashtext($1::uuid::text), hashtext($2))";

    /// Whether there is a report with the ID `$1`.
    EXISTS = "SELECT EXISTS (SELECT 1 FROM inspections WHERE id = $1) AS is_used";

    /// The newest report that is open for the plate `$2` at the branch `$1` of the organization `$4`, except the one with the ID
    /// `$3`.
    OPEN = "\
SELECT report_number FROM inspections
WHERE branch_id = $1 AND organization_id = $4 AND plate = $2 AND id <> $3
  AND status IN ('DRAFT', 'IN_REVIEW', 'REVISION_REQUESTED')
ORDER BY created_at DESC, id DESC LIMIT 1";

    /// Inserts the missing forms of the report `$1`, one for each template of its organization `$2`.
    INSERT_FORMS = "\
INSERT INTO inspection_forms (id, organization_id, inspection_id, template_id)
SELECT gen_random_uuid(), t.organization_id, $1, t.id FROM form_templates t
WHERE t.organization_id = $2 ON CONFLICT DO NOTHING";
}

/// The number of consecutive report numbers that are tried if they are in use.
const MAX_USED_NUMBERS: u32 = 100;

/// A report to open.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The ID of the new report.
    pub id: Uuid,
    /// The ID of one of the inspector's branches.
    pub branch_id: Uuid,
    /// The plate.
    pub plate: Plate,
    /// The name of the inspection package.
    pub package_name: String,
    /// The price of the package, in lira.
    pub base_price: Decimal,
    /// The reading of the odometer, in km.
    pub mileage_km: i32,
    /// The vehicle, if none is known for the plate.
    pub vehicle: Option<NewVehicle>,
    /// Whether to open it although another report is open for the plate at the branch.
    pub even_if_open: bool,
}

/// A vehicle that is not known yet.
#[derive(Clone, Debug)]
pub struct NewVehicle {
    /// The vehicle identification number (VIN).
    pub vin: String,
    /// The make.
    pub brand: String,
    /// The model.
    pub model: String,
    /// The model year.
    pub year: i32,
    /// The body type.
    pub body_type: &'static str,
    /// The fuel.
    pub fuel_type: &'static str,
    /// The transmission.
    pub transmission: &'static str,
    /// The color.
    pub color: String,
    /// The registered power, in HP.
    pub factory_power_hp: Option<Decimal>,
}

/// Why a report was not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// No vehicle is known for the plate, and the request has none.
    NoVehicle,
    /// A report with the ID exists.
    IdInUse,
    /// A report with this number is open for the plate at the branch.
    AlreadyOpen(String),
}

/// Locks a plate at one of the inspector's branches until the transaction ends. Returns the number of the newest report that is
/// open for it, other than the one with this ID.
///
/// # Errors
/// The database failed.
pub(super) async fn lock_plate(
    transaction: &Transaction<'_>,
    inspector: &Inspector,
    branch: Uuid,
    plate: &str,
    except: Uuid,
) -> Result<Option<String>, DbError> {
    execute(transaction, LOCK_PLATE, &[&branch, &plate]).await?;
    let open = row(
        transaction,
        OPEN,
        &[&branch, &plate, &except, &inspector.organization_id()],
    )
    .await?;
    Ok(open.map(|open| open.try_get(0)).transpose()?)
}

/// Opens a report at one of the inspector's branches. The transaction must not be committed if the report was not opened.
///
/// # Errors
/// The database failed.
pub async fn open(
    transaction: &Transaction<'_>,
    inspector: &Inspector,
    opening: &Opening,
) -> Result<Result<(), OpenError>, DbError> {
    let plate = opening.plate.as_str();
    let others = lock_plate(transaction, inspector, opening.branch_id, plate, opening.id).await?;
    if let Some(found) = row(transaction, EXISTS, &[&opening.id]).await?
        && found.try_get("is_used")?
    {
        return Ok(Err(OpenError::IdInUse));
    }
    if let Some(number) = others.filter(|_| !opening.even_if_open) {
        return Ok(Err(OpenError::AlreadyOpen(number)));
    }
    let known = row(transaction, VEHICLE, &[&plate, &inspector.organization_id()]).await?;
    let known: Option<(Uuid, String)> = match known {
        Some(known) => Some((known.try_get("id")?, known.try_get("vin")?)),
        None => None,
    };
    let (vehicle_id, vin) = match (known, &opening.vehicle) {
        (Some(known), None) => known,
        // The request may name another vehicle, because the plate was transferred to it.
        (Some(known), Some(sent)) if known.1 == sent.vin => known,
        (None, None) => return Ok(Err(OpenError::NoVehicle)),
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
            execute(transaction, INSERT_VEHICLE, &parameters).await?;
            (id, vehicle.vin.clone())
        }
    };
    let id = opening.id;
    let by = inspector.name();
    let organization = inspector.organization_id();
    let parameters: [&(dyn ToSql + Sync); 10] = [
        &id,
        &opening.branch_id,
        &vehicle_id,
        &plate,
        &opening.package_name,
        &opening.base_price,
        &vin,
        &opening.mileage_km,
        &by,
        &organization,
    ];
    // An imported report may use a number; the next one is tried then.
    let mut numbers = 0;
    while execute(transaction, INSERT, &parameters).await? == 0 {
        if let Some(found) = row(transaction, EXISTS, &[&id]).await?
            && found.try_get("is_used")?
        {
            return Ok(Err(OpenError::IdInUse));
        }
        numbers += 1;
        if numbers == MAX_USED_NUMBERS {
            return Err(DbError::Data {
                table: "inspections",
                detail: format!("{MAX_USED_NUMBERS} consecutive report numbers are in use"),
            });
        }
    }
    execute(transaction, INSERT_FORMS, &[&id, &organization]).await?;
    moves::record(transaction, inspector, id, None, Status::Draft, None).await?;
    Ok(Ok(()))
}
