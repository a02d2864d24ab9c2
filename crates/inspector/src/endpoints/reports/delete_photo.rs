//! `DELETE /inspector/v1/reports/{id}/photos/{photoId}`: deletes a photo.

use super::{change, check_editable, no_such_photo};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::photos;
use crate::error::ApiError;
use crate::generated::responses::DeletePhotoResponse;
use crate::generated::types::DeletePhotoPath;

/// Deletes the photo. A worker deletes its stored objects later, when links to them have expired.
///
/// # Errors
/// `not_found` if the report has no such photo; `transition_rejected` if the report cannot be edited.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: DeletePhotoPath,
) -> Result<DeletePhotoResponse, ApiError> {
    let report = change(context, caller, path.id, async |transaction, _, report| {
        check_editable(report)?;
        match photos::delete(transaction, report, path.photo_id).await? {
            true => Ok(()),
            false => Err(no_such_photo()),
        }
    });
    Ok(DeletePhotoResponse::Ok(report.await?))
}
