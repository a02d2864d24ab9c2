//! Reading a body: measured while it arrives, and within a time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use partner_api::listener::RequestBody;
use partner_api::request_log::Reason;
use tokio::sync::OwnedSemaphorePermit;

use crate::context::Context;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::generated::operations::Operation;

/// Bytes of the largest body in JSON.
const JSON_BYTES: usize = 1_048_576;

/// Bytes of the largest body of whoever is not signed in.
const STRANGERS_BYTES: usize = 4_096;

/// Bytes of the largest photo.
const PHOTO_BYTES: usize = 10_485_760;

/// How long a photo waits for its place in memory.
const PLACE_WITHIN: Duration = Duration::from_secs(5);

/// Whether an operation's body is a photo.
fn is_photo(operation: &Operation) -> bool {
    operation.id == "add_photo"
}

/// A place in memory, for what is large, until it has its answer.
pub(super) async fn place(context: &Context, operation: &Operation) -> Result<Option<OwnedSemaphorePermit>, ApiError> {
    if !is_photo(operation) {
        return Ok(None);
    }
    let waiting = context.bodies().clone().acquire_owned();
    match tokio::time::timeout(PLACE_WITHIN, waiting).await {
        Ok(Ok(place)) => Ok(Some(place)),
        _ => Err(ApiError::unavailable(Reason::AllBodies)),
    }
}

/// Reads the whole body of an operation that has one.
///
/// # Errors
/// 413 for one byte too many, announced or sent; 408 when it has not arrived in time; 400 when it breaks off.
pub(super) async fn read(
    operation: &Operation,
    headers: &HeaderMap,
    mut body: RequestBody,
    within: Duration,
    received: &mut u64,
) -> Result<Bytes, ApiError> {
    if !operation.has_body {
        return Ok(Bytes::new());
    }
    let most = match (operation.security.is_empty(), is_photo(operation)) {
        (true, _) => STRANGERS_BYTES,
        (_, true) => PHOTO_BYTES,
        _ => JSON_BYTES,
    };
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > most as u64) {
        return Err(too_large(most).because(Reason::BodyAnnouncedTooLarge));
    }
    let reading = async {
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                return Err(ApiError::member("", "the body broke off").because(Reason::BodyBrokeOff));
            };
            let Ok(data) = frame.into_data() else { continue };
            *received += data.len() as u64;
            if bytes.len() + data.len() > most {
                return Err(too_large(most).because(Reason::BodyTooLarge));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes.freeze())
    };
    match tokio::time::timeout(within, reading).await {
        Ok(read) => read,
        Err(_) => Err(ApiError::new(
            ErrorCode::RequestTimeout,
            format!(
                "the body did not arrive within {} s; send it again, from where the network is better",
                within.as_secs()
            ),
        )
        .because(Reason::BodyTooSlow)),
    }
}

fn too_large(most: usize) -> ApiError {
    let most = match most {
        PHOTO_BYTES => "a photo may have 10,485,760 bytes; take it with less resolution",
        JSON_BYTES => "a body may have 1,048,576 bytes",
        _ => "a body may have 4,096 bytes",
    };
    ApiError::new(ErrorCode::PayloadTooLarge, most)
}
