//! `PUT /inspector/v1/reports/{id}/vehicle`: corrects the vehicle's data.

use codegen_runtime::validation::ValidationErrors;

use super::fill_form::fill_error;
use super::open_report::{already_open, new_vehicle, read_plate, vehicle_errors};
use super::{change, check_editable, check_version};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::vehicle::{self, CorrectError, Correction};
use crate::error::ApiError;
use crate::generated::responses::CorrectVehicleResponse;
use crate::generated::types::{CorrectVehicle, CorrectVehiclePath};

/// Replaces the data of the report's vehicle and its plate, and computes the power ratio again.
///
/// # Errors
/// `changed_meanwhile` for an outdated version; `transition_rejected` if the report cannot be edited; `already_open` if another
/// report is open for the corrected plate.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: CorrectVehiclePath,
    body: CorrectVehicle,
) -> Result<CorrectVehicleResponse, ApiError> {
    let plate = body.plate.as_deref().map(read_plate).transpose();
    let errors = vehicle_errors(&body.vehicle)
        .into_iter()
        .chain(plate.as_ref().err().cloned());
    if let Some(errors) = ValidationErrors::of(errors) {
        return Err(ApiError::invalid_request(errors));
    }
    let correction = Correction {
        vehicle: new_vehicle(body.vehicle),
        plate: plate.unwrap_or_default(),
        even_if_open: body.even_if_open,
    };
    let version = body.version;
    let report = change(context, caller, path.id, async |transaction, inspector, report| {
        check_version(report, version)?;
        check_editable(report)?;
        let corrected = vehicle::correct(transaction, inspector, report, &correction);
        corrected.await.map_err(|error| match error {
            CorrectError::AlreadyOpen(number) => already_open(&number),
            CorrectError::Fill(error) => fill_error(error),
        })
    });
    Ok(CorrectVehicleResponse::Ok(report.await?))
}
