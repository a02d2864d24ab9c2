//! Reading a body: measured while it arrives, within a deadline and a budget.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use codegen_runtime::fault::{Fault, Path};
use http::request::Parts;
use http::{HeaderMap, header};
use http_body_util::BodyExt;

use super::budget::{BodyBudget, Hold};
use super::identify::{Credentials, Identified};
use super::route::Destination;
use super::{MAX_BODY_BYTES, Refused, Seen};
use crate::deadline::Deadline;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::listener::RequestBody;
use crate::request_log::Reason;

/// A request that has arrived whole.
pub(super) struct Received {
    pub seen: Seen,
    pub destination: Destination,
    pub head: Parts,
    /// The body, byte for byte as sent.
    pub raw: Bytes,
    pub credentials: Credentials,
    /// What the body takes of the budget of unverified bytes.
    pub hold: Hold,
    /// Until when it waits for the database, from now on.
    pub deadline: Deadline,
    _step: (),
}

/// Reads the whole body.
///
/// # Errors
/// 413 for one byte too many, announced or sent, without reading the rest; 408 when it has not arrived in time; 400
/// when it breaks off; 429 or 503 when too many bytes that nobody has proved to be theirs are held already, by this address
/// or in all.
pub(super) async fn receive(
    budget: &BodyBudget,
    timeout: Duration,
    identified: Identified,
) -> Result<Received, Box<Refused>> {
    let Identified {
        mut seen,
        destination,
        head,
        body,
        credentials,
        ..
    } = identified;
    let mut hold = budget.hold(seen.address);
    let read = async {
        let expected = announced(&head.headers)?;
        let reading = collect(body, expected, &mut hold, &mut seen.received_bytes);
        tokio::time::timeout(timeout, reading)
            .await
            .unwrap_or_else(|_| Err(too_slow(timeout)))
    };
    match read.await {
        Ok(raw) => Ok(Received {
            seen,
            destination,
            head,
            raw,
            credentials,
            hold,
            deadline: Deadline::begin(),
            _step: (),
        }),
        Err(error) => Err(seen.refused(error)),
    }
}

/// The length that the head announces; 0 where it announces none.
fn announced(headers: &HeaderMap) -> Result<usize, ApiError> {
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse::<u64>().ok())
        .unwrap_or(0);
    match usize::try_from(length) {
        Ok(length) if length <= MAX_BODY_BYTES => Ok(length),
        _ => Err(too_large(Reason::BodyAnnouncedTooLarge)),
    }
}

/// The whole body; `received` counts what came of it, however it ends.
async fn collect(
    mut body: RequestBody,
    expected: usize,
    hold: &mut Hold,
    received: &mut u64,
) -> Result<Bytes, ApiError> {
    /// What is set aside on the strength of an announcement alone.
    const ON_TRUST: usize = 16 * 1024;
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            let fault = Fault::in_body(&Path::default(), "broke off before its end; send it again");
            ApiError::invalid_request(fault).because(Reason::BodyBrokeOff)
        })?;
        let Ok(data) = frame.into_data() else { continue };
        *received += data.len() as u64;
        let length = bytes.len() + data.len();
        if length > MAX_BODY_BYTES {
            return Err(too_large(Reason::BodyTooLarge));
        }
        hold.grow_to(length)?;
        if bytes.is_empty() {
            if length == expected {
                return Ok(data);
            }
            bytes.reserve(expected.clamp(length, ON_TRUST.max(length)));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

fn too_slow(timeout: Duration) -> ApiError {
    ApiError::new(
        ErrorCode::RequestTimeout,
        format!(
            "the body did not arrive within {} s; send it again",
            timeout.as_secs_f64()
        ),
    )
    .because(Reason::BodyTooSlow)
}

fn too_large(reason: Reason) -> ApiError {
    ApiError::new(
        ErrorCode::PayloadTooLarge,
        format!("a body may have at most {MAX_BODY_BYTES} bytes"),
    )
    .because(reason)
}
