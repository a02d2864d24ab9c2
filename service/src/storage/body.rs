//! Streams a stored object as the body of a response.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use dropshot::Body;
use futures::StreamExt;
use futures::stream::BoxStream;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use sync_wrapper::SyncWrapper;

use super::{StorageError, StoredObject};

impl StoredObject {
    /// Converts the object into a body that is read from the store at the client's pace. The number of bytes becomes
    /// `Content-Length`, so a client notices when the store fails halfway and the response is cut off.
    pub fn into_body(self) -> Body {
        Body::wrap(ObjectBody {
            stream: SyncWrapper::new(self.stream),
            remaining: self.content_length,
        })
    }
}

struct ObjectBody {
    // Dropshot requires a `Sync` body, and a boxed stream is not `Sync`.
    stream: SyncWrapper<BoxStream<'static, Result<Bytes, StorageError>>>,
    remaining: u64,
}

impl HttpBody for ObjectBody {
    type Data = Bytes;
    type Error = StorageError;

    fn poll_frame(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StorageError>>> {
        let body = self.get_mut();
        body.stream.get_mut().poll_next_unpin(task).map(|next| match next {
            Some(Ok(bytes)) => {
                body.remaining = body.remaining.saturating_sub(bytes.len() as u64);
                Some(Ok(Frame::data(bytes)))
            }
            Some(Err(error)) => {
                // The head was sent already, so the only signal to the client is a response that is cut off.
                tracing::error!(%error, "failed to read a stored object while sending it");
                Some(Err(error))
            }
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    fn body(parts: Vec<Result<Bytes, StorageError>>, content_length: u64) -> Body {
        let stream = futures::stream::iter(parts).boxed();
        let object = StoredObject {
            content_length,
            first: 0,
            size: content_length,
            e_tag: None,
            content_type: "application/pdf".to_owned(),
            stream,
        };
        object.into_body()
    }

    #[tokio::test]
    async fn an_object_is_sent_whole_and_its_size_is_known_in_advance() {
        let parts = vec![Ok(Bytes::from_static(b"%PDF-")), Ok(Bytes::from_static(b"1.7"))];
        let body = body(parts, 8);
        assert_eq!(body.size_hint().exact(), Some(8));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "%PDF-1.7");
    }

    #[tokio::test]
    async fn a_stream_that_fails_is_an_error_for_its_reader() {
        let parts = vec![
            Ok(Bytes::from_static(b"%PDF-")),
            Err(StorageError::NotFound("reports/1.pdf".to_owned())),
        ];
        assert!(body(parts, 8).collect().await.is_err());
    }
}
