//! The forms of a report: each one's template merged with the answers given.

use partner_api_domain::grants::Grants;
use partner_api_domain::personal::StoredText;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::inspections::{Columns, Visible, with_seen};
use super::{DbError, standby::Reader};
use crate::statement;

macro_rules! columns {
    () => {
        "f.id, t.code, t.name, t.score_category, f.general_note, p.code, p.name, p.unit, \
         a.status_code, a.status_label, a.severity, a.numeric_value, a.note"
    };
}

/// Forms (`f`) with their templates' points (`p`) and the answers (`a`): a row for each point of each form, and one with a
/// null point for a form whose template has none.
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
    /// A row for each point of each form, and one with a null form for a report without any.
    ///
    /// The answers come by themselves, a range for each form: the planner would look every point's up.
    LIST = concat!(
    with_seen!(),
    ", answers AS MATERIALIZED (SELECT a.* FROM seen JOIN inspection_forms f ON f.inspection_id = seen.id \
     JOIN inspection_form_answers a ON a.inspection_form_id = f.id) SELECT seen.id, seen.pii_mode, ",
    columns!(),
    " FROM seen LEFT JOIN (",
    points!("answers"),
    ") ON f.inspection_id = seen.id",
    in_order!()
);
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

/// A report that a partner sees and its forms, in their order.
///
/// # Errors
/// [`DbError`] when the query fails.
pub async fn list(client: &Reader, grants: &Grants, inspection: Uuid) -> Result<Option<(Visible, Vec<Form>)>, DbError> {
    let rows = client
        .query(LIST, &[&inspection, &grants.whole(), &grants.branches()])
        .await?;
    let mut seen = None;
    let mut reading = Reading::default();
    for row in &rows {
        let mut columns = Columns::of(row);
        seen = Some(Visible::take(&mut columns)?);
        reading.row(columns)?;
    }
    Ok(seen.map(|seen| (seen, reading.forms)))
}

/// Forms put together from rows in their order.
#[derive(Default)]
struct Reading {
    forms: Vec<Form>,
    /// The id of the last of them.
    current: Option<Uuid>,
}

impl Reading {
    fn row(&mut self, mut columns: Columns<'_>) -> Result<(), DbError> {
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

/// The point of a row; `None` when its form has none.
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
