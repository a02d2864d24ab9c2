//! One line per request: no query, no body, no secret, no personal data.

use http::StatusCode;

use super::Seen;
use crate::generated::errors::ErrorCode;

/// Writes the line of a request that has been answered.
pub(super) fn write(seen: &Seen, status: StatusCode, code: Option<ErrorCode>) {
    let (method, path) = &*seen.line;
    tracing::info!(
        target: "requests",
        request_id = &*seen.request_id,
        method = method.as_str(),
        path = &**path,
        operation = seen.operation.map(|operation| operation.id),
        status = status.as_u16(),
        code = code.map(ErrorCode::as_str),
        key_id = seen.key.as_ref().map(|key| &*key.id),
        partner = seen.key.as_ref().map(|key| key.partner.name.as_str()),
        address = tracing::field::display(seen.address),
        took_us = u64::try_from(seen.since.elapsed().as_micros()).unwrap_or(u64::MAX),
        "answered"
    );
}
