//! The forms of a report: their templates merged with the answers.

use partner_api_domain::grants::Grants;
use partner_api_domain::personal::StoredText;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::inspections::{Columns, Visible, with_visible};
use super::{DbError, standby::Reader};
use crate::statement;

macro_rules! columns {
    () => {
        "f.id, t.code, t.name, t.score_category, f.general_note, p.code, p.name, p.unit, \
         a.status_code, a.status_label, a.severity, a.numeric_value, a.note"
    };
}

/// Joins forms (`f`) with the points of their templates (`p`) and the answers (`a`): a row for each point of each form, or
/// one row with a null point if the template has no points.
macro_rules! points {
    ($answers:literal) => {
        concat!(
            "inspection_forms f JOIN form_templates t ON t.id = f.template_id \
             LEFT JOIN form_template_points p ON p.template_id = t.id LEFT JOIN ",
            $answers,
            " a ON a.inspection_form_id = f.id AND a.point_id = p.id"
        )
    };
}

macro_rules! in_order {
    () => {
        " ORDER BY t.position, t.code, p.position, p.code"
    };
}

statement! {
    /// A row for each point of each form, or one row with a null form if the report has no forms.
    ///
    /// The answers are read in a separate CTE with one range scan per form. Otherwise the planner looks up the answer of
    /// each point individually.
    LIST = concat!(
    with_visible!(),
    ", answers AS MATERIALIZED (SELECT a.* FROM visible JOIN inspection_forms f ON f.inspection_id = visible.id \
     JOIN inspection_form_answers a ON a.inspection_form_id = f.id) SELECT visible.id, visible.pii_mode, ",
    columns!(),
    " FROM visible LEFT JOIN (",
    points!("answers"),
    ") ON f.inspection_id = visible.id",
    in_order!()
);
}

/// A form of a report, with its texts as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// The template's code.
    pub code: String,
    /// The template's name.
    pub name: String,
    /// The score category that the form counts towards.
    pub score_category: String,
    /// The inspector's note on the whole form; may be empty.
    pub general_note: StoredText,
    /// All points of the template, in the order of the template.
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
    /// The answer; `None` if the point was not checked.
    pub answer: Option<Answer>,
}

/// The answer to a point, with its note as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The status's code.
    pub status_code: String,
    /// The status for display.
    pub status_label: String,
    /// The severity's code.
    pub severity: String,
    /// The measured value, in the point's unit.
    pub numeric_value: Option<Decimal>,
    /// The inspector's note; may be empty.
    pub note: StoredText,
}

/// Returns a report that the partner may see, and its forms in the order of their templates.
///
/// # Errors
/// If the query fails.
pub async fn list(client: &Reader, grants: &Grants, inspection: Uuid) -> Result<Option<(Visible, Vec<Form>)>, DbError> {
    let rows = client
        .query(LIST, &[&inspection, &grants.whole(), &grants.branches()])
        .await?;
    let mut visible = None;
    let mut builder = FormsBuilder::default();
    for row in &rows {
        let mut columns = Columns::of(row);
        visible = Some(Visible::take(&mut columns)?);
        builder.add_row(columns)?;
    }
    Ok(visible.map(|visible| (visible, builder.forms)))
}

/// Builds forms from consecutive rows.
#[derive(Default)]
struct FormsBuilder {
    forms: Vec<Form>,
    /// The ID of the last form.
    current: Option<Uuid>,
}

impl FormsBuilder {
    fn add_row(&mut self, mut columns: Columns<'_>) -> Result<(), DbError> {
        let Some(id) = columns.take()? else {
            return Ok(());
        };
        if self.current == Some(id) {
            columns.skip(4);
        } else {
            self.current = Some(id);
            self.forms.push(Form {
                code: columns.take()?,
                name: columns.take()?,
                score_category: columns.take()?,
                general_note: columns.text()?,
                points: Vec::new(),
            });
        }
        if let (Some(form), Some(point)) = (self.forms.last_mut(), point(columns)?) {
            form.points.push(point);
        }
        Ok(())
    }
}

/// Reads the point of a row; `None` if its form has no points.
fn point(mut columns: Columns<'_>) -> Result<Option<Point>, DbError> {
    let Some(code) = columns.take()? else {
        return Ok(None);
    };
    let (name, unit) = (columns.take()?, columns.take()?);
    let answer = match columns.take()? {
        None => None,
        Some(status_code) => Some(Answer {
            status_code,
            status_label: columns.take()?,
            severity: columns.take()?,
            numeric_value: columns.take()?,
            note: columns.text()?,
        }),
    };
    Ok(Some(Point {
        code,
        name,
        unit,
        answer,
    }))
}
