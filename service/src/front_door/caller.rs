//! Who called: how it reaches the endpoints, and how their errors come back.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use dropshot::{Body, RequestContext};
use http::Response;

use super::route::Handler;
use super::transaction::{Slot, WriteTransaction};
use crate::context::Context;
use crate::directory::{Key, Scope};
use crate::error::ApiError;

/// Who called, and what of the call an endpoint may use.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The key that signed.
    pub key: Arc<Key>,
    /// What its partner may see.
    pub scope: Arc<Scope>,
    /// The request's id.
    pub request_id: String,
    /// When the request was let in.
    pub received_at: DateTime<Utc>,
    pub(super) slot: Slot,
}

impl Caller {
    /// The transaction that holds the request's nonce; an endpoint that writes does so in it, and ends it with
    /// [`WriteTransaction::commit`]. Not ended, it is undone, but the nonce stays used.
    ///
    /// # Errors
    /// 500 when the operation was not admitted in a transaction (`x-admission`), or when it was taken before.
    pub async fn transaction(&self) -> Result<WriteTransaction, ApiError> {
        self.slot.take().ok_or_else(|| {
            tracing::error!(
                request_id = self.request_id,
                "this operation has no transaction: see x-admission"
            );
            ApiError::internal()
        })
    }
}

/// What travels with the request's task: from it the generated dispatch reads who called, and into it an error is put
/// at the one point where Dropshot shows it.
struct Admitted {
    caller: Caller,
    raw: Bytes,
    refused: RefCell<Option<ApiError>>,
}

tokio::task_local! {
    static ADMITTED: Admitted;
}

/// Who called; for the generated dispatch.
///
/// # Errors
/// 500 outside the front door.
pub fn caller() -> Result<Caller, ApiError> {
    ADMITTED
        .try_with(|admitted| admitted.caller.clone())
        .map_err(|_| ApiError::internal())
}

/// The body's exact bytes; for the generated dispatch (`x-raw-body`).
///
/// # Errors
/// 500 outside the front door.
pub fn raw_body() -> Result<Bytes, ApiError> {
    ADMITTED
        .try_with(|admitted| admitted.raw.clone())
        .map_err(|_| ApiError::internal())
}

/// Keeps an endpoint's error for the front door; for [`ApiError`]'s conversion.
pub(crate) fn carry_out(error: &ApiError) {
    let _ = ADMITTED.try_with(|admitted| admitted.refused.replace(Some(error.clone())));
}

/// Calls an endpoint on behalf of `caller`, and brings its error back.
pub(super) async fn call(
    handler: Handler,
    rqctx: RequestContext<Context>,
    request: hyper::Request<Body>,
    caller: Caller,
    raw: Bytes,
) -> Result<Response<Body>, ApiError> {
    let request_id = caller.request_id.clone();
    let admitted = Admitted {
        caller,
        raw,
        refused: RefCell::new(None),
    };
    let called = async {
        handler(rqctx, request).await.map_err(|()| {
            ADMITTED.with(|admitted| admitted.refused.take()).unwrap_or_else(|| {
                tracing::error!(request_id, "a handler failed without an error");
                ApiError::internal()
            })
        })
    };
    ADMITTED.scope(admitted, called).await
}
