//! `GET /api/v1/partner/inspections/{id}/photos`: a report's photos with presigned links (REP-7).

use partner_api_domain::id;
use partner_api_domain::privacy::PiiMode;
use partner_api_store::photos;

use super::{not_found, storage_failed};
use crate::caller::Caller;
use crate::context::Context;
use crate::error::ApiError;
use crate::generated::responses::GetInspectionPhotosResponse;
use crate::generated::types::{GetInspectionPhotosPath, InspectionPhotos, Photo};
use crate::storage::{LINK_LIFETIME, PresignedUrl};

/// Returns the photos that partners may see, in the report's order. The array is empty if there are none.
///
/// # Errors
/// `not_found` as for the report itself; `service_unavailable` if the database is unavailable.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: GetInspectionPhotosPath,
) -> Result<GetInspectionPhotosResponse, ApiError> {
    let id = id::parse(&path.id).ok_or_else(not_found)?;
    let client = context.reader(caller).await?;
    let (inspection, found) = photos::list(&client, caller.grants(), id)
        .await?
        .ok_or_else(not_found)?;
    drop(client);
    let mut photos = Vec::with_capacity(found.len());
    for row in found {
        photos.push(photo(context, row, inspection.pii_mode()).await?);
    }
    Ok(GetInspectionPhotosResponse::Ok(InspectionPhotos {
        inspection_id: inspection.id(),
        photos,
    }))
}

async fn photo(context: &Context, photo: photos::Photo, mode: PiiMode) -> Result<Photo, ApiError> {
    let link = link(context, &photo.object_key).await?;
    let thumbnail = match &photo.thumb_object_key {
        None => None,
        Some(key) => Some(self::link(context, key).await?),
    };
    // Both links have one expiry time: the earlier one, if they were signed in different seconds.
    let expires_at = thumbnail
        .as_ref()
        .map_or(link.expires_at, |thumbnail| thumbnail.expires_at.min(link.expires_at));
    Ok(Photo {
        id: photo.id,
        kind: photo.kind,
        point_code: photo.point_code,
        caption: photo.caption.map(|caption| mode.text(caption)),
        url: link.url,
        thumb_url: thumbnail.map(|thumbnail| thumbnail.url),
        expires_at,
        mime_type: photo.mime_type,
        size_bytes: photo.size_bytes,
    })
}

async fn link(context: &Context, key: &str) -> Result<PresignedUrl, ApiError> {
    context
        .storage
        .presign(key, LINK_LIFETIME)
        .await
        .map_err(|error| storage_failed(&error))
}
