//! `GET /api/v1/partner/health` (SVC-6, KEY-9): no database query, and it answers while the database is down.

use chrono::SubsecRound;

use crate::context::Context;
use crate::error::ApiError;
use crate::gateway::Caller;
use crate::generated::responses::GetHealthResponse;
use crate::generated::types::{Environment, Health};

/// Answers who called, where, and the server's time.
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
        // To the microsecond, as all times are that the service answers (REQ-18).
        server_time: chrono::Utc::now().trunc_subsecs(6),
    }))
}
