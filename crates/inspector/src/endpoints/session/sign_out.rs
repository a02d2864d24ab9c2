//! `DELETE /inspector/v1/session`: ends the session on all replicas.

use crate::caller::Caller;
use crate::context::Context;
use crate::db::sessions;
use crate::error::ApiError;
use crate::generated::responses::SignOutResponse;

/// Ends the session.
///
/// # Errors
/// `signed_out` without a session.
pub async fn handle(context: &Context, caller: &Caller) -> Result<SignOutResponse, ApiError> {
    let cookie = caller.inspector()?.cookie();
    sessions::end(&context.db(caller).await?, &cookie.digest()).await?;
    Ok(SignOutResponse::NoContent)
}
