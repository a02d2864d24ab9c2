//! The SQL that is specific to each kind: how its lines find their references and existing rows.

/// The SQL that is specific to a kind.
#[derive(Debug)]
pub(crate) struct Fragments {
    /// Finds `r1` and `r2`.
    pub(super) refers: &'static str,
    /// The ID of the referenced row.
    pub(super) reference: &'static str,
    /// Finds `k`, with `k.id` and `k.found`; none where it has no id.
    pub(super) known: &'static str,
    /// The columns of the key; `reference` is one of the plan's.
    pub(super) key: &'static [&'static str],
    /// The field to report if the key is not unique.
    pub(super) key_field: &'static str,
    /// Whether lines with equal keys are errors even if both have IDs.
    pub(super) is_strict: bool,
    /// Other unique constraints: the columns, a condition on the line, and the field to report.
    pub(super) unique: &'static [(&'static str, &'static str, &'static str)],
    /// Finds `u`.
    pub(super) also: &'static str,
    /// Conditions that must not hold, each with a field, `|`, and a word for [`expected`](super::report::expected).
    pub(super) problems: &'static [(&'static str, &'static str)],
    /// The owner of a row, where no field names it.
    pub(super) owner: Option<&'static str>,
    /// The order of new rows within a part, which follows the indexes for locality.
    pub(super) rows: &'static str,
    /// Statements for dependent rows, for new and for changed lines.
    pub(super) inserts: &'static [&'static str],
    pub(super) updates: &'static [&'static str],
    /// The source of an export.
    pub(super) from: &'static str,
    /// The order of an export, with names in byte order.
    pub(super) order: &'static str,
    /// The columns to filter by: the organization's ID and the creation time.
    pub(super) of_organization: &'static str,
    pub(super) of_time: Option<&'static str>,
}

/// A template's points as in a file; `{}` is its id.
pub(super) const POINTS: &str = "(SELECT coalesce(jsonb_agg(jsonb_build_object('code', q.code, 'name', q.name, 'unit', nullif(q.unit, '')) \
    ORDER BY q.position, q.code), '[]') FROM form_template_points q WHERE q.template_id = {})";
/// A form's answers as in a file; `{}` is its id.
pub(super) const ANSWERS: &str = "(SELECT coalesce(jsonb_agg(jsonb_build_object('point', q.code, 'status_code', a.status_code, \
    'status_label', a.status_label, 'severity', a.severity, 'numeric_value', a.numeric_value, 'note', a.note, \
    'written_by', coalesce(a.written_by, 'device:' || a.measurement_id), 'written_at', to_char(a.written_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')) \
    ORDER BY q.code COLLATE \"C\"), '[]') \
    FROM inspection_form_answers a JOIN form_template_points q ON q.id = a.point_id WHERE a.inspection_form_id = {})";
pub(super) const LINES: &str = "import_lines s JOIN import_plan p ON p.line = s.line \
    WHERE s.line BETWEEN $1 AND $2 AND p.line BETWEEN $1 AND $2";
const OF_REPORT: &str = "LEFT JOIN inspections r1 ON r1.id = s.inspection_id \
    LEFT JOIN inspections r2 ON r2.report_number = s.inspection";
/// A template's points; the plan has seen that none goes that a report answers.
const STORE_POINTS: &str = "INSERT INTO form_template_points (id, organization_id, template_id, code, name, unit, position) \
    SELECT s.point_ids[q.place], s.organization_id, p.id, q.point ->> 'code', q.point ->> 'name', q.point ->> 'unit', q.place \
    FROM {lines}, jsonb_array_elements(s.points) WITH ORDINALITY q (point, place) WHERE {which} \
    ON CONFLICT (template_id, code, organization_id) DO UPDATE SET name = excluded.name, unit = excluded.unit, \
      position = excluded.position";
const REMOVE_POINTS: &str = "DELETE FROM form_template_points q USING import_lines s, import_plan p \
    WHERE s.line BETWEEN $1 AND $2 AND p.line = s.line AND p.differs <> '{}' AND q.template_id = p.id \
    AND NOT EXISTS (SELECT FROM jsonb_array_elements(s.points) f WHERE f ->> 'code' = q.code)";
