//! `GET /api/v1/partner/health` (SVC-6, KEY-9). It uses no database, so it responds while the database is down.

use chrono::SubsecRound;

use crate::caller::Caller;
use crate::context::Context;
use crate::error::ApiError;
use crate::generated::responses::GetHealthResponse;
use crate::generated::types::{Environment, Health};

/// Returns the caller's partner, the environment, and the server's time.
///
/// # Errors
/// None.
pub async fn handle(context: &Context, caller: &Caller) -> Result<GetHealthResponse, ApiError> {
    Ok(GetHealthResponse::Ok(Health {
        status: "ok".into(),
        partner: caller.key().partner.id,
        environment: match context.environment {
            partner_api_signing::Environment::Test => Environment::Test,
            partner_api_signing::Environment::Live => Environment::Live,
        },
        // In microseconds, like all times of the API (REQ-18).
        server_time: chrono::Utc::now().trunc_subsecs(6),
    }))
}
