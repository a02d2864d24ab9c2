//! `POST /inspector/v1/reports`: a draft for a branch, a plate and a package.

use codegen_runtime::fault::{Fault, Faults, Path};
use partner_api_domain::plate::{self, Plate};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::{as_it_stands, price_fault};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::opening::{self, NewVehicle, Opening, Unopened};
use crate::error::{self, ApiError};
use crate::generated::errors::ErrorCode;
use crate::generated::responses::OpenReportResponse;
use crate::generated::types::{OpenReport, VehicleData};

/// Opens a report.
///
/// # Errors
/// `not_found` for another branch than the inspector's; `invalid_request` for a plate that is none, for one without a vehicle
/// where none is sent, and for the id of another's report.
pub async fn handle(context: &Context, caller: &Caller, body: OpenReport) -> Result<OpenReportResponse, ApiError> {
    let inspector = caller.inspector()?;
    if !inspector.branches().iter().any(|branch| branch.id == body.branch_id) {
        let message = "branch_id: this is no branch of yours; see get_session for those that are";
        return Err(ApiError::new(ErrorCode::NotFound, message));
    }
    let plate = Plate::parse(&body.plate)
        .map_err(|problem| Fault::of_member("plate", format!("{problem}; {}", plate::read_as(&body.plate))));
    let power = body.vehicle.as_ref().and_then(|vehicle| vehicle.factory_power_hp);
    let others = price_fault("base_price", Some(body.base_price))
        .into_iter()
        .chain(power_fault(power));
    let plate = match (plate, Faults::of(others.clone())) {
        (Ok(plate), None) => plate,
        (plate, _) => {
            let faults = Faults::of(plate.err().into_iter().chain(others));
            return Err(faults.map_or_else(ApiError::internal, ApiError::invalid_request));
        }
    };
    let opening = Opening {
        id: body.id.unwrap_or_else(Uuid::now_v7),
        branch_id: body.branch_id,
        plate,
        package_name: body.package_name,
        base_price: body.base_price,
        mileage_km: body.mileage_km,
        vehicle: body.vehicle.map(new_vehicle),
    };
    let client = context.db(caller).await?;
    let transaction = client.transaction();
    let opened = opening::open(&transaction, inspector, &opening).await;
    match opened {
        Ok(Ok(())) => transaction.commit().await?,
        Ok(Err(_)) | Err(_) => transaction.rollback().await?,
    }
    drop(client);
    if opened? == Err(Unopened::NoVehicle) {
        return Err(error::member(
            "vehicle",
            "is needed: no vehicle is known by this plate; send its chassis number, brand, model and the rest",
        ));
    }
    // Of a report that was opened before under its id, this is the same answer again.
    match as_it_stands(context, caller, opening.id).await {
        Ok(report) => Ok(OpenReportResponse::Created(report)),
        Err(error) if error.code == ErrorCode::NotFound => {
            Err(error::member("id", "is the id of another report; make a new one"))
        }
        Err(error) => Err(error),
    }
}

/// What is wrong with a registered power: the database keeps up to 99,999.99 HP.
fn power_fault(power: Option<Decimal>) -> Option<Fault> {
    let power = power?;
    let place = Path::default().member("vehicle").member("factory_power_hp");
    (power <= Decimal::ZERO || power >= Decimal::from(100_000)).then(|| {
        Fault::in_body(
            &place,
            "must be more than 0.00 and less than 100000.00; leave it out where it is not known",
        )
    })
}

fn new_vehicle(vehicle: VehicleData) -> NewVehicle {
    NewVehicle {
        vin: vehicle.vin,
        brand: vehicle.brand,
        model: vehicle.model,
        year: vehicle.year,
        body_type: vehicle.r#type,
        fuel_type: vehicle.fuel_type,
        transmission: vehicle.transmission,
        color: vehicle.color,
        factory_power_hp: vehicle.factory_power_hp,
    }
}
