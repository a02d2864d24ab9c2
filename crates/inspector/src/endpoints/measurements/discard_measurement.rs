//! `DELETE /inspector/v1/measurements/{measurementId}`: ignored; its record and its bytes stay (MEA-13, INS-5).

use crate::caller::Caller;
use crate::context::Context;
use crate::db::waiting::{self, Discarded};
use crate::error::{self, ApiError};
use crate::generated::errors::ErrorCode;
use crate::generated::responses::DiscardMeasurementResponse;
use crate::generated::types::DiscardMeasurementPath;

/// Settles a waiting measurement as ignored: a replay of it says `discarded`.
///
/// # Errors
/// `not_found` for no measurement at a branch of the inspector's; `already_settled` when it waits no more.
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
        Discarded::None => Err(ApiError::new(
            ErrorCode::NotFound,
            "there is no such measurement at a branch of yours",
        )),
    }
}
