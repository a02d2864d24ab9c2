//! The statements of an import and of an export, composed from the fields of a kind.
//!
//! Two temporary tables hold the lines of a file (`import_lines`) and what to do with each (`import_plan`). In all statements `s` is the line, `p` its plan, `t` the table, `e` the existing
//! row, `k` the row with the same key, `r1` and `r2` the rows referenced by ID and by name, and `u` the row that has the same
//! value in another unique column.

use std::fmt::Write as _;

use tokio_postgres::types::Type as SqlType;

use super::fragments::{ANSWERS, LINES, POINTS};
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
            Type::Integer { .. } => vec![column(self.name, SqlType::INT4)],
            Type::Size => vec![column(self.name, SqlType::INT8)],
            Type::Decimal { .. } | Type::Number => vec![column(self.name, SqlType::NUMERIC)],
            Type::Bool => vec![column(self.name, SqlType::BOOL)],
            Type::Time => vec![column(self.name, SqlType::TIMESTAMPTZ)],
            _ => vec![column(self.name, SqlType::TEXT)],
        }
    }

    /// The column of the table that a time is stored in.
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
            Type::Id => vec![("id", "p.id".to_owned())],
            Type::Points | Type::Answers => vec![],
            Type::Vehicle => vec![("vehicle_id", "p.reference".to_owned())],
            Type::Inspection => vec![("inspection_id", "p.reference".to_owned())],
            Type::Time if matches!(self.is, Presence::Filled | Presence::New) => {
                vec![(self.column(), format!("coalesce(s.{}, now())", self.name))]
            }
            _ => {
                let columns = self.lines();
                columns
                    .iter()
                    .map(|column| (column.name, format!("s.{}", column.name)))
                    .collect()
            }
        }
    }

    /// The condition that the existing row has a different value.
    fn differs(&self, reference: &str) -> Option<String> {
        let nested = |document: &str| format!("s.{} IS DISTINCT FROM {}", self.name, document.replace("{}", "e.id"));
        Some(match self.of {
            Type::Id => return None,
            _ if self.is == Presence::New => return None,
            Type::Vehicle => format!("{reference} IS DISTINCT FROM e.vehicle_id"),
            Type::Inspection => format!("{reference} IS DISTINCT FROM e.inspection_id"),
            Type::Points => nested(POINTS),
            Type::Answers => nested(ANSWERS),
            _ => {
                let column = self.lines().first().map_or(self.name, |column| column.name);
                let is_text = self.lines().first().is_some_and(|column| column.of == SqlType::TEXT);
                match self.is {
                    Presence::Filled => format!("s.{column} IS NOT NULL AND s.{column} IS DISTINCT FROM e.{column}"),
                    Presence::Optional if is_text => format!("s.{column} IS DISTINCT FROM nullif(e.{column}, '')"),
                    _ => format!("s.{column} IS DISTINCT FROM e.{column}"),
                }
            }
        })
    }

    /// The expression for its text in a file.
    fn shown(&self) -> String {
        match self.of {
            Type::Organization => "o.slug".to_owned(),
            Type::Branch => "b.name".to_owned(),
            Type::Template => "ft.code".to_owned(),
            Type::Vehicle => "t.vehicle_id::text".to_owned(),
            Type::Inspection => "i.report_number".to_owned(),
            Type::Points => format!("{}::text", POINTS.replace("{}", "t.id")),
            Type::Answers => format!("{}::text", ANSWERS.replace("{}", "t.id")),
            Type::Time => {
                format!(
                    "to_char(t.{} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
                    self.column()
                )
            }
            _ => {
                let is_text = self.lines().first().is_some_and(|column| column.of == SqlType::TEXT);
                match self.is {
                    // As in `differs`: the empty text is nothing.
                    Presence::Optional if is_text => format!("nullif(t.{}, '')", self.name),
                    _ => format!("t.{}::text", self.name),
                }
            }
        }
    }
}

impl Kind {
    /// The columns of `import_lines` behind `line`.
    pub(crate) fn columns(&self) -> Vec<Column> {
        self.fields.iter().flat_map(Field::lines).collect()
    }

    /// Creates `import_lines`.
    pub(crate) fn make_lines(&self) -> String {
        let mut sql =
            "DROP TABLE IF EXISTS import_lines, import_plan; CREATE TEMP TABLE import_lines (line bigint".to_owned();
        for column in self.columns() {
            let _ = write!(sql, ", {} {}", column.name, sql_name(&column.of));
        }
        sql + ")"
    }

    /// Copies lines into it.
    pub(crate) fn copy_lines(&self) -> String {
        let names: Vec<_> = self.columns().iter().map(|column| column.name).collect();
        format!("COPY import_lines (line, {}) FROM STDIN BINARY", names.join(", "))
    }

