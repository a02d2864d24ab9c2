//! `PATCH /inspector/v1/reports/{id}/photos/{photoId}`: changes a photo's kind, caption and visibility.

use super::{change, check_editable, no_such_photo, photo_kind};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::photos::{self, PhotoUpdate};
use crate::error::ApiError;
use crate::generated::responses::UpdatePhotoResponse;
use crate::generated::types::{UpdatePhoto, UpdatePhotoPath};

/// Changes the members that are sent and leaves the others unchanged.
///
/// # Errors
/// `not_found` if the report has no such photo; `transition_rejected` if the report cannot be edited.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: UpdatePhotoPath,
    body: UpdatePhoto,
) -> Result<UpdatePhotoResponse, ApiError> {
    let update = PhotoUpdate {
        kind: body.kind.map(photo_kind),
        caption: body.caption.as_deref(),
        is_shown: body.is_shown,
    };
    let report = change(context, caller, path.id, async |transaction, _, report| {
        check_editable(report)?;
        match photos::update(transaction, report, path.photo_id, &update).await? {
            true => Ok(()),
            false => Err(no_such_photo()),
        }
    });
    Ok(UpdatePhotoResponse::Ok(report.await?))
}
