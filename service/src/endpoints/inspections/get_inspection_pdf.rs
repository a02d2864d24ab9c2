//! `GET /api/v1/partner/inspections/{id}/pdf`: the report as the customer sees it, streamed from the storage (REP-8).

use std::time::Duration;

use partner_api_domain::etag::ETag;
use partner_api_domain::id;
use partner_api_store::connection::Connection;
use partner_api_store::inspections::{self, Pdf, PdfLookup};
use partner_api_store::renderings;

use super::{not_found, storage_failed};
use crate::caller::Caller;
use crate::context::Context;
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::generated::responses::GetInspectionPdfResponse;
use crate::generated::types::{GetInspectionPdfHeaders, GetInspectionPdfPath};
use crate::publishing::disposition;
use crate::request_log::Reason;
use crate::storage::StorageError;

/// The `Retry-After` while a PDF is rendered. Renderers poll for work every second.
const RENDERING_TIME: Duration = Duration::from_secs(2);

/// Returns the PDF of a published report with a public slug, or 304 if the caller has the current version.
///
/// # Errors
/// `not_found` for a report that does not exist or has no PDF; the message distinguishes the two if the partner may see the report.
/// `service_unavailable` while the PDF is rendered, and if the database or the storage is unavailable.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: GetInspectionPdfPath,
    headers: GetInspectionPdfHeaders,
) -> Result<GetInspectionPdfResponse, ApiError> {
    let id = id::parse(&path.id).ok_or_else(not_found)?;
    let client = context.db(caller).await?;
    let pdf = match inspections::pdf(&client, caller.grants(), id).await? {
        PdfLookup::Some(pdf) => pdf,
        PdfLookup::None => {
            return Err(ApiError::not_found(
                "this report has no PDF; only published reports with a public link have one",
            ));
        }
        PdfLookup::ReportNotVisible => return Err(not_found()),
    };
    let Some(key) = pdf.current_key() else {
        return Err(request_rendering(&client, &pdf).await);
    };
    // A slow client must not occupy a connection of the pool.
    drop(client);
    let tag = ETag::of_name(key);
    if tag.matches(headers.if_none_match.as_deref()) {
        return Ok(GetInspectionPdfResponse::Status304 {
            e_tag: tag.into_header(),
        });
    }
    let object = match context.storage.stream(key).await {
        Ok(object) => object,
        Err(StorageError::NotFound(_)) => {
            tracing::error!(report = %pdf.report(), "a PDF is missing from the storage; rendering it again");
            return Err(request_rendering(&context.db(caller).await?, &pdf).await);
        }
        Err(error) => return Err(storage_failed(&error)),
    };
    Ok(GetInspectionPdfResponse::Ok {
        body: object.into_body(),
        e_tag: tag.into_header(),
        content_disposition: disposition("attachment", pdf.report_number()),
    })
}

/// Requests the rendering of a PDF, and returns the error to send until it is rendered.
async fn request_rendering(client: &Connection, pdf: &Pdf) -> ApiError {
    if let Err(error) = renderings::request(client, pdf).await {
        // The partner's next request tries again.
        tracing::warn!(report = %pdf.report(), %error, "failed to request the rendering of a PDF");
    }
    ApiError {
        retry_after: Some(RENDERING_TIME),
        reason: Some(Reason::PdfNotReady),
        ..ApiError::new(
            ErrorCode::ServiceUnavailable,
            "the report's PDF is being rendered; try again after Retry-After",
        )
    }
}
