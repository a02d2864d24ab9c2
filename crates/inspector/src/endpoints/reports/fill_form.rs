//! `PUT /inspector/v1/reports/{id}/forms/{templateCode}`: writes answers to a form (INS-7).

use super::{change, check_editable};
use crate::caller::Caller;
use crate::context::Context;
use crate::db::writing::{self, FillError, Filling};
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;
use crate::generated::responses::FillFormResponse;
use crate::generated::types::{AnswerToWrite, FillForm, FillFormPath};
use crate::rules::answers::NewAnswer;

/// Clears and writes the answers that are sent, and leaves the form's other answers unchanged.
///
/// # Errors
/// `invalid_request` with all invalid answers; `not_found` for an unknown template; `transition_rejected` if the report cannot be
/// edited.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: FillFormPath,
    body: FillForm,
) -> Result<FillFormResponse, ApiError> {
    let filling = Filling {
        template_code: path.template_code,
        general_note: body.general_note,
        clear: body.clear.unwrap_or_default(),
        answers: body.answers.into_iter().flatten().map(new_answer).collect(),
    };
    let report = change(context, caller, path.id, async |transaction, inspector, report| {
        check_editable(report)?;
        let filled = writing::fill(transaction, inspector, report, &filling);
        filled.await.map_err(fill_error)
    });
    Ok(FillFormResponse::Ok(report.await?))
}

fn new_answer(answer: AnswerToWrite) -> NewAnswer {
    NewAnswer {
        point_code: answer.point_code,
        status: answer.status_code,
        number: answer.numeric_value.map(|number| number.value),
        note: answer.note,
    }
}

pub(super) fn fill_error(error: FillError) -> ApiError {
    match error {
        FillError::NoTemplate => ApiError::new(
            ErrorCode::NotFound,
            "the report has no form with this code; see its forms",
        ),
        FillError::Invalid(errors) => ApiError::invalid_request(errors),
        FillError::Db(error) => error.into(),
    }
}
