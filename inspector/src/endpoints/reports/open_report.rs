//! `POST /inspector/v1/reports`: a draft for a branch, a plate and a package.

use codegen_runtime::{Fault, Faults};
use partner_api::rules::plate::{self, Plate};
use rust_decimal::Decimal;

use super::{end, get_report};
use crate::context::Context;
use crate::db::opening::{self, NewVehicle, Opening};
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
    let price = match body.base_price < Decimal::ZERO {
        true => Err(Fault::of_member("base_price", "must not be below 0.00")),
        false => Ok(()),
    };
    let plate = match (plate, price) {
        (Ok(plate), Ok(())) => plate,
        (plate, price) => {
            let faults = Faults::of(plate.err().into_iter().chain(price.err()));
            return Err(faults.map_or_else(ApiError::internal, ApiError::invalid_request));
        }
    };
    let opening = Opening {
        branch_id: body.branch_id,
        plate,
        package_name: body.package_name,
        base_price: body.base_price,
        mileage_km: body.mileage_km,
        vehicle: body.vehicle.map(new_vehicle),
    };
    let client = context.db(caller).await?;
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