/// Of a device's values the measurement is found by the id behind `device:`; where it is not in this database, the text is kept.
const STORE_ANSWERS: &str = "INSERT INTO inspection_form_answers (inspection_form_id, point_id, organization_id, status_code, \
    status_label, severity, numeric_value, note, by_device, measurement_id, written_by, written_at) \
    SELECT p.id, q.id, s.organization_id, f.status_code, f.status_label, f.severity, f.numeric_value, f.note, \
      starts_with(f.written_by, 'device:'), m.id, \
      CASE WHEN m.id IS NULL THEN f.written_by END, f.written_at \
    FROM {lines}, jsonb_to_recordset(s.answers) AS f (point text, status_code text, status_label text, severity text, \
      numeric_value numeric, note text, written_by text, written_at timestamptz) \
    LEFT JOIN measurements m ON m.id = CASE WHEN starts_with(f.written_by, 'device:') \
      AND f.written_by ~ '^device:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN substr(f.written_by, 8)::uuid END, \
    form_template_points q \
    WHERE {which} AND q.template_id = s.template_id AND q.code = f.point \
    ON CONFLICT (inspection_form_id, point_id, organization_id) DO UPDATE SET status_code = excluded.status_code, \
      status_label = excluded.status_label, severity = excluded.severity, numeric_value = excluded.numeric_value, \
      note = excluded.note, by_device = excluded.by_device, measurement_id = excluded.measurement_id, \
      written_by = excluded.written_by, written_at = excluded.written_at";
/// Answers that are about to be changed or removed, so that who wrote them, and when, is kept.
const KEEP_ANSWERS: &str = "INSERT INTO inspection_form_answer_history (inspection_form_id, point_id, organization_id, status_code, \
    status_label, severity, numeric_value, note, by_device, measurement_id, written_by, written_at) \
    SELECT a.inspection_form_id, a.point_id, a.organization_id, a.status_code, a.status_label, a.severity, a.numeric_value, a.note, \
      a.by_device, a.measurement_id, a.written_by, a.written_at \
    FROM {lines}, inspection_form_answers a JOIN form_template_points q ON q.id = a.point_id \
    WHERE {which} AND a.inspection_form_id = p.id AND NOT EXISTS ( \
      SELECT FROM jsonb_to_recordset(s.answers) AS f (point text, status_code text, status_label text, severity text, \
        numeric_value numeric, note text, written_by text, written_at timestamptz) \
      WHERE f.point = q.code AND (f.status_code, f.status_label, f.severity, f.numeric_value, f.note, f.written_by, f.written_at) \
        IS NOT DISTINCT FROM (a.status_code, a.status_label, a.severity, a.numeric_value, a.note, \
          coalesce(a.written_by, 'device:' || a.measurement_id), a.written_at))";
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
    owner: None,
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
static RANGES: Fragments = Fragments {
    key: &["organization_id", "point_code"],
    key_field: "point_code",
    from: "plausible_ranges t JOIN organizations o ON o.id = t.organization_id",
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
    owner: Some("(SELECT i.organization_id FROM inspections i WHERE i.id = p.reference)"),
    from: "photos t JOIN inspections i ON i.id = t.inspection_id",
    order: "t.inspection_id, t.position, t.id",
    of_organization: "i.organization_id",
    of_time: Some("i.created_at"),
    ..NOTHING
};

/// Finds the SQL of a kind by its name.
pub(super) fn fragments(kind: &str) -> &'static Fragments {
    match kind {
        "organizations" => &ORGANIZATIONS,
        "branches" => &BRANCHES,
        "templates" => &TEMPLATES,
        "thresholds" => &THRESHOLDS,
        "ranges" => &RANGES,
        "vehicles" => &VEHICLES,
        "inspections" => &INSPECTIONS,
        "forms" => &FORMS,
        _ => &PHOTOS,
    }
}
