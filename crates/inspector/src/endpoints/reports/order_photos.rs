//! `PUT /inspector/v1/reports/{id}/photos`: the photos into an order.

use super::{being_written, change, of_version};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::photos;
use crate::error::{self, ApiError};
use crate::generated::responses::OrderPhotosResponse;
use crate::generated::types::{OrderPhotos, OrderPhotosPath};

/// Puts the report's photos into the order of the ids.
///
/// # Errors
/// `invalid_request` unless each photo is named once; `changed_meanwhile` and `transition_refused` as for other writes.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: OrderPhotosPath,
    body: OrderPhotos,
) -> Result<OrderPhotosResponse, ApiError> {
    let OrderPhotos { version, photo_ids } = body;
    let report = change(context, caller, path.id, async |transaction, _, report| {
        of_version(report, version)?;
        being_written(report)?;
        match photos::order(transaction, report, &photo_ids).await? {
            true => Ok(()),
            false => Err(error::member(
                "photo_ids",
                "must name each photo of the report once, and no other",
            )),
        }
    });
    Ok(OrderPhotosResponse::Ok(report.await?))
}
