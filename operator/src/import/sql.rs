//! The statements of an import and of an export, composed from the fields of a kind.
//!
//! The lines of a file stand in `import_lines`, and what is to be done with each in `import_plan`: temporary tables, which go
//! with the session, however it ends. In all statements `s` is the line, `p` its plan, `t` the table, `e` what stands there
//! already, `k` what has the same key, `r1` and `r2` what the line refers to by id and by name, `u` what has another value
//! that must be unique.

use std::fmt::Write as _;

use tokio_postgres::types::Type as SqlType;

use super::kinds::{Field, Kind, Presence};
use super::value::Type;

/// What is peculiar to a kind.
#[derive(Debug)]
pub(crate) struct Fragments {
    /// Finds `r1` and `r2`.
    refers: &'static str,
    /// The id of what the line refers to.
    reference: &'static str,
    /// Finds `k`, with `k.id` and `k.found`; none where it has no id.
    known: &'static str,
    /// The columns of the key; `reference` is one of the plan's.
    key: &'static [&'static str],
    /// The field that is told where the key is wrong.
    pub(crate) key_field: &'static str,
    /// Whether two lines of one key are wrong even where both have ids.
    is_strict: bool,
    /// What else is unique: columns of the line, a condition on the line, and the field.
    unique: &'static [(&'static str, &'static str, &'static str)],
    /// Finds `u`.
    also: &'static str,
    /// Conditions that must not hold, and what is said then: a field, `|`, and a word of [`told`](super::report).
    problems: &'static [(&'static str, &'static str)],
    /// The order of new rows within a part: that of the indexes, whose pages are then met one after the other.
    rows: &'static str,
    /// What belongs to a line, beside its row: for new ones, and for changed ones.
    inserts: &'static [&'static str],
    updates: &'static [&'static str],
    /// What an export reads from.
    from: &'static str,
    /// Its order, in which names stand as their bytes do.
    order: &'static str,
    /// The columns by which it is narrowed down: an organisation's id, and the moment of opening.
    of_organization: &'static str,
    of_time: Option<&'static str>,
}

/// A template's points as in a file; `{}` is its id.
const POINTS: &str = "(SELECT coalesce(jsonb_agg(jsonb_build_object('code', q.code, 'name', q.name, 'unit', nullif(q.unit, '')) \
    ORDER BY q.position, q.code), '[]') FROM form_template_points q WHERE q.template_id = {})";
/// A form's answers as in a file; `{}` is its id.
const ANSWERS: &str = "(SELECT coalesce(jsonb_agg(jsonb_build_object('point', q.code, 'status_code', a.status_code, \
    'status_label', a.status_label, 'severity', a.severity, 'numeric_value', a.numeric_value, 'note', a.note, \
    'written_by', a.written_by, 'written_at', to_char(a.written_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')) \
    ORDER BY q.code COLLATE \"C\"), '[]') \
    FROM inspection_form_answers a JOIN form_template_points q ON q.id = a.point_id WHERE a.inspection_form_id = {})";
const LINES: &str = "import_lines s JOIN import_plan p ON p.line = s.line \
    WHERE s.line BETWEEN $1 AND $2 AND p.line BETWEEN $1 AND $2";
const OF_REPORT: &str = "LEFT JOIN inspections r1 ON r1.id = s.inspection_id \
    LEFT JOIN inspections r2 ON r2.report_number = s.inspection";
/// A template's points; the plan has seen that none goes that a report answers.
const STORE_POINTS: &str = "INSERT INTO form_template_points (id, template_id, code, name, unit, position) \
    SELECT s.point_ids[q.place], p.id, q.point ->> 'code', q.point ->> 'name', q.point ->> 'unit', q.place \
    FROM {lines}, jsonb_array_elements(s.points) WITH ORDINALITY q (point, place) WHERE {which} \
    ON CONFLICT (template_id, code) DO UPDATE SET name = excluded.name, unit = excluded.unit, position = excluded.position";
const REMOVE_POINTS: &str = "DELETE FROM form_template_points q USING import_lines s, import_plan p \
    WHERE s.line BETWEEN $1 AND $2 AND p.line = s.line AND p.differs <> '{}' AND q.template_id = p.id \
    AND NOT EXISTS (SELECT FROM jsonb_array_elements(s.points) f WHERE f ->> 'code' = q.code)";
