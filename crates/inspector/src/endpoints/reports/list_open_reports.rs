//! `GET /inspector/v1/reports`: the open reports, or those that a search finds, the newest first.

use codegen_runtime::ValidationError;
use partner_api_domain::cursor::{FilterDigest, Position};
use partner_api_domain::fold;

use crate::caller::Caller;
use crate::context::Context;
use crate::db::listing::{self, PageRequest};
use crate::error::ApiError;
use crate::generated::responses::ListOpenReportsResponse;
use crate::generated::types::{ListOpenReportsQuery, OpenReportLine, OpenReportList, Page};
use crate::rules::moves::Status;

/// Lists reports at the inspector's branches: with a status, those with it; with a search, those that it finds; otherwise the open
/// ones.
///
/// # Errors
/// `invalid_request` for a cursor that does not belong to this list.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    query: ListOpenReportsQuery,
) -> Result<ListOpenReportsResponse, ApiError> {
    let inspector = caller.inspector()?;
    let status = query.status.map(Status::from);
    let search = query.search.as_deref().map(searched);
    let filters = FilterDigest::of([
        ("branch_id", query.branch_id.map(|id| id.to_string())),
        ("status", status.map(|status| status.as_str().to_owned())),
        ("search", search.clone()),
    ]);
    let after = query
        .cursor
        .map(|cursor| context.cursors().decode(inspector.id(), filters, &cursor));
    let after = after.transpose().map_err(|_| {
        ApiError::invalid_request(ValidationError::of_parameter(
            "cursor",
            "is not a cursor of this list with these filters; start with the first page",
        ))
    })?;
    let limit = i64::from(query.limit);
    let request = PageRequest {
        branch: query.branch_id,
        status,
        search,
        after,
        limit: limit + 1,
    };
    let mut lines = listing::list(&context.db(caller).await?, inspector, &request).await?;
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
            next_cursor: last.map(|last| context.cursors().encode(inspector.id(), filters, last)),
        },
    }))
}

/// A searched text as it is compared: upper case as in plates, without spaces and hyphens.
fn searched(text: &str) -> String {
    let is_ignored = |character: char| character.is_whitespace() || ['-', '.'].contains(&character);
    fold::fold(text).replace(is_ignored, "")
}
