//! `DELETE /pets/{id}`.

use crate::context::Context;
use crate::error::ApiError;
use crate::gateway::Caller;
use crate::generated::responses::DeletePetResponse;
use crate::generated::types::DeletePetPath;

/// Handles `DELETE /pets/{id}`.
///
/// # Errors
/// 501 until it is implemented.
pub async fn handle(
    _context: &Context,
    _caller: &Caller,
    _path: DeletePetPath,
) -> Result<DeletePetResponse, ApiError> {
    Err(ApiError::not_implemented("delete_pet"))
}
