//! Operations on reports, and what they share.

pub mod add_photo;
pub mod correct_vehicle;
pub mod delete_photo;
pub mod fill_form;
pub mod get_report;
pub mod get_report_pdf;
pub mod list_open_reports;
pub mod move_report;
pub mod open_report;
pub mod order_photos;
pub mod update_photo;
pub mod update_report;

use codegen_runtime::ValidationError;
use partner_api::request_log::Reason;
use partner_api_store::transaction::Transaction;
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::caller::{Caller, Inspector};
use crate::context::Context;
use crate::db::writing::{self, LockedReport};
use crate::error::{self, ApiError};
use crate::generated::errors::ErrorCode;
use crate::generated::types::Report;
use crate::rules::moves::Status;

/// Runs `work` on a locked report in a transaction, and returns the report afterwards.
///
/// # Errors
/// `not_found` if the report does not exist at the inspector's branches; the error of `work`, after a rollback.
pub(super) async fn change(
    context: &Context,
    caller: &Caller,
    id: Uuid,
    work: impl AsyncFnOnce(&Transaction<'_>, &Inspector, &LockedReport) -> Result<(), ApiError>,
) -> Result<Report, ApiError> {
    let inspector = caller.inspector()?;
    let client = context.db(caller).await?;
    let transaction = client.transaction();
    let done = async {
        let report = writing::lock(&transaction, inspector, id).await?;
        let report = report.ok_or_else(error::no_such_report)?;
        work(&transaction, inspector, &report).await
    };
    let done = done.await;
    match done {
        Ok(()) => transaction.commit().await?,
        Err(_) => transaction.rollback().await?,
    }
    done?;
    drop(client);
    reread(context, caller, id).await
}

/// Reads a report after a change, with a new deadline. Without a response, the client would assume that the change has failed.
pub(super) async fn reread(context: &Context, caller: &Caller, id: Uuid) -> Result<Report, ApiError> {
    let client = context.db(&caller.with_new_deadline()).await?;
    get_report::read(context, &client, caller.inspector()?, id).await
}

/// Rejects a change that is based on an outdated version.
pub(super) fn check_version(report: &LockedReport, version: i64) -> Result<(), ApiError> {
    match report.version == version {
        true => Ok(()),
        false => Err(error::changed_meanwhile()),
    }
}

/// Rejects a change of a report that cannot be edited.
pub(super) fn check_editable(report: &LockedReport) -> Result<(), ApiError> {
    match report.status.is_editable() {
        true => Ok(()),
        false => Err(error::transition_rejected(format!(
            "the report is {} and can be edited only in DRAFT or REVISION_REQUESTED; {}",
            report.status.as_str(),
            allowed_transitions(report)
        ))),
    }
}

/// Describes the statuses to which a report can be moved.
pub(super) fn allowed_transitions(report: &LockedReport) -> String {
    let next = report.status.may_become(report.before_request);
    match next.is_empty() {
        true => "it cannot be moved to another status".to_owned(),
        false => {
            let next: Vec<&str> = next.into_iter().map(Status::as_str).collect();
            format!("it can be moved to {}", next.join(" or "))
        }
    }
}

/// Returns an error if a price in lira is out of range.
pub(super) fn price_error(name: &str, price: Option<Decimal>) -> Option<ValidationError> {
    range_error(name, price, Decimal::from(1_000_000_000))
}

/// Returns an error if a number is not between zero and `max`.
pub(super) fn range_error(name: &str, value: Option<Decimal>, max: Decimal) -> Option<ValidationError> {
    let value = value?;
    (value < Decimal::ZERO || value > max)
        .then(|| ValidationError::of_member(name, format!("must be between 0.00 and {max}")))
}

/// 503: a link to a photo could not be created.
pub(super) fn link_failed(error: &partner_api::storage::StorageError) -> ApiError {
    tracing::error!(%error, "failed to create a link to a photo");
    ApiError::unavailable(Reason::StorageFailed)
}

/// 400: the organization's templates have no such kind of photos.
pub(super) const NO_SUCH_KIND: &str = "is not a kind of the report's photos; see photo_kinds for the codes";

/// 404: the report has no such photo.
pub(super) fn no_such_photo() -> ApiError {
    ApiError::new(ErrorCode::NotFound, "the report has no such photo; read it again")
}
