//! `PUT /pets/{id}`.

use crate::context::Context;
use crate::error::ApiError;
use crate::gateway::Caller;
use crate::generated::responses::ReplacePetResponse;
use crate::generated::types::{Pet, ReplacePetHeaders, ReplacePetPath, ReplacePetQuery};

/// Replaces a pet.
///
/// # Errors
/// 501 until it is implemented.
pub async fn handle(
    _context: &Context,
    _caller: &Caller,
    _path: ReplacePetPath,
    _query: ReplacePetQuery,
    _headers: ReplacePetHeaders,
    _body: Pet,
) -> Result<ReplacePetResponse, ApiError> {
    Err(ApiError::not_implemented("replace_pet"))
}
