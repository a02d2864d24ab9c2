//! The statements of an import and of an export, composed from the fields of a kind.
//!
//! Two temporary tables hold the lines of a file (`import_lines`) and the plan for each (`import_plan`). The statements use these
//! aliases:
//!
//! | alias | row |
//! |---|---|
//! | `input` | the line |
//! | `plan` | its plan |
//! | `existing` | the existing row |
//! | `by_key` | the existing row with the same key |
//! | `by_id`, `by_name` | the row that the line references by ID or by name |
//! | `duplicate` | another row with the same value in a unique column |
//! | `target` | a row of the table in an export |

use std::fmt::Write as _;

use tokio_postgres::types::Type as SqlType;

use super::kind_sql::{ANSWERS, LINES, POINTS};
use super::kinds::{Field, Kind, Presence};
use super::load::Part;
use super::value::Type;

/// A column of `import_lines`.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub name: &'static str,
    pub of: SqlType,
}

/// The columns of a field in the line, in the table, and in a file.
impl Field {
    /// Returns its columns in `import_lines`, in the order of the values from [`check`](super::check).
    fn lines(&self) -> Vec<Column> {
        let column = |name, of| Column { name, of };
        match self.of {
            Type::Id => vec![column("id", SqlType::UUID), column("id_is_given", SqlType::BOOL)],
            Type::Organization => vec![column("organization_id", SqlType::UUID)],
            Type::Branch => vec![column("branch_id", SqlType::UUID)],
            Type::Template => vec![column("template_id", SqlType::UUID)],
            Type::Vehicle => vec![column("vehicle_id", SqlType::UUID), column("vehicle", SqlType::TEXT)],
            Type::Inspection => vec![
                column("inspection_id", SqlType::UUID),
                column("inspection", SqlType::TEXT),
            ],
            Type::BranchCode => vec![column("code", SqlType::TEXT), column("code_folded", SqlType::TEXT)],
            Type::Points => vec![
                column("points", SqlType::JSONB),
                column("point_ids", SqlType::UUID_ARRAY),
            ],
            Type::Answers => vec![column("answers", SqlType::JSONB)],
            Type::Statuses | Type::PhotoKinds => vec![column(self.name, SqlType::JSONB)],
            Type::Integer { .. } => vec![column(self.name, SqlType::INT4)],
            Type::Size => vec![column(self.name, SqlType::INT8)],
            Type::Decimal { .. } | Type::Number => vec![column(self.name, SqlType::NUMERIC)],
            Type::Bool => vec![column(self.name, SqlType::BOOL)],
            Type::Time => vec![column(self.name, SqlType::TIMESTAMPTZ)],
            _ => vec![column(self.name, SqlType::TEXT)],
        }
    }

