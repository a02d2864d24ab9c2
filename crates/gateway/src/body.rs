//! Reading a body: counted while it arrives, within the contract's limits of size, time and memory.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use codegen_runtime::fault::{Fault, Path};
use http::request::Parts;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::Body;

use crate::Reason;
use crate::identify::Identified;
use crate::request::Refused;
use crate::{ApiError, Contract, Destination, ErrorCode, Outcome, RequestInfo};

/// How large a body may be, and how long it may take to arrive.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimit {
    /// The number of bytes.
    pub bytes: usize,
    /// The time.
    pub timeout: Duration,
    /// What to do about a body that is too large, for the message.
    pub remedy: Option<&'static str>,
}

/// A request whose body has arrived.
pub(super) struct Received<C: Contract> {
    pub info: RequestInfo,
    pub destination: Destination<C>,
    pub head: Parts,
    /// The body, byte for byte as sent.
    pub body: Bytes,
    pub identity: C::Identity,
    pub hold: C::BodyHold,
    _stage: (),
}

/// Reads the whole body, if the contract wants it.
///
/// # Errors
/// 413 for a body over the limit, announced or sent, without reading the rest; 408 when it has not arrived in time; 400 when it
/// breaks off; what the contract says when there is no memory for it.
pub(super) async fn receive<C, B>(
    contract: &C,
    identified: Identified<C, B>,
) -> Result<Received<C>, Box<Refused<C::Code>>>
where
    C: Contract,
    B: Body<Data = Bytes> + Send + Unpin,
{
    let Identified {
        mut info,
        destination,
        head,
        body,
        identity,
        ..
    } = identified;
    let read = async {
        let route = destination.route();
        let mut hold = contract.hold_body(&info, route).await?;
        let Some(limit) = contract.body_limit(route) else {
            return Ok((hold, Bytes::new()));
        };
        let expected = announced(&head.headers, limit)?;
        let reading = collect::<C, B>(body, expected, limit, &mut hold, &mut info.received_bytes);
        let body = tokio::time::timeout(limit.timeout, reading)
            .await
            .unwrap_or_else(|_| Err(too_slow(limit)))?;
        Ok((hold, body))
    };
    match read.await {
        Ok((hold, body)) => Ok(Received {
            info,
            destination,
            head,
            body,
            identity,
            hold,
            _stage: (),
        }),
        Err(error) => Err(info.refused(error)),
    }
}

/// The length that the head announces; 0 if it announces none.
fn announced<E: ErrorCode>(headers: &HeaderMap, limit: BodyLimit) -> Result<usize, ApiError<E>> {
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse::<u64>().ok())
        .unwrap_or(0);
    match usize::try_from(length) {
        Ok(length) if length <= limit.bytes => Ok(length),
        _ => Err(too_large(limit).with_reason(Reason::BodyAnnouncedTooLarge)),
    }
}

/// The whole body; `received` counts the bytes that have arrived, however reading ends.
async fn collect<C, B>(
    mut body: B,
    expected: usize,
    limit: BodyLimit,
    hold: &mut C::BodyHold,
    received: &mut u64,
) -> Outcome<Bytes, C>
where
    C: Contract,
    B: Body<Data = Bytes> + Unpin,
{
    /// Bytes that are allocated on the strength of an announcement alone.
    const ON_TRUST: usize = 16 * 1024;
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            let fault = Fault::in_body(&Path::default(), "broke off before its end; send it again");
            return Err(ApiError::invalid_request(fault).with_reason(Reason::BodyBrokeOff));
        };
        let Ok(data) = frame.into_data() else { continue };
        *received += data.len() as u64;
        let length = bytes.len() + data.len();
        if length > limit.bytes {
            return Err(too_large(limit).with_reason(Reason::BodyTooLarge));
        }
        C::extend_hold(hold, length)?;
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

fn too_slow<E: ErrorCode>(limit: BodyLimit) -> ApiError<E> {
    let message = format!(
        "the body did not arrive within {} s; send it again",
        limit.timeout.as_secs_f64()
    );
    ApiError::new(E::REQUEST_TIMEOUT, message).with_reason(Reason::BodyTooSlow)
}

fn too_large<E: ErrorCode>(limit: BodyLimit) -> ApiError<E> {
    let mut message = format!("a body may have at most {} bytes", limit.bytes);
    if let Some(remedy) = limit.remedy {
        message = format!("{message}; {remedy}");
    }
    ApiError::new(E::PAYLOAD_TOO_LARGE, message)
}
