//! `GET /api/v1/partner/inspections/{id}/pdf`: the report as the customer sees it, streamed from storage
//! (REP-8).

use std::time::Duration;

use partner_api_domain::etag::ETag;
use partner_api_domain::id;
use partner_api_store::connection::Connection;
use partner_api_store::inspections::{self, OfPdf, Pdf};
use partner_api_store::renderings;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{not_found, storage_failed};
use crate::context::Context;
use crate::error::ApiError;
use crate::gateway::Caller;
use crate::generated::errors::ErrorCode;
use crate::generated::responses::GetInspectionPdfResponse;
use crate::generated::types::{GetInspectionPdfHeaders, GetInspectionPdfPath};
use crate::request_log::Reason;
use crate::storage::StorageError;

/// After how long a partner asks again for what is being rendered: a renderer looks for work every second.
const RENDERED_AFTER: Duration = Duration::from_secs(2);

/// What is encoded in an extended value (RFC 8187).
const EXTENDED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// Answers the PDF of a published report that has its public slug; nothing but that it is the same if the caller has it.
///
/// # Errors
/// `not_found` when there is no such report, or it has no PDF: of a report that the partner sees, which of the two;
/// `service_unavailable` while it is rendered, and when the database or the storage is out of reach.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: GetInspectionPdfPath,
    headers: GetInspectionPdfHeaders,
) -> Result<GetInspectionPdfResponse, ApiError> {
    let id = id::parse(&path.id).ok_or_else(not_found)?;
    let client = context.db(caller).await?;
    let pdf = match inspections::pdf(&client, caller.grants(), id).await? {
        OfPdf::Some(pdf) => pdf,
        OfPdf::None => {
            return Err(ApiError::not_found(
                "this report has no PDF; only published reports with their public link have one",
            ));
        }
        OfPdf::Unseen => return Err(not_found()),
    };
    let Some(key) = pdf.current_key() else {
        return Err(rendered_later(&client, &pdf).await);
    };
    // A slow reader must not hold a connection of the pool.
    drop(client);
    let tag = ETag::of_name(key);
    if tag.is_known(headers.if_none_match.as_deref()) {
        return Ok(GetInspectionPdfResponse::Status304 {
            e_tag: tag.into_header(),
        });
    }
    let object = match context.storage.stream(key).await {
        Ok(object) => object,
        Err(StorageError::NotFound(_)) => {
            tracing::error!(report = %pdf.report(), "the storage has lost a PDF; it is rendered again");
            return Err(rendered_later(&context.db(caller).await?, &pdf).await);
        }
        Err(error) => return Err(storage_failed(&error)),
    };
    Ok(GetInspectionPdfResponse::Ok {
        body: object.into_body(),
        e_tag: tag.into_header(),
        content_disposition: attachment(pdf.report_number()),
    })
}

/// The file's name as `Content-Disposition` has it: plain where it can be, and as UTF-8 where it holds anything else
/// (RFC 6266).
fn attachment(report_number: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.' | ' ');
    let plain: String = report_number
        .chars()
        .map(|it| if is_plain(it) { it } else { '_' })
        .collect();
    if plain == report_number {
        return format!("attachment; filename=\"{plain}.pdf\"");
    }
    let encoded = utf8_percent_encode(report_number, EXTENDED);
    format!("attachment; filename=\"{plain}.pdf\"; filename*=UTF-8''{encoded}.pdf")
}

/// Has the PDF rendered, and the answer until it is.
async fn rendered_later(client: &Connection, pdf: &Pdf) -> ApiError {
    if let Err(error) = renderings::ask(client, pdf).await {
        // The partner's next request asks again.
        tracing::warn!(report = %pdf.report(), %error, "a PDF could not be asked for");
    }
    ApiError {
        retry_after: Some(RENDERED_AFTER),
        reason: Some(Reason::PdfNotReady),
        ..ApiError::new(
            ErrorCode::ServiceUnavailable,
            "the report's PDF is being rendered; try again after Retry-After",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_by_its_report_and_nothing_in_a_number_breaks_out_of_its_quotes() {
        for (number, header) in [
            ("ANK-2026-000482", "attachment; filename=\"ANK-2026-000482.pdf\""),
            (
                "İZM/2026\"\r\n",
                "attachment; filename=\"_ZM_2026___.pdf\"; filename*=UTF-8''%C4%B0ZM%2F2026%22%0D%0A.pdf",
            ),
        ] {
            assert_eq!(attachment(number), header);
        }
    }
}
