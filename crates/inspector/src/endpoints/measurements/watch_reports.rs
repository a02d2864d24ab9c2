//! `GET /inspector/v1/events`: a stream of changes (INS-10).

use dropshot::Body;
use futures::StreamExt;
use http_body_util::StreamBody;
use hyper::body::Frame;

use crate::caller::Caller;
use crate::context::Context;
use crate::error::ApiError;
use crate::generated::responses::WatchReportsResponse;

/// Returns a stream of the changes at the inspector's branches.
///
/// # Errors
/// `signed_out` without a session; `too_many_streams` if the session has too many of them.
#[allow(clippy::unused_async, reason = "the generated code awaits it")]
pub async fn handle(context: &Context, caller: &Caller) -> Result<WatchReportsResponse, ApiError> {
    let events = context.watch().events(caller.inspector()?.clone())?;
    let frames = events.map(|event| Ok::<_, std::convert::Infallible>(Frame::data(event)));
    Ok(WatchReportsResponse::Ok(Body::wrap(StreamBody::new(frames))))
}
