//! `POST /inspector/v1/reports/{id}/photos`: adds a photo after the others (INS-9).

use bytes::Bytes;
use codegen_runtime::ValidationError;
use partner_api::request_log::Reason;
use partner_api_store::orphaned_objects;
use uuid::Uuid;

use super::{NO_SUCH_KIND, change, check_editable, reread};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::photos::{self, AddError, Description, NewPhoto};
use crate::db::writing;
use crate::error::{self, ApiError};
use crate::generated::errors::ErrorCode;
use crate::generated::responses::AddPhotoResponse;
use crate::generated::types::{AddPhotoPath, AddPhotoQuery};
use crate::photo::{self, PhotoError, Picture};

const JPEG: &str = "image/jpeg";

/// Adds a photo.
///
/// Its objects are recorded as orphaned before they are stored, and the report references them afterwards. If the request is
/// rejected, they are deleted at once. If it ends in between, they are deleted a day later, like orphaned PDFs.
///
/// # Errors
/// `unsupported_photo`, `photo_truncated` or `photo_too_large` for an invalid photo; `transition_rejected` if the report cannot be edited.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: AddPhotoPath,
    query: AddPhotoQuery,
    raw: Bytes,
) -> Result<AddPhotoResponse, ApiError> {
    let description = Description {
        kind: &query.kind,
        point_code: query.point_code.as_deref(),
        caption: query.caption.as_deref(),
        upload_id: query.upload_id,
    };
    // Checked before the photo is decoded, which is expensive.
    if is_repeated(context, caller, path.id, description).await? {
        return Ok(AddPhotoResponse::Created(reread(context, caller, path.id).await?));
    }
    let Picture { full, thumbnail } = decode(context, raw).await?;
    let id = Uuid::now_v7();
    let keys = [
        format!("photos/{}/{id}.jpg", path.id),
        format!("photos/{}/{id}-s.jpg", path.id),
    ];
    // The time for decoding and storing does not count against the deadline for the database.
    let client = context.db(&caller.with_new_deadline()).await?;
    photos::record_orphans(&client, caller.inspector()?, path.id, &keys).await?;
    drop(client);
    let size_bytes = i64::try_from(full.len()).unwrap_or(i64::MAX);
    let storage = &context.service().storage;
    let stored = futures::join!(
        storage.put(&keys[0], full, JPEG),
        storage.put(&keys[1], thumbnail, JPEG)
    );
    if let (Err(error), _) | (_, Err(error)) = stored {
        delete_objects(context, caller, &keys).await;
        return Err(error::storage_failed(&error));
    }
    let photo = NewPhoto {
        id,
        description,
        object_key: &keys[0],
        thumb_object_key: &keys[1],
        size_bytes,
    };
    let caller = caller.with_new_deadline();
    let mut is_added = false;
    let changed = change(context, &caller, path.id, async |transaction, _, report| {
        check_editable(report)?;
        is_added = photos::add(transaction, report, &photo).await?.map_err(add_error)?;
        Ok(())
    });
    let changed = changed.await;
    // Nothing was added either if another request of the same upload was faster.
    if changed.is_err() || !is_added {
        delete_objects(context, &caller, &keys).await;
    }
    Ok(AddPhotoResponse::Created(changed?))
}

/// Deletes the objects of a photo that was not added. If that fails, they are deleted later, together with orphaned PDFs.
async fn delete_objects(context: &Context, caller: &Caller, keys: &[String]) {
    let deletion = async {
        let client = context.db(&caller.with_new_deadline()).await?;
        for key in photos::begin_deletion(&client, keys).await? {
            let deleted = context.service().storage.delete(&key).await;
            deleted.map_err(|error| error::storage_failed(&error))?;
            orphaned_objects::deleted(&client, &key).await?;
        }
        Ok::<_, ApiError>(())
    };
    if deletion.await.is_err() {
        tracing::warn!("failed to delete a photo that was not added; it is deleted later");
    }
}

/// Checks that the report exists and can be edited, and that the description is valid. Returns whether an earlier request of the
/// same upload has added the photo.
async fn is_repeated(
    context: &Context,
    caller: &Caller,
    id: Uuid,
    description: Description<'_>,
) -> Result<bool, ApiError> {
    let inspector = caller.inspector()?;
    let client = context.db(caller).await?;
    let transaction = client.transaction();
    let repeated = async {
        let report = writing::lock(&transaction, inspector, id).await?;
        let report = report.ok_or_else(error::no_such_report)?;
        check_editable(&report)?;
        photos::repeat(&transaction, &report, description)
            .await?
            .map_err(add_error)
    };
    let repeated = repeated.await;
    match repeated {
        Ok(true) => transaction.commit().await?,
        _ => transaction.rollback().await?,
    }
    repeated
}

/// Decodes a photo and encodes its two sizes on a blocking thread, because this takes tenths of a second.
async fn decode(context: &Context, raw: Bytes) -> Result<Picture, ApiError> {
    let permit = context.decoding().clone().acquire_owned().await;
    // The thread holds the permit, because it continues after the request was cancelled.
    let decoding = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        photo::read(&raw)
    });
    match decoding.await {
        Ok(Ok(picture)) => Ok(picture),
        Ok(Err(problem)) => Err(ApiError::new(photo_error_code(&problem), problem.to_string())),
        Err(_) => {
            tracing::error!("decoding a photo panicked");
            Err(ApiError::internal().with_reason(Reason::Panicked))
        }
    }
}

fn photo_error_code(problem: &PhotoError) -> ErrorCode {
    match problem {
        PhotoError::UnsupportedFormat | PhotoError::Undecodable(_) => ErrorCode::UnsupportedPhoto,
        PhotoError::Empty | PhotoError::Truncated => ErrorCode::PhotoTruncated,
        PhotoError::TooLarge(..) => ErrorCode::PhotoTooLarge,
    }
}

fn add_error(error: AddError) -> ApiError {
    match error {
        AddError::NoPoint => ApiError::invalid_request(ValidationError::of_parameter(
            "point_code",
            "is not a point of the report's forms; see the forms for the codes",
        )),
        AddError::NoKind => ApiError::invalid_request(ValidationError::of_parameter("kind", NO_SUCH_KIND)),
        AddError::TooLate => ApiError::unavailable(Reason::RequestOverdue),
        AddError::TooMany => error::transition_rejected(format!("a report has at most {} photos", photos::MAX_PHOTOS)),
    }
}
