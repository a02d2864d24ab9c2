//! `PUT /inspector/v1/reports/{id}/measurements/{measurementId}`: applies a pending measurement (MEA-13, INS-5).

use partner_api::plausible;
use partner_api_store::measurements::{self, Status};

use super::super::reports::{change, check_editable};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::waiting;
use crate::error::{self, ApiError};
use crate::generated::errors::ErrorCode;
use crate::generated::responses::ApplyMeasurementResponse;
use crate::generated::types::ApplyMeasurementPath;

/// Writes the values of a pending measurement to the report's test-line form.
///
/// Every writer locks the report before the measurement. A second inspector, or a device, therefore waits for the first writer and
/// then finds its result.
///
/// # Errors
/// `not_found` if no such measurement exists for the report's plate and branch; `already_settled` if it is no longer pending;
/// `transition_rejected` if the report cannot be edited.
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
                    "no such measurement for the report's plate at its branch",
                ));
            }
            Some(Status::Pending) => {}
            Some(Status::Applied | Status::Discarded) => return Err(error::already_settled()),
        }
        check_editable(report)?;
        let applied = measurements::apply(
            transaction,
            inspector.organization_id(),
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
