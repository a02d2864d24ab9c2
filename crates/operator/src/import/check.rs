//! Checks records and converts them to rows of values.

use std::borrow::Cow;
use std::collections::HashSet;

use partner_api_domain::branch_code;
use uuid::Uuid;

use super::cell::{Cell, read};
use super::cross_field::Line;
use super::kinds::{ANSWER_FIELDS, Field, Kind, PHOTO_KIND_FIELDS, POINT_FIELDS, Presence, STATUS_FIELDS};
use super::record::{Members, cells_of_members};
use super::references::References;
use super::report::{LineError, Report};
use super::value::{CellError, Type, Value};

/// Checks the lines of a file.
pub(crate) struct Checker<'k> {
    kind: &'static Kind,
    references: &'k References,
    /// The position of each field in a row.
    starts: Vec<usize>,
    /// The organization and template of the line, for later fields.
    organization: Option<Uuid>,
    template: Option<Uuid>,
}

impl<'k> Checker<'k> {
    pub(crate) fn new(kind: &'static Kind, references: &'k References) -> Self {
        let mut next = 0;
        let start = |field: &Field| {
            let start = next;
            next += field.width();
            start
        };
        Self {
            kind,
            references,
            starts: kind.fields.iter().map(start).collect(),
            organization: None,
            template: None,
        }
    }

    /// Returns the values of the line's columns, or `None` after reporting errors.
    pub(crate) fn line(&mut self, line: u64, cells: &[Cell<'_>], report: &mut Report) -> Option<Vec<Value>> {
        let mut is_good = true;
        let mut row = Vec::with_capacity(self.kind.fields.len() + 4);
        (self.organization, self.template) = (None, None);
        for (field, cell) in self.kind.fields.iter().zip(cells) {
            let mut reject = |field: &str, error: CellError| {
                is_good = false;
                report.add(LineError::of(line, field, error));
            };
            let value = match filled(field, *cell) {
                Ok(None) => Ok(Value::Null),
                Ok(Some(cell)) => self.value(field, cell, &mut reject),
                Err(error) => Err(error),
            };
            let value = value.unwrap_or_else(|error| {
                reject(field.name, error);
                Value::Null
            });
            columns(field, value, &mut row);
        }
        let whole_line = Line {
            kind: self.kind,
            starts: &self.starts,
            row: &row,
        };
        if is_good && let Some((field, error)) = (self.kind.check)(&whole_line) {
            report.add(LineError::of(line, field, error));
            return None;
        }
        is_good.then_some(row)
    }

    /// Parses the value of a present field.
    fn value(
        &mut self,
        field: &Field,
        cell: Cell<'_>,
        reject: &mut dyn FnMut(&str, CellError),
    ) -> Result<Value, CellError> {
        match field.of {
            Type::Organization => {
                let id = self.references.organization(&cell.text()?)?;
                self.organization = Some(id);
                Ok(Value::Uuid(id))
            }
            // Without a valid organization, its references cannot be checked.
            Type::Branch => match self.organization {
                Some(organization) => self.references.branch(organization, &cell.text()?).map(Value::Uuid),
                None => Ok(Value::Null),
            },
            Type::Template => match self.organization {
                Some(organization) => {
                    let id = self.references.template(organization, &cell.text()?)?;
                    self.template = Some(id);
                    Ok(Value::Uuid(id))
                }
                None => Ok(Value::Null),
            },
            Type::Vehicle | Type::Inspection => {
                let text = cell.text()?;
                match Uuid::try_parse(&text) {
                    Ok(id) => Ok(Value::Uuid(id)),
                    Err(_) => read(Type::Line { personal: true }, Cell::Csv(&text)),
                }
            }
            Type::Points => {
                let rows = objects(field.name, cell, POINT_FIELDS, reject)?;
                Ok(list(&rows, POINT_FIELDS))
            }
            Type::Statuses => {
                let rows = objects(field.name, cell, STATUS_FIELDS, reject)?;
                Ok(list(&rows, STATUS_FIELDS))
            }
            Type::PhotoKinds => {
                let rows = objects(field.name, cell, PHOTO_KIND_FIELDS, reject)?;
                Ok(list(&rows, PHOTO_KIND_FIELDS))
            }
            Type::Answers => {
                let mut rows = objects(field.name, cell, ANSWER_FIELDS, reject)?;
                for (index, row) in rows.iter().enumerate() {
                    if let (Some(Value::Text(code)), Some(template)) = (row.first(), self.template)
                        && let Err(error) = self.references.point(template, code)
                    {
                        reject(&format!("{}[{index}].point", field.name), error);
                    }
                }
                // Answers have no inherent order; sort them by code.
                rows.sort_by(|left, right| first_text(left).cmp(first_text(right)));
                Ok(list(&rows, ANSWER_FIELDS))
            }
            of => read(of, cell),
        }
    }
}

/// Returns the cell, or the default if it is missing.
fn filled<'a>(field: &Field, cell: Cell<'a>) -> Result<Option<Cell<'a>>, CellError> {
    match (cell, field.is) {
        (Cell::Nothing, Presence::Required) => Err(CellError {
            found: Some("nothing".to_owned()),
            expected: Cow::Owned(format!("a value ({})", field.about)),
        }),
        (Cell::Nothing, Presence::Default(text)) => Ok(Some(Cell::Csv(text))),
        (Cell::Nothing, Presence::Optional | Presence::Filled | Presence::New) => Ok(None),
        (cell, _) => Ok(Some(cell)),
    }
}

