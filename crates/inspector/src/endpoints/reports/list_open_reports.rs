//! `GET /inspector/v1/reports`: what is being worked on, the newest first.

use codegen_runtime::Fault;
use partner_api_domain::cursor::{FilterDigest, Position};

use crate::caller::Caller;
use crate::context::Context;
use crate::db::listing::{self, Asked};
use crate::error::ApiError;
use crate::generated::responses::ListOpenReportsResponse;
use crate::generated::types::{ListOpenReportsQuery, OpenReportLine, OpenReportList, Page};
use crate::rules::moves::Status;

/// Lists the reports of the inspector's branches that partners do not see.
///
/// # Errors
/// `invalid_request` for a cursor that is not one of this list.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    query: ListOpenReportsQuery,
) -> Result<ListOpenReportsResponse, ApiError> {
    let inspector = caller.inspector()?;
    let status = query.status.map(Status::from);
    let filters = FilterDigest::of([
        ("branch_id", query.branch_id.map(|id| id.to_string())),
        ("status", status.map(|status| status.word().to_owned())),
    ]);
    let after = query
        .cursor
        .map(|cursor| context.cursors().open(inspector.id(), filters, &cursor));
    let after = after.transpose().map_err(|_| {
        ApiError::invalid_request(Fault::of_parameter(
            "cursor",
            "is not one that this list gave for these filters; begin with the first page",
        ))
    })?;
    let limit = i64::from(query.limit);
    let asked = Asked {
        branch: query.branch_id,
        status,
        after,
        limit: limit + 1,
    };
    let mut lines = listing::list(&context.db(caller).await?, inspector, &asked).await?;
    let has_more = lines.len() as i64 > limit;
    lines.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let last = lines.last().filter(|_| has_more).map(|line| Position {
        time: line.created_at,
        id: line.id,
    });
    let data = lines.into_iter().map(|line| OpenReportLine {
        id: line.id,
        report_number: line.report_number,
        status: line.status.into(),
        branch_id: line.branch_id,
        plate: line.plate,
        vehicle: line.vehicle,
        waiting: line.waiting,
        created_at: line.created_at,
    });
    Ok(ListOpenReportsResponse::Ok(OpenReportList {
        data: data.collect(),
        page: Page {
            next_cursor: last.map(|last| context.cursors().seal(inspector.id(), filters, last)),
        },
    }))
}