const STORE_ANSWERS: &str = "INSERT INTO inspection_form_answers (inspection_form_id, point_id, status_code, status_label, \
    severity, numeric_value, note, written_by, written_at) \
    SELECT p.id, q.id, f.status_code, f.status_label, f.severity, f.numeric_value, f.note, f.written_by, f.written_at \
    FROM {lines}, jsonb_to_recordset(s.answers) AS f (point text, status_code text, status_label text, severity text, \
      numeric_value numeric, note text, written_by text, written_at timestamptz), form_template_points q \
    WHERE {which} AND q.template_id = s.template_id AND q.code = f.point \
    ON CONFLICT (inspection_form_id, point_id) DO UPDATE SET status_code = excluded.status_code, \
      status_label = excluded.status_label, severity = excluded.severity, numeric_value = excluded.numeric_value, \
      note = excluded.note, written_by = excluded.written_by, written_at = excluded.written_at";
/// Answers that are about to be changed or removed, so that who wrote them, and when, is kept.
const KEEP_ANSWERS: &str = "INSERT INTO inspection_form_answer_history (inspection_form_id, point_id, status_code, status_label, \
    severity, numeric_value, note, written_by, written_at) \
    SELECT a.inspection_form_id, a.point_id, a.status_code, a.status_label, a.severity, a.numeric_value, a.note, a.written_by, \
      a.written_at \
    FROM {lines}, inspection_form_answers a JOIN form_template_points q ON q.id = a.point_id \
    WHERE {which} AND a.inspection_form_id = p.id AND NOT EXISTS ( \
      SELECT FROM jsonb_to_recordset(s.answers) AS f (point text, status_code text, status_label text, severity text, \
        numeric_value numeric, note text, written_by text, written_at timestamptz) \
      WHERE f.point = q.code AND (f.status_code, f.status_label, f.severity, f.numeric_value, f.note, f.written_by, f.written_at) \
        IS NOT DISTINCT FROM (a.status_code, a.status_label, a.severity, a.numeric_value, a.note, a.written_by, a.written_at))";
const REMOVE_ANSWERS: &str = "DELETE FROM inspection_form_answers a USING import_lines s, import_plan p, form_template_points q \
    WHERE s.line BETWEEN $1 AND $2 AND p.line = s.line AND p.differs <> '{}' AND a.inspection_form_id = p.id \
    AND q.id = a.point_id AND NOT EXISTS (SELECT FROM jsonb_array_elements(s.answers) f WHERE f ->> 'point' = q.code)";

const NOTHING: Fragments = Fragments {
    refers: "",
    reference: "NULL::uuid",
    known: "",
    key: &[],
    key_field: "",
    is_strict: true,
    unique: &[],
    also: "",
    problems: &[],
    rows: "s.line",
    inserts: &[],
    updates: &[],
    from: "",
    order: "",
    of_organization: "",
    of_time: None,
};

