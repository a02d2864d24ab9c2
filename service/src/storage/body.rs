//! A stored object as a response's body.

use dropshot::Body;
use futures::StreamExt;
use http_body_util::StreamBody;
use hyper::body::Frame;
use sync_wrapper::SyncStream;

use super::StoredObject;

impl StoredObject {
    /// The bytes as a body, read from the store as the client takes them. A store that fails half-way breaks the
    /// response off: its announced length tells the client.
    pub fn into_body(self) -> Body {
        let frames = self.stream.map(|bytes| bytes.map(Frame::data));
        // Dropshot wants its bodies Sync, which a boxed stream is not by itself.
        Body::wrap(StreamBody::new(SyncStream::new(frames)))
    }
}
