//! `PUT /inspector/v1/reports/{id}/photos`: sorts the photos.

use super::{change, check_editable, check_version};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::photos;
use crate::error::{self, ApiError};
use crate::generated::responses::OrderPhotosResponse;
use crate::generated::types::{OrderPhotos, OrderPhotosPath};

/// Sorts the report's photos in the order of the IDs.
///
/// # Errors
/// `invalid_request` unless the IDs name each photo exactly once; `changed_meanwhile` for an outdated version;
/// `transition_rejected` if the report cannot be edited.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: OrderPhotosPath,
    body: OrderPhotos,
) -> Result<OrderPhotosResponse, ApiError> {
    let OrderPhotos { version, photo_ids } = body;
    let report = change(context, caller, path.id, async |transaction, _, report| {
        check_version(report, version)?;
        check_editable(report)?;
        match photos::order(transaction, report, &photo_ids).await? {
            true => Ok(()),
            false => Err(error::member(
                "photo_ids",
                "must name each photo of the report exactly once and no other photo",
            )),
        }
    });
    Ok(OrderPhotosResponse::Ok(report.await?))
}
