//! `POST /pets`.

use crate::context::Context;
use crate::error::ApiError;
use crate::gateway::Caller;
use crate::generated::responses::CreatePetResponse;
use crate::generated::types::Pet;

/// Adds a pet.
///
/// # Errors
/// 501 until it is implemented.
pub async fn handle(
    _context: &Context,
    _caller: &Caller,
    _body: Pet,
) -> Result<CreatePetResponse, ApiError> {
    Err(ApiError::not_implemented("create_pet"))
}
