//! `PUT /inspector/v1/reports/{id}/measurements/{measurementId}`: one click (MEA-13, INS-5).

use partner_api::plausible;
use partner_api_store::measurements::{self, Status};

use super::super::reports::{being_written, change};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::waiting;
use crate::error::{self, ApiError};
use crate::generated::errors::ErrorCode;
use crate::generated::responses::ApplyMeasurementResponse;
use crate::generated::types::ApplyMeasurementPath;

/// Writes the values of a waiting measurement into the report's test-line form.
///
/// The report is locked before the measurement, by whoever writes: of two inspectors, or an inspector and a device, the one
/// waits for the other, and then finds what it left.
///
/// # Errors
/// `not_found` for no such measurement of the report's plate and branch; `already_settled` when it waits no more;
/// `transition_refused` unless the report is being written.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: ApplyMeasurementPath,
) -> Result<ApplyMeasurementResponse, ApiError> {
    let measurement = path.measurement_id;
    let report = change(context, caller, path.id, async |transaction, inspector, report| {
        match waiting::status(transaction, report, measurement).await? {
            None => {
                return Err(ApiError::new(
                    ErrorCode::NotFound,
                    "there is no such measurement for the report's plate at its branch",
                ));
            }
            Some(Status::Pending) => {}
            Some(Status::Applied | Status::Discarded) => return Err(error::already_settled()),
        }
        being_written(report)?;
        let applied = measurements::apply(
            transaction,
            measurement,
            report.id,
            inspector.name(),
            plausible::documented,
        )
        .await?;
        applied.map(drop).ok_or_else(error::already_settled)
    });
    Ok(ApplyMeasurementResponse::Ok(report.await?))
}
