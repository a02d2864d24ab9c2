//! `GET /health`.

use crate::context::Context;
use crate::error::ApiError;
use crate::gateway::Caller;
use crate::generated::responses::GetHealthResponse;

/// Handles `GET /health`.
///
/// # Errors
/// 501 until it is implemented.
pub async fn handle(_context: &Context, _caller: &Caller) -> Result<GetHealthResponse, ApiError> {
    Err(ApiError::not_implemented("get_health"))
}
