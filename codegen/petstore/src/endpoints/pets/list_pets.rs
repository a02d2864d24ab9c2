//! `GET /pets`.

use crate::context::Context;
use crate::error::ApiError;
use crate::gateway::Caller;
use crate::generated::responses::ListPetsResponse;
use crate::generated::types::ListPetsQuery;

/// Lists pets.
///
/// # Errors
/// 501 until it is implemented.
pub async fn handle(
    _context: &Context,
    _caller: &Caller,
    _query: ListPetsQuery,
) -> Result<ListPetsResponse, ApiError> {
    Err(ApiError::not_implemented("list_pets"))
}