static ORGANIZATIONS: Fragments = Fragments {
    known: "LEFT JOIN (SELECT id, slug, 1 AS found FROM organizations) k ON k.slug = s.slug",
    key: &["slug"],
    key_field: "slug",
    from: "organizations t",
    order: "t.slug COLLATE \"C\"",
    of_organization: "t.id",
    ..NOTHING
};
static BRANCHES: Fragments = Fragments {
    known: "LEFT JOIN (SELECT organization_id, code_folded, (array_agg(id))[1] AS id, count(*) AS found FROM branches \
            GROUP BY organization_id, code_folded) k \
            ON k.organization_id = s.organization_id AND k.code_folded = s.code_folded",
    key: &["organization_id", "code_folded"],
    key_field: "code",
    // The schema lets two have one code, and so they must come back from an export.
    is_strict: false,
    from: "branches t JOIN organizations o ON o.id = t.organization_id",
    order: "o.slug COLLATE \"C\", t.code_folded COLLATE \"C\", t.id",
    of_organization: "t.organization_id",
    ..NOTHING
};
static TEMPLATES: Fragments = Fragments {
    known: "LEFT JOIN (SELECT id, organization_id, code, 1 AS found FROM form_templates) k \
            ON k.organization_id = s.organization_id AND k.code = s.code",
    key: &["organization_id", "code"],
    key_field: "code",
    unique: &[("organization_id", "is_test_line", "is_test_line")],
    also: "LEFT JOIN form_templates u ON u.organization_id = s.organization_id AND u.is_test_line AND s.is_test_line",
    problems: &[
        ("u.id <> {id}", "is_test_line|test_line"),
        (
            "EXISTS (SELECT FROM form_template_points q WHERE q.template_id = e.id \
               AND NOT EXISTS (SELECT FROM jsonb_array_elements(s.points) f WHERE f ->> 'code' = q.code) \
               AND EXISTS (SELECT FROM inspection_form_answers a WHERE a.point_id = q.id))",
            "points|answered",
        ),
    ],
    inserts: &[STORE_POINTS],
    updates: &[REMOVE_POINTS, STORE_POINTS],
    from: "form_templates t JOIN organizations o ON o.id = t.organization_id",
    order: "o.slug COLLATE \"C\", t.position, t.code COLLATE \"C\"",
    of_organization: "t.organization_id",
    ..NOTHING
};
static THRESHOLDS: Fragments = Fragments {
    key: &["organization_id", "point_code"],
    key_field: "point_code",
    from: "thresholds t JOIN organizations o ON o.id = t.organization_id",
    order: "o.slug COLLATE \"C\", t.point_code COLLATE \"C\"",
    of_organization: "t.organization_id",
    ..NOTHING
};
static VEHICLES: Fragments = Fragments {
    known: "LEFT JOIN (SELECT vin, (array_agg(id))[1] AS id, count(*) AS found FROM vehicles \
            WHERE vin IN (SELECT vin FROM import_lines WHERE NOT id_is_given) GROUP BY vin) k \
            ON k.vin = s.vin AND NOT s.id_is_given",
    key: &["vin"],
    key_field: "vin",
    is_strict: false,
    from: "vehicles t",
    order: "t.id",
    of_organization: "EXISTS (SELECT FROM inspections i WHERE i.vehicle_id = t.id AND i.organization_id = $1)",
    ..NOTHING
};
static INSPECTIONS: Fragments = Fragments {
    refers: "LEFT JOIN vehicles r1 ON r1.id = s.vehicle_id \
             LEFT JOIN (SELECT vin, (array_agg(id))[1] AS id, count(*) AS found FROM vehicles \
               WHERE vin IN (SELECT vehicle FROM import_lines) GROUP BY vin) r2 ON r2.vin = s.vehicle",
    reference: "coalesce(r1.id, r2.id)",
    known: "LEFT JOIN (SELECT id, report_number, 1 AS found FROM inspections) k ON k.report_number = s.report_number",
    key: &["report_number"],
    key_field: "report_number",
    unique: &[("public_slug", "public_slug IS NOT NULL", "public_slug")],
    also: "LEFT JOIN inspections u ON u.public_slug = s.public_slug",
    problems: &[
        ("coalesce(r1.id, r2.id) IS NULL", "vehicle|missing"),
        ("r2.found > 1", "vehicle|several"),
        ("u.id <> {id}", "public_slug|taken"),
    ],
    rows: "s.organization_id, s.branch_id, s.created_at",
    from: "inspections t JOIN organizations o ON o.id = t.organization_id JOIN branch_names b ON b.id = t.branch_id",
    order: "t.id",
    of_organization: "t.organization_id",
    of_time: Some("t.created_at"),
    ..NOTHING
};
static FORMS: Fragments = Fragments {
    refers: OF_REPORT,
    reference: "coalesce(r1.id, r2.id)",
    known: "LEFT JOIN (SELECT id, inspection_id, template_id, 1 AS found FROM inspection_forms) k \
            ON k.inspection_id = coalesce(r1.id, r2.id) AND k.template_id = s.template_id",
    key: &["reference", "template_id"],
    key_field: "template",
    problems: &[
        ("coalesce(r1.id, r2.id) IS NULL", "inspection|missing"),
        (
            "coalesce(r1.organization_id, r2.organization_id) <> s.organization_id",
            "inspection|elsewhere",
        ),
    ],
    inserts: &[STORE_ANSWERS],
    updates: &[KEEP_ANSWERS, REMOVE_ANSWERS, STORE_ANSWERS],
    from: "inspection_forms t JOIN inspections i ON i.id = t.inspection_id JOIN organizations o ON o.id = i.organization_id \
           JOIN form_templates ft ON ft.id = t.template_id",
    order: "t.inspection_id, ft.code COLLATE \"C\", t.id",
    of_organization: "i.organization_id",
    of_time: Some("i.created_at"),
    ..NOTHING
};
static PHOTOS: Fragments = Fragments {
    refers: OF_REPORT,
    reference: "coalesce(r1.id, r2.id)",
    known: "LEFT JOIN LATERAL (SELECT (array_agg(same.id))[1] AS id, count(*) AS found FROM photos same \
              WHERE NOT s.id_is_given AND same.inspection_id = coalesce(r1.id, r2.id) AND same.position = s.position) k ON true",
    key: &["reference", "position"],
    key_field: "position",
    is_strict: false,
    problems: &[("coalesce(r1.id, r2.id) IS NULL", "inspection|missing")],
    from: "photos t JOIN inspections i ON i.id = t.inspection_id",
    order: "t.inspection_id, t.position, t.id",
    of_organization: "i.organization_id",
    of_time: Some("i.created_at"),
    ..NOTHING
};