/// Returns the column values of a field.
fn columns(field: &Field, value: Value, row: &mut Vec<Value>) {
    match (field.of, value) {
        (Type::Id, Value::Null) => row.extend([Value::Uuid(Uuid::now_v7()), Value::Bool(false)]),
        (Type::Id, id) => row.extend([id, Value::Bool(true)]),
        (Type::Vehicle | Type::Inspection, Value::Text(name)) => row.extend([Value::Null, Value::Text(name)]),
        (Type::Vehicle | Type::Inspection, id) => row.extend([id, Value::Null]),
        (Type::BranchCode, Value::Text(code)) => {
            let folded = branch_code::folded(&code);
            row.extend([Value::Text(code), Value::Text(folded)]);
        }
        (Type::BranchCode, other) => row.extend([other, Value::Null]),
        (Type::Points, points) => {
            let count = if let Value::List(_, count) = points { count } else { 0 };
            row.extend([points, Value::Uuids((0..count).map(|_| Uuid::now_v7()).collect())]);
        }
        (_, value) => row.push(value),
    }
}

/// Parses the objects of a list. The first field is the name, which must be unique.
fn objects(
    list: &str,
    cell: Cell<'_>,
    fields: &[Field],
    reject: &mut dyn FnMut(&str, CellError),
) -> Result<Vec<Vec<Value>>, CellError> {
    let text = match cell {
        Cell::Json(text) | Cell::Csv(text) => text,
        Cell::Nothing => "[]",
    };
    let expected = "a list of objects in JSON, like [{\"name\": \"value\"}]";
    let raw: Vec<&serde_json::value::RawValue> =
        serde_json::from_str(text).map_err(|_| CellError::expected(expected))?;
    let mut rows = Vec::with_capacity(raw.len());
    let mut names = HashSet::new();
    let mut cells = Vec::new();
    for (index, raw) in raw.iter().enumerate() {
        let path = |name: &str| format!("{list}[{index}].{name}");
        let members = match Members::of(raw.get()) {
            Ok(members) => members,
            Err(error) => {
                reject(&format!("{list}[{index}]"), error);
                continue;
            }
        };
        cells_of_members(&members, fields, &mut cells, |name, error| reject(&path(name), error));
        let mut row = Vec::with_capacity(fields.len());
        for (field, cell) in fields.iter().zip(&cells) {
            let value = match filled(field, *cell) {
                Ok(Some(cell)) => read(field.of, cell),
                Ok(None) => Ok(Value::Null),
                Err(error) => Err(error),
            };
            row.push(value.unwrap_or_else(|error| {
                reject(&path(field.name), error);
                Value::Null
            }));
        }
        if let (Some(Value::Text(name)), Some(field)) = (row.first(), fields.first())
            && !names.insert(name.clone())
        {
            reject(
                &path(field.name),
                CellError::expected("a value that is in the list only once"),
            );
        }
        rows.push(row);
    }
    Ok(rows)
}

fn first_text(row: &[Value]) -> &str {
    match row.first() {
        Some(Value::Text(text)) => text,
        _ => "",
    }
}

/// Returns the list as a JSON document.
fn list(rows: &[Vec<Value>], fields: &[Field]) -> Value {
    let objects: Vec<_> = rows
        .iter()
        .map(|row| {
            let members = fields
                .iter()
                .zip(row)
                .map(|(field, value)| format!("\"{}\":{}", field.name, value.json()));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        })
        .collect();
    Value::List(format!("[{}]", objects.join(",")), rows.len())
}
