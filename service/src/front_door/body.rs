//! Reading a body: measured while it arrives, within a deadline.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use dropshot::Body;
use http::{HeaderMap, header};
use http_body_util::BodyExt;

use super::MAX_BODY_BYTES;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;

/// Reads the whole body.
///
/// # Errors
/// 413 for one byte too many, announced or sent, without reading the rest; 408 when it has not arrived in time; 400
/// when it breaks off.
pub(super) async fn read(headers: &HeaderMap, body: Body, timeout: Duration) -> Result<Bytes, ApiError> {
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse::<u64>().ok());
    if announced.is_some_and(|length| length > MAX_BODY_BYTES as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(timeout, collect(body, announced)).await {
        Ok(result) => result,
        Err(_) => Err(ApiError::new(
            ErrorCode::RequestTimeout,
            format!(
                "the body did not arrive within {} s; send it again",
                timeout.as_secs_f64()
            ),
        )),
    }
}

async fn collect(mut body: Body, announced: Option<u64>) -> Result<Bytes, ApiError> {
    let expected = announced.and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
    let mut bytes = BytesMut::with_capacity(expected.min(MAX_BODY_BYTES));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ApiError::invalid_request("the body broke off before its end; send it again"))?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > MAX_BODY_BYTES {
            return Err(too_large());
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

fn too_large() -> ApiError {
    ApiError::new(
        ErrorCode::PayloadTooLarge,
        format!("a body may have at most {MAX_BODY_BYTES} bytes"),
    )
}
