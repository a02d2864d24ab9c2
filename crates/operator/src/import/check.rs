//! Checks records and converts them to rows of values.

use std::borrow::Cow;
use std::collections::HashSet;

use partner_api_domain::branch_code;
use uuid::Uuid;

use super::cell::{Cell, read};
use super::kinds::{ANSWER_FIELDS, Field, Kind, POINT_FIELDS, Presence};
use super::known::Known;
use super::record::{Members, cells_of_members};
use super::report::{Bad, Report};
use super::value::{Type, Value, Wrong};
use super::whole::Line;

/// Checks the lines of a file.
pub(crate) struct Checker<'k> {
    kind: &'static Kind,
    known: &'k Known,
    /// The position of each field in a row.
    starts: Vec<usize>,
    /// The references of the line, for later fields.
    organization: Option<Uuid>,
    template: Option<Uuid>,
}

impl<'k> Checker<'k> {
    pub(crate) fn new(kind: &'static Kind, known: &'k Known) -> Self {
        let mut next = 0;
        let start = |field: &Field| {
            let start = next;
            next += field.width();
            start
        };
        Self {
            kind,
            known,
            starts: kind.fields.iter().map(start).collect(),
            organization: None,
            template: None,
        }
    }

    /// Returns the values of the line's columns, or `None` after reporting what is wrong.
    pub(crate) fn line(&mut self, line: u64, cells: &[Cell<'_>], report: &mut Report) -> Option<Vec<Value>> {
        let mut is_good = true;
        let mut row = Vec::with_capacity(self.kind.fields.len() + 4);
        (self.organization, self.template) = (None, None);
        for (field, cell) in self.kind.fields.iter().zip(cells) {
            let mut bad = |field: &str, wrong: Wrong| {
                is_good = false;
                report.add(Bad::of(line, field, wrong));
            };
            let value = match filled(field, *cell) {
                Ok(None) => Ok(Value::Null),
                Ok(Some(cell)) => self.value(field, cell, &mut bad),
                Err(wrong) => Err(wrong),
            };
            let value = value.unwrap_or_else(|wrong| {
                bad(field.name, wrong);
                Value::Null
            });
            columns(field, value, &mut row);
        }
        let whole = Line {
            kind: self.kind,
            starts: &self.starts,
            row: &row,
        };
        if is_good && let Some((field, wrong)) = (self.kind.whole)(&whole) {
            report.add(Bad::of(line, field, wrong));
            return None;
        }
        is_good.then_some(row)
    }

    /// Parses the value of a present field.
    fn value(&mut self, field: &Field, cell: Cell<'_>, bad: &mut dyn FnMut(&str, Wrong)) -> Result<Value, Wrong> {
        match field.of {
            Type::Organization => {
                let id = self.known.organization(&cell.text()?)?;
                self.organization = Some(id);
                Ok(Value::Uuid(id))
            }
            // Without a valid organization, its references cannot be checked.
            Type::Branch => match self.organization {
                Some(organization) => self.known.branch(organization, &cell.text()?).map(Value::Uuid),
                None => Ok(Value::Null),
            },
            Type::Template => match self.organization {
                Some(organization) => {
                    let id = self.known.template(organization, &cell.text()?)?;
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
                let rows = objects(field.name, cell, POINT_FIELDS, bad)?;
                Ok(list(&rows, POINT_FIELDS))
            }
            Type::Answers => {
                let mut rows = objects(field.name, cell, ANSWER_FIELDS, bad)?;
                for (index, row) in rows.iter().enumerate() {
                    if let (Some(Value::Text(code)), Some(template)) = (row.first(), self.template)
                        && let Err(wrong) = self.known.point(template, code)
                    {
                        bad(&format!("{}[{index}].point", field.name), wrong);
                    }
                }
                // Answers have no order of their own; sort them by code.
                rows.sort_by(|left, right| first_text(left).cmp(first_text(right)));
                Ok(list(&rows, ANSWER_FIELDS))
            }
            of => read(of, cell),
        }
    }
}

/// Returns the cell, or the default if it is missing.
fn filled<'a>(field: &Field, cell: Cell<'a>) -> Result<Option<Cell<'a>>, Wrong> {
    match (cell, field.is) {
        (Cell::Nothing, Presence::Required) => Err(Wrong {
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
    bad: &mut dyn FnMut(&str, Wrong),
) -> Result<Vec<Vec<Value>>, Wrong> {
    let text = match cell {
        Cell::Json(text) | Cell::Csv(text) => text,
        Cell::Nothing => "[]",
    };
    let expected = "a list of objects in JSON, like [{\"name\": \"value\"}]";
    let raw: Vec<&serde_json::value::RawValue> = serde_json::from_str(text).map_err(|_| Wrong::expected(expected))?;
    let mut rows = Vec::with_capacity(raw.len());
    let mut names = HashSet::new();
    let mut cells = Vec::new();
    for (index, raw) in raw.iter().enumerate() {
        let path = |name: &str| format!("{list}[{index}].{name}");
        let members = match Members::of(raw.get()) {
            Ok(members) => members,
            Err(wrong) => {
                bad(&format!("{list}[{index}]"), wrong);
                continue;
            }
        };
        cells_of_members(&members, fields, &mut cells, |name, wrong| bad(&path(name), wrong));
        let mut row = Vec::with_capacity(fields.len());
        for (field, cell) in fields.iter().zip(&cells) {
            let value = match filled(field, *cell) {
                Ok(Some(cell)) => read(field.of, cell),
                Ok(None) => Ok(Value::Null),
                Err(wrong) => Err(wrong),
            };
            row.push(value.unwrap_or_else(|wrong| {
                bad(&path(field.name), wrong);
                Value::Null
            }));
        }
        if let (Some(Value::Text(name)), Some(field)) = (row.first(), fields.first())
            && !names.insert(name.clone())
        {
            bad(
                &path(field.name),
                Wrong::expected("a value that is in the list only once"),
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