    /// Returns the column of the table that a time is stored in.
    fn column(&self) -> &'static str {
        match self.name {
            "since" => "valid_from",
            name => name,
        }
    }

    /// Returns the number of its columns in `import_lines`.
    pub(crate) fn width(&self) -> usize {
        self.lines().len()
    }

    /// Returns its columns in the table, each with its value.
    fn stored(&self) -> Vec<(&'static str, String)> {
        match self.of {
            Type::Id => vec![("id", "plan.id".to_owned())],
            Type::Points | Type::Answers => vec![],
            Type::Statuses | Type::PhotoKinds => {
                vec![(self.name, format!("coalesce(input.{0}, default_{0}())", self.name))]
            }
            Type::Vehicle => vec![("vehicle_id", "plan.reference".to_owned())],
            Type::Inspection => vec![("inspection_id", "plan.reference".to_owned())],
            Type::Time if matches!(self.is, Presence::Filled | Presence::New) => {
                vec![(self.column(), format!("coalesce(input.{}, now())", self.name))]
            }
            _ => {
                let columns = self.lines();
                columns
                    .iter()
                    .map(|column| (column.name, format!("input.{}", column.name)))
                    .collect()
            }
        }
    }

    /// Returns the condition that the existing row has a different value.
    fn differs(&self, reference: &str) -> Option<String> {
        let nested = |document: &str| {
            format!(
                "input.{} IS DISTINCT FROM {}",
                self.name,
                document.replace("{}", "existing.id")
            )
        };
        Some(match self.of {
            Type::Id => return None,
            _ if self.is == Presence::New => return None,
            Type::Vehicle => format!("{reference} IS DISTINCT FROM existing.vehicle_id"),
            Type::Inspection => format!("{reference} IS DISTINCT FROM existing.inspection_id"),
            Type::Points => nested(POINTS),
            Type::Answers => nested(ANSWERS),
            _ => {
                let column = self.lines().first().map_or(self.name, |column| column.name);
                let is_text = self.lines().first().is_some_and(|column| column.of == SqlType::TEXT);
                match self.is {
                    Presence::Filled => {
                        format!("input.{column} IS NOT NULL AND input.{column} IS DISTINCT FROM existing.{column}")
                    }
                    Presence::Optional if is_text => {
                        format!("input.{column} IS DISTINCT FROM nullif(existing.{column}, '')")
                    }
                    _ => format!("input.{column} IS DISTINCT FROM existing.{column}"),
                }
            }
        })
    }

    /// Returns the expression for its text in a file.
    fn shown(&self) -> String {
        match self.of {
            Type::Organization => "organization.slug".to_owned(),
            Type::Branch => "branch.name".to_owned(),
            Type::Template => "template.code".to_owned(),
            Type::Vehicle => "target.vehicle_id::text".to_owned(),
            Type::Inspection => "inspection.report_number".to_owned(),
            Type::Points => format!("{}::text", POINTS.replace("{}", "target.id")),
            Type::Answers => format!("{}::text", ANSWERS.replace("{}", "target.id")),
            Type::Time => {
                format!(
                    "to_char(target.{} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
                    self.column()
                )
            }
            _ => {
                let is_text = self.lines().first().is_some_and(|column| column.of == SqlType::TEXT);
                match self.is {
                    // As in `differs`, an empty text means a missing value.
                    Presence::Optional if is_text => format!("nullif(target.{}, '')", self.name),
                    _ => format!("target.{}::text", self.name),
                }
            }
        }
    }
}

impl Kind {
    /// Returns the columns of `import_lines` after `line`.
    pub(crate) fn columns(&self) -> Vec<Column> {
        self.fields.iter().flat_map(Field::lines).collect()
    }

    /// Creates `import_lines`.
    pub(crate) fn create_lines(&self) -> String {
        let mut sql =
            "DROP TABLE IF EXISTS import_lines, import_plan; CREATE TEMP TABLE import_lines (line bigint".to_owned();
        for column in self.columns() {
            let _ = write!(sql, ", {} {}", column.name, sql_name(&column.of));
        }
        sql + ")"
    }

    /// Copies lines into `import_lines`.
    pub(crate) fn copy_lines(&self) -> String {
        let names: Vec<_> = self.columns().iter().map(|column| column.name).collect();
        format!("COPY import_lines (line, {}) FROM STDIN BINARY", names.join(", "))
    }

