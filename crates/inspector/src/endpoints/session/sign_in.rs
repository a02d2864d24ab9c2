//! `POST /inspector/v1/session`: exchanges a token for a session (INS-2, INS-3, INS-4).

use chrono::Utc;
use partner_api_domain::inspector_token;

use super::get_session::shown;
use crate::caller::{Caller, Cookie, Inspector};
use crate::context::Context;
use crate::db::{attempts, sessions};
use crate::error::{self, ApiError};
use crate::generated::errors::ErrorCode;
use crate::generated::responses::SignInResponse;
use crate::generated::types::SignIn;

/// Exchanges a token for a session.
///
/// # Errors
/// `token_rejected` for an unknown or revoked token; `too_many_attempts` for an address with too many failed attempts.
pub async fn handle(context: &Context, caller: &Caller, body: SignIn) -> Result<SignInResponse, ApiError> {
    let client = context.db(caller).await?;
    if let Some(left) = attempts::count(&client, caller.address()).await? {
        return Err(ApiError {
            retry_after: Some(left),
            ..ApiError::new(
                ErrorCode::TooManyAttempts,
                format!(
                    "{} attempts to sign in from this address have failed; wait for Retry-After",
                    attempts::MAX_FAILED
                ),
            )
        });
    }
    let cookie = Cookie::new()?;
    let token = inspector_token::hash(&body.token);
    if !sessions::begin(&client, &token, &cookie.digest()).await? {
        return Err(ApiError::new(
            ErrorCode::TokenRejected,
            "the token is unknown or revoked; check the spelling, or ask the operator for a new one",
        ));
    }
    context.cookie_lookups().learn(cookie.digest(), true);
    attempts::undo(&client, caller.address()).await?;
    let session = sessions::find(&client, &cookie.digest(), false).await?;
    let inspector = Inspector::of(session.ok_or_else(error::signed_out)?, cookie);
    let seconds = (inspector.ends_at() - Utc::now()).num_seconds();
    Ok(SignInResponse::Ok {
        set_cookie: inspector.cookie().set(caller.is_secure(), seconds),
        body: shown(&inspector),
    })
}
