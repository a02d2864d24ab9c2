//! `PUT /inspector/v1/reports/{id}/vehicle`: corrects the vehicle's data.

use codegen_runtime::validation::ValidationErrors;

use super::fill_form::fill_error;
use super::open_report::{new_vehicle, vehicle_errors};
use super::{change, check_editable, check_version};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::vehicle;
use crate::error::ApiError;
use crate::generated::responses::CorrectVehicleResponse;
use crate::generated::types::{CorrectVehicle, CorrectVehiclePath};

/// Replaces the data of the report's vehicle, and computes the power ratio again.
///
/// # Errors
/// `changed_meanwhile` for an outdated version; `transition_rejected` if the report cannot be edited.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: CorrectVehiclePath,
    body: CorrectVehicle,
) -> Result<CorrectVehicleResponse, ApiError> {
    if let Some(errors) = ValidationErrors::of(vehicle_errors(&body.vehicle)) {
        return Err(ApiError::invalid_request(errors));
    }
    let (version, corrected) = (body.version, new_vehicle(body.vehicle));
    let report = change(context, caller, path.id, async |transaction, inspector, report| {
        check_version(report, version)?;
        check_editable(report)?;
        let correction = vehicle::correct(transaction, inspector, report, &corrected);
        correction.await.map_err(fill_error)
    });
    Ok(CorrectVehicleResponse::Ok(report.await?))
}
