//! `POST /inspector/v1/reports`: opens a draft for a branch, a plate and a package.

use chrono::Utc;
use codegen_runtime::validation::{Path, ValidationError, ValidationErrors};
use partner_api_domain::plate::{self, Plate};
use partner_api_domain::vocabulary;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::{price_error, reread};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::opening::{self, NewVehicle, OpenError, Opening};
use crate::error::{self, ApiError};
use crate::generated::errors::ErrorCode;
use crate::generated::responses::OpenReportResponse;
use crate::generated::types::{OpenReport, VehicleData};

/// Opens a report.
///
/// # Errors
/// `not_found` for a branch that is not the inspector's; `invalid_request` for an invalid plate, for an unknown plate without a
/// vehicle, and for the ID of another report; `already_open` if a report is open for the plate.
pub async fn handle(context: &Context, caller: &Caller, body: OpenReport) -> Result<OpenReportResponse, ApiError> {
    let inspector = caller.inspector()?;
    if !inspector.branches().iter().any(|branch| branch.id == body.branch_id) {
        let message = "branch_id: must be one of your branches; get_session lists them";
        return Err(ApiError::new(ErrorCode::NotFound, message));
    }
    let plate = read_plate(&body.plate);
    let others: Vec<_> = price_error("base_price", Some(body.base_price))
        .into_iter()
        .chain(body.vehicle.iter().flat_map(vehicle_errors))
        .collect();
    let plate = match (plate, ValidationErrors::of(others.clone())) {
        (Ok(plate), None) => plate,
        (plate, _) => {
            let errors = ValidationErrors::of(plate.err().into_iter().chain(others));
            return Err(errors.map_or_else(ApiError::internal, ApiError::invalid_request));
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
        even_if_open: body.even_if_open,
    };
    let client = context.db(caller).await?;
    let transaction = client.transaction();
    let opened = opening::open(&transaction, inspector, &opening).await;
    match opened {
        Ok(Ok(())) => transaction.commit().await?,
        Ok(Err(_)) | Err(_) => transaction.rollback().await?,
    }
    drop(client);
    match opened? {
        Err(OpenError::NoVehicle) => {
            return Err(error::member(
                "vehicle",
                "is required because no vehicle is known for this plate; send its vin, brand, model and the other fields",
            ));
        }
        Err(OpenError::AlreadyOpen(number)) => return Err(already_open(&number)),
        Ok(()) | Err(OpenError::IdInUse) => {}
    }
    // If an earlier request opened the report under this ID, its response is repeated.
    match reread(context, caller, opening.id).await {
        Ok(report) => Ok(OpenReportResponse::Created(report)),
        Err(error) if error.code == ErrorCode::NotFound => {
            Err(error::member("id", "is the ID of another report; generate a new one"))
        }
        Err(error) => Err(error),
    }
}

/// Reads the plate of a request in any notation.
pub(super) fn read_plate(text: &str) -> Result<Plate, ValidationError> {
    Plate::parse(text)
        .map_err(|problem| ValidationError::of_member("plate", format!("{problem}; {}", plate::read_as(text))))
}

/// 409: another report is open for the plate.
pub(super) fn already_open(number: &str) -> ApiError {
    let message = format!(
        "the report {number} is already open for this plate at the branch; send even_if_open to have another one"
    );
    ApiError::new(ErrorCode::AlreadyOpen, message)
}

/// The first model year whose VINs always have [`VIN_LENGTH`] characters (ISO 3779).
const FIRST_YEAR_OF_LONG_VINS: i32 = 1981;
const VIN_LENGTH: usize = 17;

/// Returns the errors of a vehicle that its schema cannot express. The database stores powers up to 99,999.99 HP.
pub(super) fn vehicle_errors(vehicle: &VehicleData) -> Vec<ValidationError> {
    let error = |member: &str, message: &str| {
        ValidationError::in_body(&Path::default().member("vehicle").member(member), message)
    };
    let mut errors = Vec::new();
    if vehicle.vin.len() < VIN_LENGTH && vehicle.year >= FIRST_YEAR_OF_LONG_VINS {
        errors.push(error(
            "vin",
            "must have 17 characters; only vehicles before the model year 1981 have fewer",
        ));
    }
    let latest = vocabulary::latest_model_year(Utc::now());
    if vehicle.year > latest {
        errors.push(error("year", &format!("must be at most {latest}, the next year")));
    }
    let is_in_range = |power: Decimal| power > Decimal::ZERO && power < Decimal::from(100_000);
    if vehicle.factory_power_hp.is_some_and(|power| !is_in_range(power)) {
        let message = "must be greater than 0.00 and less than 100000.00; omit it if it is unknown";
        errors.push(error("factory_power_hp", message));
    }
    errors
}

pub(super) fn new_vehicle(vehicle: VehicleData) -> NewVehicle {
    NewVehicle {
        vin: vehicle.vin,
        brand: vehicle.brand,
        model: vehicle.model,
        year: vehicle.year,
        body_type: vehicle.r#type.as_str(),
        fuel_type: vehicle.fuel_type.as_str(),
        transmission: vehicle.transmission.as_str(),
        color: vehicle.color,
        factory_power_hp: vehicle.factory_power_hp,
    }
}
