//! `GET /api/v1/partner/inspections/{id}/forms`: a report's forms with the points of their templates and the answers (REP-6).

use partner_api_domain::id;
use partner_api_domain::privacy::PiiMode;
use partner_api_store::forms;

use super::{not_found, tag};
use crate::caller::Caller;
use crate::context::Context;
use crate::error::ApiError;
use crate::generated::responses::GetInspectionFormsResponse;
use crate::generated::types::{Form, FormPoint, GetInspectionFormsHeaders, GetInspectionFormsPath, InspectionForms};

/// The status of a point without an answer, and its label.
const NOT_CHECKED: (&str, &str) = ("NOT_CHECKED", "Kontrol edilmedi");
/// The severity of a point without an answer.
const NO_SEVERITY: &str = "NONE";

/// Returns a report's forms in the report's order, with all points of their templates, or 304 if the caller has the current version.
/// The array is empty if there are no forms.
///
/// # Errors
/// `not_found` as for the report itself; `service_unavailable` if the database is unavailable.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: GetInspectionFormsPath,
    headers: GetInspectionFormsHeaders,
) -> Result<GetInspectionFormsResponse, ApiError> {
    let id = id::parse(&path.id).ok_or_else(not_found)?;
    let client = context.reader(caller).await?;
    let (inspection, found) = forms::list(&client, caller.grants(), id).await?.ok_or_else(not_found)?;
    let forms = found
        .into_iter()
        .map(|found| form(found, inspection.pii_mode()))
        .collect();
    let body = InspectionForms {
        inspection_id: inspection.id(),
        forms,
    };
    let tag = tag(&body)?;
    Ok(match tag.matches(headers.if_none_match.as_deref()) {
        true => GetInspectionFormsResponse::Status304 {
            e_tag: tag.into_header(),
        },
        false => GetInspectionFormsResponse::Ok {
            body,
            e_tag: tag.into_header(),
        },
    })
}

fn form(form: forms::Form, mode: PiiMode) -> Form {
    Form {
        code: form.code,
        name: form.name,
        score_category: form.score_category,
        general_note: mode.text(form.general_note),
        points: form.points.into_iter().map(|found| point(found, mode)).collect(),
    }
}

fn point(point: forms::Point, mode: PiiMode) -> FormPoint {
    let forms::Point {
        code,
        name,
        unit,
        answer,
    } = point;
    match answer {
        None => FormPoint {
            code,
            name,
            unit,
            status_code: NOT_CHECKED.0.to_owned(),
            status_label: NOT_CHECKED.1.to_owned(),
            severity: NO_SEVERITY.to_owned(),
            numeric_value: None,
            note: String::new(),
        },
        Some(answer) => FormPoint {
            code,
            name,
            unit,
            status_code: answer.status_code,
            status_label: answer.status_label,
            severity: answer.severity,
            numeric_value: answer.numeric_value.map(Into::into),
            note: mode.text(answer.note),
        },
    }
}

#[cfg(test)]
mod tests {
    use rust_decimal::Decimal;

    use super::*;

    fn answered(note: &str) -> forms::Point {
        forms::Point {
            code: "BRAKE_FRONT_LEFT".to_owned(),
            name: "Ön sol fren kuvveti".to_owned(),
            unit: Some("kN".to_owned()),
            answer: Some(forms::Answer {
                status_code: "GOOD".to_owned(),
                status_label: "İyi".to_owned(),
                severity: "NONE".to_owned(),
                numeric_value: Some(Decimal::new(2850, 3)),
                note: note.to_owned().into(),
            }),
        }
    }

    #[test]
    fn notes_are_scrubbed_unless_the_mode_is_full() {
        let written = forms::Form {
            code: "TEST_LINE".to_owned(),
            name: "Test hattı".to_owned(),
            score_category: "MECHANICAL".to_owned(),
            general_note: "Arayan 0532 123 45 67".to_owned().into(),
            points: vec![answered("TC 12345678901")],
        };
        for mode in [PiiMode::None, PiiMode::Masked] {
            let shown = form(written.clone(), mode);
            assert_eq!(shown.general_note, "Arayan [removed]");
            assert_eq!(shown.points[0].note, "TC [removed]");
        }
        let shown = form(written, PiiMode::Full);
        assert_eq!(shown.general_note, "Arayan 0532 123 45 67");
        assert_eq!(shown.points[0].note, "TC 12345678901");
    }

    #[test]
    fn a_value_keeps_the_decimals_it_was_measured_with() {
        let shown = serde_json::to_string(&point(answered(""), PiiMode::None)).unwrap();
        assert!(shown.contains("\"numeric_value\":2.850"), "{shown}");
    }

    #[test]
    fn a_point_without_an_answer_is_not_checked() {
        let shown = point(
            forms::Point {
                answer: None,
                ..answered("")
            },
            PiiMode::None,
        );
        assert_eq!(
            (shown.status_code.as_str(), shown.severity.as_str()),
            ("NOT_CHECKED", "NONE")
        );
        assert_eq!((shown.numeric_value, shown.note.as_str()), (None, ""));
    }
}
