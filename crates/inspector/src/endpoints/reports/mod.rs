//! Reports while they are written.

pub mod add_photo;
pub mod fill_form;
pub mod get_report;
pub mod list_open_reports;
pub mod move_report;
pub mod open_report;
pub mod order_photos;
pub mod update_report;

use codegen_runtime::Fault;
use partner_api::request_log::Reason;
use partner_api_store::transaction::Transaction;
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::caller::{Caller, Inspector};
use crate::context::Context;
use crate::db::writing::{self, Locked};
use crate::error::{self, ApiError};
use crate::generated::types::Report;
use crate::rules::moves::Status;

/// Does `work` on a locked report in a transaction, and answers the report as it is then.
///
/// # Errors
/// `not_found` for no report at a branch of the inspector's; what `work` says, and nothing is changed then.
pub(super) async fn change(
    context: &Context,
    caller: &Caller,
    id: Uuid,
    work: impl AsyncFnOnce(&Transaction<'_>, &Inspector, &Locked) -> Result<(), ApiError>,
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
    as_it_stands(context, caller, id).await
}

/// A report behind a change of it, read with time of its own: an answer that is missing would be taken for a change that is.
pub(super) async fn as_it_stands(context: &Context, caller: &Caller, id: Uuid) -> Result<Report, ApiError> {
    let client = context.db(&caller.anew()).await?;
    get_report::whole(context, &client, caller.inspector()?, id).await
}

/// Refuses a write by a version that is not the report's any more.
pub(super) fn of_version(report: &Locked, version: i64) -> Result<(), ApiError> {
    match report.version == version {
        true => Ok(()),
        false => Err(error::changed_meanwhile()),
    }
}

/// Refuses a write in a report that is not being written.
pub(super) fn being_written(report: &Locked) -> Result<(), ApiError> {
    match report.status.is_writing() {
        true => Ok(()),
        false => Err(error::transition_refused(format!(
            "the report is {}: it can be written in while it is DRAFT or REVISION_REQUESTED; {}",
            report.status.word(),
            possible(report)
        ))),
    }
}

/// What a report may become, in words.
pub(super) fn possible(report: &Locked) -> String {
    let next = report.status.may_become(report.before_request);
    match next.is_empty() {
        true => "it stays so".to_owned(),
        false => {
            let next: Vec<&str> = next.into_iter().map(Status::word).collect();
            format!("it may become {}", next.join(" or "))
        }
    }
}

/// What is wrong with a price in lira.
pub(super) fn price_fault(name: &str, price: Option<Decimal>) -> Option<Fault> {
    outside(name, price, Decimal::from(1_000_000_000))
}

/// What is wrong with a number that has bounds.
pub(super) fn outside(name: &str, value: Option<Decimal>, most: Decimal) -> Option<Fault> {
    let value = value?;
    (value < Decimal::ZERO || value > most).then(|| Fault::of_member(name, format!("must be between 0.00 and {most}")))
}

/// Why a link could not be made.
pub(super) fn no_link(error: &partner_api::storage::StorageError) -> ApiError {
    tracing::error!(%error, "a link to a photo could not be made");
    ApiError::unavailable(Reason::StorageFailed)
}
