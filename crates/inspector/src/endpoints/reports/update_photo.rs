//! `PATCH /inspector/v1/reports/{id}/photos/{photoId}`: changes a photo's kind, caption and visibility.

use super::{NO_SUCH_KIND, change, check_editable, no_such_photo};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::photos::{self, PhotoUpdate, UpdateError};
use crate::error::{self, ApiError};
use crate::generated::responses::UpdatePhotoResponse;
use crate::generated::types::{UpdatePhoto, UpdatePhotoPath};

/// Changes the members that are sent and leaves the others unchanged.
///
/// # Errors
/// `not_found` if the report has no such photo; `invalid_request` for an unknown kind; `transition_rejected` if the report cannot
/// be edited.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: UpdatePhotoPath,
    body: UpdatePhoto,
) -> Result<UpdatePhotoResponse, ApiError> {
    let update = PhotoUpdate {
        kind: body.kind.as_deref(),
        caption: body.caption.as_deref(),
        is_shown: body.is_shown,
    };
    let report = change(context, caller, path.id, async |transaction, _, report| {
        check_editable(report)?;
        let updated = photos::update(transaction, report, path.photo_id, &update).await?;
        updated.map_err(|error| match error {
            UpdateError::NoPhoto => no_such_photo(),
            UpdateError::NoKind => error::member("kind", NO_SUCH_KIND),
        })
    });
    Ok(UpdatePhotoResponse::Ok(report.await?))
}
