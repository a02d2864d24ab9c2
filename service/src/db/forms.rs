//! The forms of a report: each one's template merged with the answers given.

use rust_decimal::Decimal;
use uuid::Uuid;

use super::inspections::Visible;
use super::{DbError, connection::Connection};
use crate::rules::personal::StoredText;
use crate::statement;

statement! {
    /// A row for each point of each form, and one with a null point for a form whose template has none.
    LIST = "SELECT f.id AS form_id, t.code AS form_code, t.name AS form_name, t.score_category, \
    f.general_note, p.code AS point_code, p.name AS point_name, p.unit, \
    a.status_code, a.status_label, a.severity, a.numeric_value, a.note \
    FROM inspection_forms f JOIN form_templates t ON t.id = f.template_id \
    LEFT JOIN form_template_points p ON p.template_id = t.id \
    LEFT JOIN inspection_form_answers a ON a.inspection_form_id = f.id AND a.point_id = p.id \
    WHERE f.inspection_id = $1::uuid ORDER BY t.position, t.code, p.position, p.code";
}

/// A form of a report, its texts as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// The template's code.
    pub code: String,
    /// The template's name.
    pub name: String,
    /// The part of the score it counts for.
    pub score_category: String,
    /// The inspector's words on the whole form; empty without any.
    pub general_note: StoredText,
    /// All points of the template, in its order.
    pub points: Vec<Point>,
}

/// A point of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The point's code.
    pub code: String,
    /// The point's name.
    pub name: String,
    /// The unit of its values.
    pub unit: Option<String>,
    /// What was found; `None` when the point was not checked.
    pub answer: Option<Answer>,
}

/// What was found at a point, its note as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The status's code.
    pub status_code: String,
    /// The status in words.
    pub status_label: String,
    /// The severity's code.
    pub severity: String,
    /// The value measured, in the point's unit.
    pub numeric_value: Option<Decimal>,
    /// The inspector's words; empty without any.
    pub note: StoredText,
}

/// The forms of a report, in their order.
///
/// # Errors
/// [`DbError`] when the query fails.
pub async fn list(client: &Connection, inspection: &Visible) -> Result<Vec<Form>, DbError> {
    let rows = client.query(LIST, &[&inspection.id()]).await?;
    let mut forms: Vec<Form> = Vec::new();
    let mut current = None;
    for row in &rows {
        let form_id: Uuid = row.try_get("form_id")?;
        if current != Some(form_id) {
            current = Some(form_id);
            forms.push(Form {
                code: row.try_get("form_code")?,
                name: row.try_get("form_name")?,
                score_category: row.try_get("score_category")?,
                general_note: row.try_get("general_note")?,
                points: Vec::new(),
            });
        }
        let Some(code) = row.try_get("point_code")? else {
            continue;
        };
        let answer = match row.try_get("status_code")? {
            None => None,
            Some(status_code) => Some(Answer {
                status_code,
                status_label: row.try_get("status_label")?,
                severity: row.try_get("severity")?,
                numeric_value: row.try_get("numeric_value")?,
                note: row.try_get("note")?,
            }),
        };
        let point = Point {
            code,
            name: row.try_get("point_name")?,
            unit: row.try_get("unit")?,
            answer,
        };
        if let Some(form) = forms.last_mut() {
            form.points.push(point);
        }
    }
    Ok(forms)
}
