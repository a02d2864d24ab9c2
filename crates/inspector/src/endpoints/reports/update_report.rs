//! `PATCH /inspector/v1/reports/{id}`: texts, mileage and pricing.

use codegen_runtime::Faults;
use rust_decimal::Decimal;

use super::{being_written, change, of_version, outside, price_fault};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::writing::{self, Update};
use crate::error::ApiError;
use crate::generated::responses::UpdateReportResponse;
use crate::generated::types::{UpdateReport, UpdateReportPath};

/// Changes what is sent, and leaves the rest.
///
/// # Errors
/// `changed_meanwhile` for a version that is not the report's any more; `transition_refused` unless it is being written.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: UpdateReportPath,
    body: UpdateReport,
) -> Result<UpdateReportResponse, ApiError> {
    let version = body.version;
    let faults = [
        price_fault("base_price", body.base_price),
        outside("discount_percent", body.discount_percent, Decimal::ONE_HUNDRED),
    ];
    if let Some(faults) = Faults::of(faults.into_iter().flatten()) {
        return Err(ApiError::invalid_request(faults));
    }
    let update = Update {
        summary: body.summary,
        recommendation: body.recommendation,
        mileage_km: body.mileage_km,
        base_price: body.base_price,
        discount_percent: body.discount_percent,
        discount_name: body.discount_name,
        payment_type: body.payment_type,
    };
    let report = change(context, caller, path.id, async |transaction, _, report| {
        of_version(report, version)?;
        being_written(report)?;
        Ok(writing::update(transaction, report, &update).await?)
    });
    Ok(UpdateReportResponse::Ok(report.await?))
}
