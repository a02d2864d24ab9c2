//! `GET /inspector/v1/session`: the session.

use crate::caller::{Caller, Inspector};
use crate::context::Context;
use crate::error::ApiError;
use crate::generated::responses::GetSessionResponse;
use crate::generated::types::{Branch, Session, SessionData};

/// Returns the inspector's name and branches, and the CSRF token that every write must carry.
///
/// # Errors
/// `signed_out` without a session.
#[allow(clippy::unused_async, reason = "the generated code awaits it")]
pub async fn handle(_: &Context, caller: &Caller) -> Result<GetSessionResponse, ApiError> {
    Ok(GetSessionResponse::Ok(shown(caller.inspector()?)))
}

/// The session as the API returns it.
pub(super) fn shown(inspector: &Inspector) -> Session {
    let branches = inspector.branches().iter().map(|branch| Branch {
        id: branch.id,
        code: branch.code.clone(),
        name: branch.name.clone(),
    });
    Session {
        data: SessionData {
            inspector: inspector.name().to_owned(),
            branches: branches.collect(),
            csrf_token: inspector.csrf_token(),
            ends_at: inspector.ends_at(),
        },
    }
}
