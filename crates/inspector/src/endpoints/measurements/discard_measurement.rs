//! `DELETE /inspector/v1/measurements/{measurementId}`: discards a pending measurement (MEA-13, INS-5).

use crate::caller::Caller;
use crate::context::Context;
use crate::db::waiting::{self, Discarded};
use crate::error::{self, ApiError};
use crate::generated::errors::ErrorCode;
use crate::generated::responses::DiscardMeasurementResponse;
use crate::generated::types::DiscardMeasurementPath;

/// Discards a pending measurement. Its record and its bytes are kept, and a replay of it returns `discarded`.
///
/// # Errors
/// `not_found` if it does not exist at the inspector's branches; `already_settled` if it is no longer pending.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: DiscardMeasurementPath,
) -> Result<DiscardMeasurementResponse, ApiError> {
    let inspector = caller.inspector()?;
    let client = context.db(caller).await?;
    match waiting::discard(&client, inspector, path.measurement_id).await? {
        Discarded::Done => Ok(DiscardMeasurementResponse::NoContent),
        Discarded::Settled => Err(error::already_settled()),
        Discarded::NotFound => Err(ApiError::new(
            ErrorCode::NotFound,
            "no such measurement at your branches",
        )),
    }
}
