//! `PUT /inspector/v1/reports/{id}/status`: moves a report to another status (INS-6).

use super::{allowed_transitions, change, check_version};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::moves::{self, MoveError};
use crate::error::{self, ApiError};
use crate::generated::errors::ErrorCode;
use crate::generated::responses::MoveReportResponse;
use crate::generated::types::{MoveReport, MoveReportPath};
use crate::rules::moves::Status;

/// Moves the report to another status.
///
/// # Errors
/// `changed_meanwhile` for an outdated version; `transition_rejected` for a transition that is not allowed; `report_incomplete` if
/// required points were not inspected; `invalid_request` if a required reason is missing.
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
        check_version(report, version)?;
        if !report.status.may_become(report.before_request).contains(&to) {
            return Err(error::transition_rejected(format!(
                "the report cannot be moved from {} to {}; {}",
                report.status.as_str(),
                to.as_str(),
                allowed_transitions(report)
            )));
        }
        if to == Status::Published && !report.review.allows(report.status, inspector) {
            return Err(error::transition_rejected(
                "the organization requires a review: move the report to IN_REVIEW, and let an inspector publish it who neither moved \
                 it there nor wrote its last answer",
            ));
        }
        if report.status.needs_reason(to) && reason.is_none() {
            return Err(error::member(
                "reason",
                format!("is required for the status {}", to.as_str()),
            ));
        }
        let moved = moves::move_to(transaction, inspector, report, to, reason).await?;
        moved.map_err(move_error)
    });
    Ok(MoveReportResponse::Ok(report.await?))
}

/// The maximum number of points that a message names.
const MAX_NAMED: usize = 10;

fn move_error(error: MoveError) -> ApiError {
    match error {
        MoveError::NothingInspected => ApiError::new(
            ErrorCode::ReportIncomplete,
            "nothing has been inspected; answer the points of the report's forms first",
        ),
        MoveError::Unanswered(points) => {
            let more = match points.len().saturating_sub(MAX_NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let named = points[..points.len().min(MAX_NAMED)].join(", ");
            ApiError::new(
                ErrorCode::ReportIncomplete,
                format!("required points were not inspected; answer them first: {named}{more}"),
            )
        }
        MoveError::NotEmpty => error::transition_rejected(
            "the report has content; only a draft into which nothing was entered can be discarded",
        ),
    }
}
