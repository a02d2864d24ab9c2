//! `POST /inspector/v1/reports`: a draft for a branch, a plate and a package.

use codegen_runtime::fault::{Fault, Faults, Path};
use partner_api::rules::plate::{self, Plate};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::{end, get_report, price_fault};
use crate::context::Context;
use crate::db::opening::{self, NewVehicle, Opening};
use crate::db::report;
use crate::error::ApiError;
use crate::front_door::Caller;
use crate::generated::errors::ErrorCode;
use crate::generated::responses::OpenReportResponse;
use crate::generated::types::{OpenReport, VehicleData};

/// Opens a report.
///
/// # Errors
/// `not_found` for another branch than the inspector's; `invalid_request` for a plate that is none, and for one without a
/// vehicle where none is sent.
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
    // Sent again under the same id, nothing is opened twice.
    if body.id.is_some() && report::find(&client, inspector, opening.id).await?.is_some() {
        let report = get_report::whole(context, &client, inspector, opening.id).await?;
        return Ok(OpenReportResponse::Created(report));
    }
    let transaction = client.transaction();
    let opened = async {
        let opened = opening::open(&transaction, inspector, &opening).await?;
        opened.ok_or_else(|| {
            ApiError::member(
                "vehicle",
                "is needed: no vehicle is known by this plate; send its chassis number, brand, model and the rest",
            )
        })
    };
    let id = end(&transaction, opened.await).await?;
    Ok(OpenReportResponse::Created(
        get_report::whole(context, &client, inspector, id).await?,
    ))
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
