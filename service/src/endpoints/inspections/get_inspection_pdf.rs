//! `GET /api/v1/partner/inspections/{id}/pdf`: the report as the customer sees it, streamed from storage
//! (REP-8).

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use bytes::Bytes;
use dropshot::Body;
use futures::StreamExt;
use futures::stream::BoxStream;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::{not_found, storage_failed};
use crate::context::Context;
use crate::db::connection::Connection;
use crate::db::inspections::{self, Pdf};
use crate::db::renderings;
use crate::error::ApiError;
use crate::front_door::Caller;
use crate::generated::errors::ErrorCode;
use crate::generated::responses::GetInspectionPdfResponse;
use crate::generated::types::GetInspectionPdfPath;
use crate::rules::id;
use crate::storage::{StorageError, StoredObject};

/// After how long a partner asks again for what is being rendered: a renderer looks for work every second.
const RENDERED_AFTER: Duration = Duration::from_secs(2);

/// Answers the PDF of a published report that has its public slug.
///
/// # Errors
/// `not_found`, with the same message as for a report that does not exist, when there is no such PDF;
/// `service_unavailable` while it is rendered, and when the database or the storage is out of reach.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: GetInspectionPdfPath,
) -> Result<GetInspectionPdfResponse, ApiError> {
    let id = id::parse(&path.id).ok_or_else(not_found)?;
    let client = context.db(caller).await?;
    let pdf = inspections::pdf(&client, caller.grants(), id)
        .await?
        .ok_or_else(not_found)?;
    let Some(key) = pdf.current_key() else {
        return Err(rendered_later(&client, &pdf).await);
    };
    // A slow reader must not hold a connection of the pool.
    drop(client);
    let object = match context.storage.stream(key).await {
        Ok(object) => object,
        Err(StorageError::NotFound(_)) => {
            tracing::error!(report = %pdf.report(), "the storage has lost a PDF; it is rendered again");
            return Err(rendered_later(&context.db(caller).await?, &pdf).await);
        }
        Err(error) => return Err(storage_failed(&error)),
    };
    Ok(GetInspectionPdfResponse::Ok(Body::wrap(ObjectBody::from(object))))
}

/// Has the PDF rendered, and the answer until it is.
async fn rendered_later(client: &Connection, pdf: &Pdf) -> ApiError {
    if let Err(error) = renderings::ask(client, pdf).await {
        // The partner's next request asks again.
        tracing::warn!(report = %pdf.report(), %error, "a PDF could not be asked for");
    }
    ApiError {
        retry_after: Some(RENDERED_AFTER),
        ..ApiError::new(
            ErrorCode::ServiceUnavailable,
            "the report's PDF is being rendered; try again after Retry-After",
        )
    }
}

/// A stored object as a response's body; its size becomes `Content-Length`.
struct ObjectBody {
    /// A body must be `Sync`, a boxed stream is not. Never locked: it is only reached through `&mut`.
    stream: Mutex<BoxStream<'static, Result<Bytes, StorageError>>>,
    left: u64,
}

impl From<StoredObject> for ObjectBody {
    fn from(object: StoredObject) -> Self {
        Self {
            stream: Mutex::new(object.stream),
            left: object.content_length,
        }
    }
}

impl HttpBody for ObjectBody {
    type Data = Bytes;
    type Error = StorageError;

    fn poll_frame(
        self: Pin<&mut Self>,
        task: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StorageError>>> {
        let body = self.get_mut();
        let stream = body.stream.get_mut().unwrap_or_else(PoisonError::into_inner);
        stream.poll_next_unpin(task).map(|next| match next {
            Some(Ok(bytes)) => {
                body.left = body.left.saturating_sub(bytes.len() as u64);
                Some(Ok(Frame::data(bytes)))
            }
            Some(Err(error)) => {
                // The head is sent: all that is left is to break off, so that the reader sees it is not whole.
                tracing::error!(%error, "a PDF broke off");
                Some(Err(error))
            }
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    fn body(parts: Vec<Result<Bytes, StorageError>>, content_length: u64) -> Body {
        let stream = futures::stream::iter(parts).boxed();
        Body::wrap(ObjectBody::from(StoredObject {
            content_length,
            content_type: "application/pdf".to_owned(),
            stream,
        }))
    }

    #[tokio::test]
    async fn an_object_is_sent_whole_and_its_size_is_known_before() {
        let parts = vec![Ok(Bytes::from_static(b"%PDF-")), Ok(Bytes::from_static(b"1.7"))];
        let body = body(parts, 8);
        assert_eq!(body.size_hint().exact(), Some(8));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "%PDF-1.7");
    }

    #[tokio::test]
    async fn an_object_that_breaks_off_is_an_error_to_its_reader() {
        let parts = vec![
            Ok(Bytes::from_static(b"%PDF-")),
            Err(StorageError::NotFound("reports/1.pdf".to_owned())),
        ];
        assert!(body(parts, 8).collect().await.is_err());
    }
}
