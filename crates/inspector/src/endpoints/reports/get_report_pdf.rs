//! `GET /inspector/v1/reports/{id}/pdf`: the PDF of a published report, to be opened and printed.

use partner_api::publishing;
use partner_api::storage::StorageError;

use crate::caller::Caller;
use crate::context::Context;
use crate::db::pdf;
use crate::error::{self, ApiError};
use crate::generated::responses::GetReportPdfResponse;
use crate::generated::types::GetReportPdfPath;

/// Streams the report's PDF.
///
/// # Errors
/// `not_found` if the report does not exist at the inspector's branches, or has no PDF of its current data.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: GetReportPdfPath,
) -> Result<GetReportPdfResponse, ApiError> {
    let client = context.db(caller).await?;
    let pdf = pdf::current(&client, caller.inspector()?, path.id).await?;
    let pdf = pdf.ok_or_else(no_pdf)?;
    // A slow client must not occupy a connection of the pool.
    drop(client);
    let object = match context.service().storage.stream(&pdf.key).await {
        Ok(object) => object,
        Err(StorageError::NotFound(_)) => return Err(no_pdf()),
        Err(error) => return Err(error::storage_failed(&error)),
    };
    Ok(GetReportPdfResponse::Ok {
        body: object.into_body(),
        content_disposition: publishing::disposition("inline", &pdf.report_number),
    })
}

fn no_pdf() -> ApiError {
    ApiError::not_found(
        "there is no PDF of this report at your branches; a published report has one when it has pdf_sha256",
    )
}
