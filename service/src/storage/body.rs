//! A stored object as a response's body.

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
    /// The bytes as a body, read from the store as the client takes them; their number becomes `Content-Length`. A store
    /// that fails half-way breaks the response off: the length that was announced tells the client.
    pub fn into_body(self) -> Body {
        Body::wrap(ObjectBody {
            stream: SyncWrapper::new(self.stream),
            left: self.content_length,
        })
    }
}

struct ObjectBody {
    // Dropshot wants its bodies Sync, which a boxed stream is not by itself.
    stream: SyncWrapper<BoxStream<'static, Result<Bytes, StorageError>>>,
    left: u64,
}

impl HttpBody for ObjectBody {
    type Data = Bytes;
    type Error = StorageError;

    fn poll_frame(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StorageError>>> {
        let body = self.get_mut();
        body.stream.get_mut().poll_next_unpin(task).map(|next| match next {
            Some(Ok(bytes)) => {
                body.left = body.left.saturating_sub(bytes.len() as u64);
                Some(Ok(Frame::data(bytes)))
            }
            Some(Err(error)) => {
                // The head is sent: all that is left is to break off, so that the reader sees it is not whole.
                tracing::error!(%error, "a stored object broke off while it was sent");
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
