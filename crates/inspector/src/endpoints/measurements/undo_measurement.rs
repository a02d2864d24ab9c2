//! `DELETE /inspector/v1/measurements/{measurementId}/settlement`: makes a measurement pending again (INS-15).

use partner_api_store::measurements::Status;

use super::super::reports::{change, check_editable};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::waiting::{self, Found};
use crate::error::{self, ApiError};
use crate::generated::errors::ErrorCode;
use crate::generated::responses::UndoMeasurementResponse;
use crate::generated::types::UndoMeasurementPath;

/// Takes back that a measurement was applied or discarded.
///
/// # Errors
/// `not_found` if it does not exist at the inspector's branches; `not_settled` if it is pending; `transition_rejected` if its report
/// cannot be edited.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: UndoMeasurementPath,
) -> Result<UndoMeasurementResponse, ApiError> {
    let measurement = path.measurement_id;
    let client = context.db(caller).await?;
    let inspector = caller.inspector()?;
    let found = waiting::find(&client, inspector, measurement).await?;
    let found = found.ok_or_else(|| ApiError::new(ErrorCode::NotFound, "no such measurement at your branches"))?;
    let is_undone = match found {
        Found {
            status: Status::Discarded,
            ..
        } => waiting::undo_discard(&client, inspector, measurement).await?,
        Found {
            status: Status::Applied,
            report: Some(report),
        } => {
            drop(client);
            let undone = change(context, caller, report, async |transaction, _, report| {
                check_editable(report)?;
                match waiting::undo_apply(transaction, report, measurement).await? {
                    true => Ok(()),
                    false => Err(error::not_settled()),
                }
            });
            undone.await.map(|_| true)?
        }
        Found { .. } => false,
    };
    match is_undone {
        true => Ok(UndoMeasurementResponse::NoContent),
        false => Err(error::not_settled()),
    }
}
