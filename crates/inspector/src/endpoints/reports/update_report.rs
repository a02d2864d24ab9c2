//! `PATCH /inspector/v1/reports/{id}`: changes texts, mileage and pricing.

use codegen_runtime::ValidationErrors;
use rust_decimal::Decimal;

use super::{change, check_editable, check_version, price_error, range_error};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::writing::{self, Update};
use crate::error::ApiError;
use crate::generated::responses::UpdateReportResponse;
use crate::generated::types::{UpdateReport, UpdateReportPath};

/// Changes the fields that are sent and leaves the others unchanged.
///
/// # Errors
/// `changed_meanwhile` for an outdated version; `transition_rejected` if the report cannot be edited.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: UpdateReportPath,
    body: UpdateReport,
) -> Result<UpdateReportResponse, ApiError> {
    let version = body.version;
    let errors = [
        price_error("base_price", body.base_price),
        range_error("discount_percent", body.discount_percent, Decimal::ONE_HUNDRED),
    ];
    if let Some(errors) = ValidationErrors::of(errors.into_iter().flatten()) {
        return Err(ApiError::invalid_request(errors));
    }
    let update = Update {
        summary: body.summary,
        recommendation: body.recommendation,
        mileage_km: body.mileage_km,
        base_price: body.base_price,
        discount_percent: body.discount_percent,
        discount_name: body.discount_name,
        payment_type: body.payment_type.map(|payment| payment.as_str()),
    };
    let report = change(context, caller, path.id, async |transaction, _, report| {
        check_version(report, version)?;
        check_editable(report)?;
        Ok(writing::update(transaction, report, &update).await?)
    });
    Ok(UpdateReportResponse::Ok(report.await?))
}
