//! `PUT /inspector/v1/reports/{id}/forms/{templateCode}`: answers into a form.

use super::{being_written, change};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::writing::{self, Unwritten};
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::generated::responses::FillFormResponse;
use crate::generated::types::{AnswerToWrite, FillForm, FillFormPath};
use crate::rules::answers::ToWrite;

/// Writes the answers that are sent, and leaves the form's others.
///
/// # Errors
/// `invalid_request` names all answers that cannot be written; `not_found` for a template that the organisation does not have;
/// `transition_refused` unless the report is being written.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: FillFormPath,
    body: FillForm,
) -> Result<FillFormResponse, ApiError> {
    let answers: Vec<ToWrite> = body.answers.into_iter().map(to_write).collect();
    let (code, note) = (path.template_code, body.general_note);
    let report = change(context, caller, path.id, async |transaction, inspector, report| {
        being_written(report)?;
        let filled = writing::fill(transaction, inspector, report, &code, note.as_deref(), &answers);
        filled.await.map_err(unwritten)
    });
    Ok(FillFormResponse::Ok(report.await?))
}

fn to_write(answer: AnswerToWrite) -> ToWrite {
    ToWrite {
        point_code: answer.point_code,
        status: answer.status_code.map(Into::into),
        number: answer.numeric_value.map(|number| number.value),
        note: answer.note,
    }
}

fn unwritten(why: Unwritten) -> ApiError {
    match why {
        Unwritten::NoTemplate => ApiError::new(
            ErrorCode::NotFound,
            "the report has no form with this code; see its forms",
        ),
        Unwritten::Faults(faults) => ApiError::invalid_request(faults),
        Unwritten::Db(error) => error.into(),
    }
}