    /// Creates `import_plan`: for each line its ID and references, whether the row exists, in which fields it differs, and what
    /// is wrong with it.
    pub(crate) fn make_plan(&self) -> String {
        let sql = self.sql();
        let (is_there, id, stands) = if self.has_id() {
            let joined = format!(
                "LEFT JOIN {} e ON e.id = CASE WHEN s.id_is_given THEN s.id ELSE k.id END",
                self.table
            );
            (
                "e.id IS NOT NULL",
                "CASE WHEN s.id_is_given THEN s.id ELSE coalesce(k.id, s.id) END",
                joined,
            )
        } else {
            let same: Vec<_> = sql
                .key
                .iter()
                .map(|column| format!("e.{column} = s.{column}"))
                .collect();
            let joined = format!("LEFT JOIN {} e ON {}", self.table, same.join(" AND "));
            ("e.organization_id IS NOT NULL", "NULL::uuid", joined)
        };
        let mut problems: Vec<_> = sql
            .problems
            .iter()
            .map(|(condition, word)| format!("CASE WHEN {} THEN '{word}' END", condition.replace("{id}", id)))
            .collect();
        if self.has_id() {
            let field = sql.key_field;
            problems.push(format!(
                "CASE WHEN NOT s.id_is_given AND k.found > 1 THEN '{field}|several' END"
            ));
            // Of several that had one key before, each stays as it is.
            problems.push(format!(
                "CASE WHEN s.id_is_given AND k.id <> s.id AND (e.id IS NULL OR k.found = 1) THEN '{field}|taken' END"
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
        let [also, refers, known, reference] = [sql.also, sql.refers, sql.known, sql.reference];
        format!(
            "CREATE TEMP TABLE import_plan AS SELECT s.line, {id} AS id, {reference} AS reference, {is_there} AS is_there, \
             array_remove(ARRAY[{}]::text[], NULL) AS problems, \
             CASE WHEN {is_there} THEN array_remove(ARRAY[{}]::text[], NULL) ELSE '{{}}' END AS differs \
             FROM import_lines s {refers} {known} {stands} {also}",
            problems.join(", "),
            differs.join(", "),
        )
    }

    /// Finds lines that repeat an earlier one, with that line and the field.
    pub(crate) fn repeated(&self) -> Vec<(&'static str, String)> {
        let sql = self.sql();
        let lines = "(SELECT s.*, p.reference FROM import_lines s JOIN import_plan p ON p.line = s.line)";
        let of = |source: &str, columns: &str, rows: &str, groups: &str| {
            format!(
                "SELECT s.line, d.first FROM {source} s JOIN (SELECT {columns}, min(line) AS first FROM {source} s WHERE {rows} \
                 GROUP BY {columns} HAVING count(*) > 1 AND {groups}) d USING ({columns}) \
                 WHERE s.line > d.first AND {rows} ORDER BY s.line LIMIT $1"
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
        let ((columns, values), order) = (self.stored(), self.sql().rows);
        let rows = format!(
            "INSERT INTO {} ({columns}) SELECT {values} FROM {LINES} AND NOT p.is_there ORDER BY {order}",
            self.table,
        );
        let more = self.sql().inserts.iter().map(|sql| of_lines(sql, "NOT p.is_there"));
        std::iter::once(rows).chain(more).collect()
    }

    /// Whether a new line needs only its row, without dependent rows.
    pub(crate) fn is_row_alone(&self) -> bool {
        self.sql().inserts.is_empty()
    }

    /// The columns of the table and their values.
    fn stored(&self) -> (String, String) {
        let stored = self.fields.iter().flat_map(Field::stored);
        let (columns, values): (Vec<_>, Vec<_>) = stored.chain(self.owner()).unzip();
        (columns.join(", "), values.join(", "))
    }

    /// The column of the owner with its value, where no field has it.
    fn owner(&self) -> Option<(&'static str, String)> {
        let value = self.sql().owner?;
        Some(("organization_id", value.to_owned()))
    }

    /// Copies out the new rows of a part for [`Kind::copy_into`], as text because the column types can differ in width.
    pub(crate) fn copy_new(&self, part: Part) -> String {
        let lines = LINES
            .replace("$1", &part.from.to_string())
            .replace("$2", &part.to.to_string());
        let ((_, values), order) = (self.stored(), self.sql().rows);
        format!("COPY (SELECT {values} FROM {lines} AND NOT p.is_there ORDER BY {order}) TO STDOUT")
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
                Presence::Filled => format!("{column} = coalesce(s.{column}, e.{column})"),
                _ => format!("{column} = {value}"),
            })
            .chain(self.owner().map(|(column, value)| format!("{column} = {value}")))
            .collect();
        let same = if self.has_id() {
            "e.id = p.id".to_owned()
        } else {
            let same: Vec<_> = sql
                .key
                .iter()
                .map(|column| format!("e.{column} = s.{column}"))
                .collect();
            same.join(" AND ")
        };
        let rows = format!(
            "UPDATE {} e SET {} FROM {LINES} AND p.differs <> '{{}}' AND {same}",
            self.table,
            sets.join(", ")
        );
        let more = sql.updates.iter().map(|sql| of_lines(sql, "p.differs <> '{}'"));
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
        let mine = match sql.of_organization {
            condition if condition.contains("$1") => condition.to_owned(),
            column => format!("{column} = $1"),
        };
        let time = sql
            .of_time
            .map_or("$2::timestamptz IS NULL OR true".to_owned(), |column| {
                format!("$2::timestamptz IS NULL OR {column} >= $2")
            });
        format!(
            "{names}SELECT {} FROM {} WHERE ($1::uuid IS NULL OR {mine}) AND ({time}) ORDER BY {}",
            shown.join(", "),
            sql.from,
            sql.order
        )
    }
}

fn of_lines(sql: &str, which: &str) -> String {
    // The condition of the lines stands with that of the statement.
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