    /// Creates `import_plan`: for each line its ID and references, whether the row exists, the fields in which it differs, and its
    /// errors.
    pub(crate) fn create_plan(&self) -> String {
        let sql = self.sql();
        let (is_existing, id, join_existing) = if self.has_id() {
            let join = format!(
                "LEFT JOIN {} existing ON existing.id = CASE WHEN input.id_is_given THEN input.id ELSE by_key.id END",
                self.table
            );
            (
                "existing.id IS NOT NULL",
                "CASE WHEN input.id_is_given THEN input.id ELSE coalesce(by_key.id, input.id) END",
                join,
            )
        } else {
            let same: Vec<_> = sql
                .key
                .iter()
                .map(|column| format!("existing.{column} = input.{column}"))
                .collect();
            let join = format!("LEFT JOIN {} existing ON {}", self.table, same.join(" AND "));
            ("existing.organization_id IS NOT NULL", "NULL::uuid", join)
        };
        let mut problems: Vec<_> = sql
            .problems
            .iter()
            .map(|(condition, word)| format!("CASE WHEN {} THEN '{word}' END", condition.replace("{id}", id)))
            .collect();
        if self.has_id() {
            let field = sql.key_field;
            problems.push(format!(
                "CASE WHEN NOT input.id_is_given AND by_key.found > 1 THEN '{field}|several' END"
            ));
            // Existing rows that share a key may keep it.
            problems.push(format!(
                "CASE WHEN input.id_is_given AND by_key.id <> input.id AND (existing.id IS NULL OR by_key.found = 1) THEN '{field}|taken' END"
            ));
        }
        let differs: Vec<_> = self
            .fields
            .iter()
            .filter_map(|field| {
                let condition = field.differs(sql.reference)?;
                Some(format!("CASE WHEN {condition} THEN '{}' END", field.name))
            })
            .collect();
        let (join_references, join_by_key, join_duplicate) = (sql.join_references, sql.join_by_key, sql.join_duplicate);
        let reference = sql.reference;
        format!(
            "CREATE TEMP TABLE import_plan AS SELECT input.line, {id} AS id, {reference} AS reference, {is_existing} AS is_existing, \
             array_remove(ARRAY[{}]::text[], NULL) AS problems, \
             CASE WHEN {is_existing} THEN array_remove(ARRAY[{}]::text[], NULL) ELSE '{{}}' END AS differs \
             FROM import_lines input {join_references} {join_by_key} {join_existing} {join_duplicate}",
            problems.join(", "),
            differs.join(", "),
        )
    }

    /// Finds lines that repeat an earlier one, with that line and the field.
    pub(crate) fn repeated(&self) -> Vec<(&'static str, String)> {
        let sql = self.sql();
        let lines =
            "(SELECT input.*, plan.reference FROM import_lines input JOIN import_plan plan ON plan.line = input.line)";
        let of = |source: &str, columns: &str, rows: &str, groups: &str| {
            format!(
                "SELECT input.line, repeated.first FROM {source} input JOIN (SELECT {columns}, min(line) AS first FROM {source} input WHERE {rows} \
                 GROUP BY {columns} HAVING count(*) > 1 AND {groups}) repeated USING ({columns}) \
                 WHERE input.line > repeated.first AND {rows} ORDER BY input.line LIMIT $1"
            )
        };
        let key = sql.key.join(", ");
        let source = if sql.key.contains(&"reference") {
            lines
        } else {
            "import_lines"
        };
        let groups = if sql.is_strict {
            "true"
        } else {
            "NOT bool_and(id_is_given)"
        };
        let mut all = vec![(sql.key_field, of(source, &key, "true", groups))];
        if self.has_id() {
            all.push(("id", of("import_plan", "id", "true", "true")));
        }
        for (columns, rows, field) in sql.unique {
            all.push((*field, of("import_lines", columns, rows, "true")));
        }
        all
    }

    /// Inserts the new rows of the lines $1 to $2; the first statement returns their number.
    pub(crate) fn inserts(&self) -> Vec<String> {
        let ((columns, values), order) = (self.stored(), self.sql().insert_order);
        let rows = format!(
            "INSERT INTO {} ({columns}) SELECT {values} FROM {LINES} AND NOT plan.is_existing ORDER BY {order}",
            self.table,
        );
        let more = self
            .sql()
            .inserts
            .iter()
            .map(|sql| for_lines(sql, "NOT plan.is_existing"));
        std::iter::once(rows).chain(more).collect()
    }

    /// Returns whether a new line needs only its row, without dependent rows.
    pub(crate) fn is_row_alone(&self) -> bool {
        self.sql().inserts.is_empty()
    }

    /// Returns the columns of the table and their values.
    fn stored(&self) -> (String, String) {
        let stored = self.fields.iter().flat_map(Field::stored);
        let (columns, values): (Vec<_>, Vec<_>) = stored.chain(self.organization_id()).unzip();
        (columns.join(", "), values.join(", "))
    }

    /// Returns the column of the organization with its value, if no field has it.
    fn organization_id(&self) -> Option<(&'static str, String)> {
        let value = self.sql().organization_id?;
        Some(("organization_id", value.to_owned()))
    }

