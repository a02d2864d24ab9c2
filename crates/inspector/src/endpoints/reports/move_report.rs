//! `PUT /inspector/v1/reports/{id}/status`: the report along its way (INS-6).

use super::{change, of_version, possible};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::moves;
use crate::error::{self, ApiError};
use crate::generated::responses::MoveReportResponse;
use crate::generated::types::{MoveReport, MoveReportPath};
use crate::rules::moves::Status;

/// Moves the report to another status.
///
/// # Errors
/// `changed_meanwhile` for a version that is not the report's any more; `transition_refused` for a status that it may not have
/// now; `invalid_request` where a reason is needed.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: MoveReportPath,
    body: MoveReport,
) -> Result<MoveReportResponse, ApiError> {
    let (version, to) = (body.version, Status::from(body.to));
    let reason = body
        .reason
        .as_deref()
        .map(str::trim)
        .filter(|reason| !reason.is_empty());
    let report = change(context, caller, path.id, async |transaction, inspector, report| {
        of_version(report, version)?;
        if !report.status.may_become(report.before_request).contains(&to) {
            return Err(error::transition_refused(format!(
                "a report that is {} cannot become {}; {}",
                report.status.word(),
                to.word(),
                possible(report)
            )));
        }
        if to.needs_reason() && reason.is_none() {
            return Err(error::member(
                "reason",
                format!("is needed to make a report {}", to.word()),
            ));
        }
        Ok(moves::move_to(transaction, inspector, report, to, reason).await?)
    });
    Ok(MoveReportResponse::Ok(report.await?))
}
