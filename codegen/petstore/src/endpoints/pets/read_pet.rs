//! `GET /pets/{id}`.

use crate::context::Context;
use crate::error::ApiError;
use crate::gateway::Caller;
use crate::generated::responses::ReadPetResponse;
use crate::generated::types::ReadPetPath;

/// Handles `GET /pets/{id}`.
///
/// # Errors
/// 501 until it is implemented.
pub async fn handle(
    _context: &Context,
    _caller: &Caller,
    _path: ReadPetPath,
) -> Result<ReadPetResponse, ApiError> {
    Err(ApiError::not_implemented("read_pet"))
}
