//! `POST /inspector/v1/reports/{id}/photos`: a photo, behind the others (INS-9).

use bytes::Bytes;
use codegen_runtime::Fault;
use partner_api::request_log::Reason;
use partner_api_store::renderings;
use uuid::Uuid;

use super::{being_written, change};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::photos::{self, NewPhoto, Unadded};
use crate::db::writing;
use crate::error::{self, ApiError};
use crate::generated::errors::ErrorCode;
use crate::generated::responses::AddPhotoResponse;
use crate::generated::types::{AddPhotoPath, AddPhotoQuery, PhotoKind};
use crate::photo::{self, Picture};

const JPEG: &str = "image/jpeg";

/// Adds a photo.
///
/// Its objects are noted before they are stored, and stored before the report names them: what is refused then leaves none behind,
/// and what a request leaves that ended in between is deleted a day later, as PDFs are that no report names.
///
/// # Errors
/// `unsupported_photo` for bytes that are no JPEG and no PNG; `transition_refused` unless the report is being written.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: AddPhotoPath,
    query: AddPhotoQuery,
    raw: Bytes,
) -> Result<AddPhotoResponse, ApiError> {
    // Nobody's photo is worked on for a report that it cannot go to.
    writable(context, caller, path.id).await?;
    let Picture { whole, small } = drawn(context, raw).await?;
    let id = Uuid::now_v7();
    let keys = [
        format!("photos/{}/{id}.jpg", path.id),
        format!("photos/{}/{id}-s.jpg", path.id),
    ];
    // Drawing is no wait for the database, nor is storing.
    photos::note(&context.db(&caller.anew()).await?, path.id, &keys).await?;
    let size_bytes = i64::try_from(whole.len()).unwrap_or(i64::MAX);
    let storage = &context.service().storage;
    let stored = futures::join!(storage.put(&keys[0], whole, JPEG), storage.put(&keys[1], small, JPEG));
    if let (Err(error), _) | (_, Err(error)) = stored {
        forget(context, caller, &keys).await;
        return Err(error::storage_failed(&error));
    }
    let photo = NewPhoto {
        id,
        kind: word(query.kind),
        point_code: query.point_code.as_deref(),
        caption: query.caption.as_deref(),
        object_key: &keys[0],
        thumb_object_key: &keys[1],
        size_bytes,
    };
    let caller = caller.anew();
    let added = change(context, &caller, path.id, async |transaction, _, report| {
        being_written(report)?;
        photos::add(transaction, report, &photo).await?.map_err(unadded)
    });
    let added = added.await;
    if added.is_err() {
        forget(context, &caller, &keys).await;
    }
    Ok(AddPhotoResponse::Created(added?))
}

/// Deletes what no report names. What fails is done later by whoever deletes PDFs.
async fn forget(context: &Context, caller: &Caller, keys: &[String]) {
    let forgetting = async {
        let client = context.db(&caller.anew()).await?;
        for key in photos::condemn(&client, keys).await? {
            let deleted = context.service().storage.delete(&key).await;
            deleted.map_err(|error| error::storage_failed(&error))?;
            renderings::deleted(&client, &key).await?;
        }
        Ok::<_, ApiError>(())
    };
    if forgetting.await.is_err() {
        tracing::warn!("a photo that was not added is deleted later");
    }
}

async fn writable(context: &Context, caller: &Caller, id: Uuid) -> Result<(), ApiError> {
    let inspector = caller.inspector()?;
    let client = context.db(caller).await?;
    let transaction = client.transaction();
    let report = writing::lock(&transaction, inspector, id).await;
    transaction.rollback().await?;
    being_written(&report?.ok_or_else(error::no_such_report)?)
}

/// Reads and draws a picture on a thread of its own: it takes tenths of a second.
async fn drawn(context: &Context, raw: Bytes) -> Result<Picture, ApiError> {
    let place = context.photos().clone().acquire_owned().await;
    // The place goes along: a thread at work is not ended by whoever waits for it.
    let drawing = tokio::task::spawn_blocking(move || {
        let _place = place;
        photo::read(&raw)
    });
    match drawing.await {
        Ok(Ok(picture)) => Ok(picture),
        Ok(Err(problem)) => Err(ApiError::new(ErrorCode::UnsupportedPhoto, problem.to_string())),
        Err(_) => {
            tracing::error!("reading a picture panicked");
            Err(ApiError::internal().with_reason(Reason::Panicked))
        }
    }
}

fn unadded(why: Unadded) -> ApiError {
    match why {
        Unadded::NoPoint => ApiError::invalid_request(Fault::of_parameter(
            "point_code",
            "is no point of the report's forms; see them for the codes",
        )),
        Unadded::TooLate => ApiError::unavailable(Reason::RequestOverdue),
        Unadded::TooMany => error::transition_refused(format!("a report has at most {} photos", photos::MOST)),
    }
}

fn word(kind: PhotoKind) -> &'static str {
    match kind {
        PhotoKind::Exterior => "EXTERIOR",
        PhotoKind::Interior => "INTERIOR",
        PhotoKind::Engine => "ENGINE",
        PhotoKind::Underbody => "UNDERBODY",
        PhotoKind::Damage => "DAMAGE",
        PhotoKind::Odometer => "ODOMETER",
        PhotoKind::Registration => "REGISTRATION",
        PhotoKind::OtosicilPdf => "OTOSICIL_PDF",
    }
}