pub(crate) fn fragments(kind: &str) -> &'static Fragments {
    match kind {
        "organizations" => &ORGANIZATIONS,
        "branches" => &BRANCHES,
        "templates" => &TEMPLATES,
        "thresholds" => &THRESHOLDS,
        "vehicles" => &VEHICLES,
        "inspections" => &INSPECTIONS,
        "forms" => &FORMS,
        _ => &PHOTOS,
    }
}

/// A column of `import_lines`.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub name: &'static str,
    pub of: SqlType,
}

/// How a field stands in the line, in the table, and in a file.
impl Field {
    /// Its columns in `import_lines`, in the order in which [`check`](super::check) gives their values.
    fn lines(&self) -> Vec<Column> {
        let column = |name, of| Column { name, of };
        match self.of {
            Type::Id => vec![column("id", SqlType::UUID), column("id_is_given", SqlType::BOOL)],
            Type::Organization { .. } => vec![column("organization_id", SqlType::UUID)],
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

    /// How many columns it has in `import_lines`.
    pub(crate) fn width(&self) -> usize {
        self.lines().len()
    }

    /// Its columns in the table, each with the value that it gets.
    fn stored(&self) -> Vec<(&'static str, String)> {
        match self.of {
            Type::Id => vec![("id", "p.id".to_owned())],
            Type::Organization { stored: false } | Type::Points | Type::Answers => vec![],
            Type::Vehicle => vec![("vehicle_id", "p.reference".to_owned())],
            Type::Inspection => vec![("inspection_id", "p.reference".to_owned())],
            Type::Time if matches!(self.is, Presence::Filled | Presence::New) => {
                vec![(self.name, format!("coalesce(s.{}, now())", self.name))]
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

    /// Whether what stands has another value.
    fn differs(&self, reference: &str) -> Option<String> {
        let nested = |document: &str| format!("s.{} IS DISTINCT FROM {}", self.name, document.replace("{}", "e.id"));
        Some(match self.of {
            Type::Id | Type::Organization { stored: false } => return None,
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

    /// Its text in a file.
    fn shown(&self) -> String {
        match self.of {
            Type::Organization { .. } => "o.slug".to_owned(),
            Type::Branch => "b.name".to_owned(),
            Type::Template => "ft.code".to_owned(),
            Type::Vehicle => "t.vehicle_id::text".to_owned(),
            Type::Inspection => "i.report_number".to_owned(),
            Type::Points => format!("{}::text", POINTS.replace("{}", "t.id")),
            Type::Answers => format!("{}::text", ANSWERS.replace("{}", "t.id")),
            Type::Time => {
                format!(
                    "to_char(t.{} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
                    self.name
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

    /// Makes `import_lines`.
    pub(crate) fn make_lines(&self) -> String {
        let mut sql =
            "DROP TABLE IF EXISTS import_lines, import_plan; CREATE TEMP TABLE import_lines (line bigint".to_owned();
        for column in self.columns() {
            let _ = write!(sql, ", {} {}", column.name, sql_name(&column.of));
        }
        sql + ")"
    }

    /// Brings lines into it.
    pub(crate) fn copy_lines(&self) -> String {
        let names: Vec<_> = self.columns().iter().map(|column| column.name).collect();
        format!("COPY import_lines (line, {}) FROM STDIN BINARY", names.join(", "))
    }

    /// Makes `import_plan`: the id of each line's thing, what it refers to, whether it stands there already, in which fields
    /// it differs, and what is wrong with it.
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

    /// Lines whose thing an earlier line has, each with that line and the field by which it is the same.
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

    /// Brings the new ones of the lines $1 to $2 into the table; the first statement says how many.
    pub(crate) fn inserts(&self) -> Vec<String> {
        let stored: Vec<_> = self.fields.iter().flat_map(Field::stored).collect();
        let columns: Vec<_> = stored.iter().map(|(column, _)| *column).collect();
        let values: Vec<_> = stored.iter().map(|(_, value)| value.as_str()).collect();
        let rows = format!(
            "INSERT INTO {} ({}) SELECT {} FROM {LINES} AND NOT p.is_there ORDER BY {}",
            self.table,
            columns.join(", "),
            values.join(", "),
            self.sql().rows
        );
        let more = self.sql().inserts.iter().map(|sql| of_lines(sql, "NOT p.is_there"));
        std::iter::once(rows).chain(more).collect()
    }

    /// Changes those of the lines $1 to $2 that differ; the last statement says how many.
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

    /// Reads all of it, in the order of a file, or what belongs to the organisation $1, or was opened from $2 on.
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