    /// Copies out the new rows of a part for [`Kind::copy_into`], as text because the column types can differ in width.
    pub(crate) fn copy_new(&self, part: Part) -> String {
        let lines = LINES
            .replace("$1", &part.from.to_string())
            .replace("$2", &part.to.to_string());
        let ((_, values), order) = (self.stored(), self.sql().insert_order);
        format!("COPY (SELECT {values} FROM {lines} AND NOT plan.is_existing ORDER BY {order}) TO STDOUT")
    }

    /// Copies rows into the table.
    pub(crate) fn copy_into(&self) -> String {
        format!("COPY {} ({}) FROM STDIN", self.table, self.stored().0)
    }

    /// Updates the rows of the lines $1 to $2 that differ; the last statement returns their number.
    pub(crate) fn updates(&self) -> Vec<String> {
        let sql = self.sql();
        let sets: Vec<_> = self
            .fields
            .iter()
            .filter(|field| field.of != Type::Id && field.is != Presence::New)
            .flat_map(|field| field.stored().into_iter().map(move |stored| (field, stored)))
            .map(|(field, (column, value))| match field.is {
                Presence::Filled => format!("{column} = coalesce(input.{column}, existing.{column})"),
                _ => format!("{column} = {value}"),
            })
            .chain(
                self.organization_id()
                    .map(|(column, value)| format!("{column} = {value}")),
            )
            .collect();
        let same = if self.has_id() {
            "existing.id = plan.id".to_owned()
        } else {
            let same: Vec<_> = sql
                .key
                .iter()
                .map(|column| format!("existing.{column} = input.{column}"))
                .collect();
            same.join(" AND ")
        };
        let rows = format!(
            "UPDATE {} existing SET {} FROM {LINES} AND plan.differs <> '{{}}' AND {same}",
            self.table,
            sets.join(", ")
        );
        let more = sql.updates.iter().map(|sql| for_lines(sql, "plan.differs <> '{}'"));
        more.chain(std::iter::once(rows)).collect()
    }

    /// Reads the rows for an export, filtered by the organization $1 and the creation time $2.
    pub(crate) fn read(&self) -> String {
        let sql = self.sql();
        let shown: Vec<_> = self.fields.iter().map(Field::shown).collect();
        let names = match self.fields.iter().any(|field| field.of == Type::Branch) {
            true => {
                "WITH branch_names AS MATERIALIZED (SELECT id, CASE WHEN count(*) OVER same = 1 THEN code ELSE id::text END \
                     AS name FROM branches WINDOW same AS (PARTITION BY organization_id, code_folded)) "
            }
            false => "",
        };
        let organization = match sql.organization_filter {
            condition if condition.contains("$1") => condition.to_owned(),
            column => format!("{column} = $1"),
        };
        let time = sql
            .time_filter
            .map_or("$2::timestamptz IS NULL OR true".to_owned(), |column| {
                format!("$2::timestamptz IS NULL OR {column} >= $2")
            });
        format!(
            "{names}SELECT {} FROM {} WHERE ($1::uuid IS NULL OR {organization}) AND ({time}) ORDER BY {}",
            shown.join(", "),
            sql.from,
            sql.export_order
        )
    }
}

fn for_lines(sql: &str, which: &str) -> String {
    // Append the condition of the statement to the condition on the lines.
    let (lines, bounds) = LINES.split_once(" WHERE ").unwrap_or((LINES, "true"));
    sql.replace("{lines}", lines)
        .replace("{which}", &format!("{bounds} AND {which}"))
}

fn sql_name(of: &SqlType) -> &'static str {
    match *of {
        SqlType::UUID => "uuid",
        SqlType::UUID_ARRAY => "uuid[]",
        SqlType::BOOL => "boolean",
        SqlType::INT4 => "integer",
        SqlType::INT8 => "bigint",
        SqlType::NUMERIC => "numeric",
        SqlType::TIMESTAMPTZ => "timestamptz",
        SqlType::JSONB => "jsonb",
        _ => "text",
    }
}
