//! Reading of the body within the contract's limits of size, time and memory.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use codegen_runtime::validation::{Path, ValidationError};
use http::request::Parts;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::Body;

use crate::Reason;
use crate::identify::Identified;
use crate::request::Rejected;
use crate::{ApiError, Contract, Destination, ErrorCode, Outcome, RequestInfo};

/// The maximum size of a body, and the time in which it must arrive.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimit {
    /// The maximum number of bytes.
    pub bytes: usize,
    /// The maximum time.
    pub timeout: Duration,
    /// Advice for the message about a body that is too large.
    pub remedy: Option<&'static str>,
}

/// A request whose body has arrived.
pub(super) struct Received<C: Contract> {
    pub info: RequestInfo,
    pub destination: Destination<C>,
    pub head: Parts,
    /// The exact bytes of the body.
    pub body: Bytes,
    pub identity: C::Identity,
    pub reservation: C::BodyReservation,
    _stage: (),
}

/// Reads the whole body, if the contract has a body limit for the operation.
///
/// # Errors
/// 413 if the announced or actual size is over the limit, without reading the rest; 408 if the body does not arrive in time; 400
/// if the connection is lost before its end; the contract's error if there is not enough memory.
pub(super) async fn receive<C, B>(
    contract: &C,
    identified: Identified<C, B>,
) -> Result<Received<C>, Box<Rejected<C::Code>>>
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
        let mut reservation = contract.reserve_body(&info, &identity, route).await?;
        let Some(limit) = contract.body_limit(route) else {
            return Ok((reservation, Bytes::new()));
        };
        let expected = announced(&head.headers, limit)?;
        let reading = collect::<C, B>(body, expected, limit, &mut reservation, &mut info.received_bytes);
        let body = tokio::time::timeout(limit.timeout, reading)
            .await
            .unwrap_or_else(|_| Err(too_slow(limit)))?;
        Ok((reservation, body))
    };
    match read.await {
        Ok((reservation, body)) => Ok(Received {
            info,
            destination,
            head,
            body,
            identity,
            reservation,
            _stage: (),
        }),
        Err(error) => Err(info.rejected(error)),
    }
}

/// Returns the length that the head announces, or 0 if it announces none.
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

/// Reads the whole body. `received` counts the bytes that have arrived, even if reading fails.
async fn collect<C, B>(
    mut body: B,
    expected: usize,
    limit: BodyLimit,
    reservation: &mut C::BodyReservation,
    received: &mut u64,
) -> Outcome<Bytes, C>
where
    C: Contract,
    B: Body<Data = Bytes> + Unpin,
{
    /// The maximum number of bytes that are allocated before they have arrived.
    const MAX_PREALLOCATED: usize = 16 * 1024;
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            let error = ValidationError::in_body(&Path::default(), "ended unexpectedly; send it again");
            return Err(ApiError::invalid_request(error).with_reason(Reason::BodyBrokeOff));
        };
        let Ok(data) = frame.into_data() else { continue };
        *received += data.len() as u64;
        let length = bytes.len() + data.len();
        if length > limit.bytes {
            return Err(too_large(limit).with_reason(Reason::BodyTooLarge));
        }
        C::extend_reservation(reservation, length).await?;
        if bytes.is_empty() {
            if length == expected {
                return Ok(data);
            }
            bytes.reserve(expected.clamp(length, MAX_PREALLOCATED.max(length)));
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
