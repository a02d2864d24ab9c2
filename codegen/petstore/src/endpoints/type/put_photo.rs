//! `PUT /pets/{id}/photo`.

use crate::context::Context;
use crate::error::ApiError;
use crate::gateway::Caller;
use crate::generated::responses::PutPhotoResponse;
use crate::generated::types::PutPhotoPath;

/// Handles `PUT /pets/{id}/photo`.
///
/// # Errors
/// 501 until it is implemented.
pub async fn handle(
    _context: &Context,
    _caller: &Caller,
    _path: PutPhotoPath,
    _body: dropshot::UntypedBody,
) -> Result<PutPhotoResponse, ApiError> {
    Err(ApiError::not_implemented("put_photo"))
}
