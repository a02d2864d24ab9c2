//! The SQL that is specific to each kind: how its lines are joined with their references and existing rows. [`sql`](super::sql)
//! explains the aliases.

/// The SQL that is specific to a kind.
#[derive(Debug)]
pub(crate) struct KindSql {
    /// Joins `by_id` and `by_name`.
    pub(super) join_references: &'static str,
    /// The ID of the referenced row.
    pub(super) reference: &'static str,
    /// Joins `by_key`, with the columns `id` and `found`; empty if the kind has no ID.
    pub(super) join_by_key: &'static str,
    /// The columns of the key; `reference` is a column of the plan.
    pub(super) key: &'static [&'static str],
    /// The field to report if the key is not unique.
    pub(super) key_field: &'static str,
    /// Whether lines with equal keys are errors even if both have IDs.
    pub(super) is_strict: bool,
    /// Other unique constraints: the columns, a condition on the line, and the field to report.
    pub(super) unique: &'static [(&'static str, &'static str, &'static str)],
    /// Joins `duplicate`.
    pub(super) join_duplicate: &'static str,
    /// Conditions that must not hold, each with a field, `|`, and a word for [`expected`](super::report::expected).
    pub(super) problems: &'static [(&'static str, &'static str)],
    /// The organization of a row, if no field names it.
    pub(super) organization_id: Option<&'static str>,
    /// The order of new rows within a part, which follows the indexes for locality.
    pub(super) insert_order: &'static str,
    /// Statements for dependent rows, for new and for changed lines.
    pub(super) inserts: &'static [&'static str],
    pub(super) updates: &'static [&'static str],
    /// The tables of an export.
    pub(super) from: &'static str,
    /// The order of an export, with names in byte order.
    pub(super) export_order: &'static str,
    /// The columns to filter by: the organization's ID and the creation time.
    pub(super) organization_filter: &'static str,
    pub(super) time_filter: Option<&'static str>,
}

/// The points of a template as in a file; `{}` is its ID.
pub(super) const POINTS: &str = "(SELECT coalesce(jsonb_agg(jsonb_build_object('code', point.code, 'name', point.name, 'unit', nullif(point.unit, ''), 'is_required', point.is_required, 'place', point.place) \
    ORDER BY point.position, point.code), '[]') FROM form_template_points point WHERE point.template_id = {})";
/// The answers of a form as in a file; `{}` is its ID.
pub(super) const ANSWERS: &str = "(SELECT coalesce(jsonb_agg(jsonb_build_object('point', point.code, 'status_code', answer.status_code, \
    'status_label', answer.status_label, 'severity', answer.severity, 'numeric_value', answer.numeric_value, 'note', answer.note, \
    'written_by', coalesce(answer.written_by, 'device:' || answer.measurement_id), 'written_at', to_char(answer.written_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')) \
    ORDER BY point.code COLLATE \"C\"), '[]') \
    FROM inspection_form_answers answer \
    JOIN form_template_points point ON point.id = answer.point_id AND point.organization_id = answer.organization_id \
    WHERE answer.inspection_form_id = {})";
pub(super) const LINES: &str = "import_lines input JOIN import_plan plan ON plan.line = input.line \
    WHERE input.line BETWEEN $1 AND $2 AND plan.line BETWEEN $1 AND $2";
const JOIN_REPORT: &str = "LEFT JOIN inspections by_id ON by_id.id = input.inspection_id \
    LEFT JOIN inspections by_name ON by_name.report_number = input.inspection";
/// Stores the points of a template. The plan has checked that no answered point is removed.
const STORE_POINTS: &str = "INSERT INTO form_template_points (id, organization_id, template_id, code, name, unit, position, is_required, place) \
    SELECT input.point_ids[item.place], input.organization_id, plan.id, item.point ->> 'code', item.point ->> 'name', item.point ->> 'unit', item.place, (item.point ->> 'is_required')::boolean, item.point ->> 'place' \
    FROM {lines}, jsonb_array_elements(input.points) WITH ORDINALITY item (point, place) WHERE {which} \
    ON CONFLICT (template_id, code, organization_id) DO UPDATE SET name = excluded.name, unit = excluded.unit, \
      position = excluded.position, is_required = excluded.is_required, place = excluded.place";
const REMOVE_POINTS: &str = "DELETE FROM form_template_points point USING import_lines input, import_plan plan \
    WHERE input.line BETWEEN $1 AND $2 AND plan.line = input.line AND plan.differs <> '{}' AND point.template_id = plan.id \
    AND NOT EXISTS (SELECT FROM jsonb_array_elements(input.points) item WHERE item ->> 'code' = point.code)";
/// Stores the answers of a form. The ID after `device:` selects the measurement; if it is not in this database, the text is stored
/// unchanged.
const STORE_ANSWERS: &str = "INSERT INTO inspection_form_answers (inspection_form_id, point_id, organization_id, status_code, \
    status_label, severity, numeric_value, note, by_device, measurement_id, written_by, written_at) \
    SELECT plan.id, point.id, input.organization_id, item.status_code, item.status_label, item.severity, item.numeric_value, item.note, \
      starts_with(item.written_by, 'device:'), measurement.id, \
      CASE WHEN measurement.id IS NULL THEN item.written_by END, item.written_at \
    FROM {lines}, jsonb_to_recordset(input.answers) AS item (point text, status_code text, status_label text, severity text, \
      numeric_value numeric, note text, written_by text, written_at timestamptz) \
    LEFT JOIN measurements measurement ON measurement.id = CASE WHEN starts_with(item.written_by, 'device:') \
      AND item.written_by ~ '^device:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN substr(item.written_by, 8)::uuid END, \
    form_template_points point \
    WHERE {which} AND point.template_id = input.template_id AND point.organization_id = input.organization_id \
      AND point.code = item.point \
    ON CONFLICT (inspection_form_id, point_id, organization_id) DO UPDATE SET status_code = excluded.status_code, \
      status_label = excluded.status_label, severity = excluded.severity, numeric_value = excluded.numeric_value, \
      note = excluded.note, by_device = excluded.by_device, measurement_id = excluded.measurement_id, \
      written_by = excluded.written_by, written_at = excluded.written_at";
/// Copies answers that will be changed or removed into the history, with author and time.
const KEEP_ANSWERS: &str = "INSERT INTO inspection_form_answer_history (inspection_form_id, point_id, organization_id, status_code, \
    status_label, severity, numeric_value, note, by_device, measurement_id, written_by, written_at) \
    SELECT answer.inspection_form_id, answer.point_id, answer.organization_id, answer.status_code, answer.status_label, answer.severity, answer.numeric_value, answer.note, \
      answer.by_device, answer.measurement_id, answer.written_by, answer.written_at \
    FROM {lines}, inspection_form_answers answer \
    JOIN form_template_points point ON point.id = answer.point_id AND point.organization_id = answer.organization_id \
    WHERE {which} AND answer.inspection_form_id = plan.id AND NOT EXISTS ( \
      SELECT FROM jsonb_to_recordset(input.answers) AS item (point text, status_code text, status_label text, severity text, \
        numeric_value numeric, note text, written_by text, written_at timestamptz) \
      WHERE item.point = point.code AND (item.status_code, item.status_label, item.severity, item.numeric_value, item.note, item.written_by, item.written_at) \
        IS NOT DISTINCT FROM (answer.status_code, answer.status_label, answer.severity, answer.numeric_value, answer.note, \
          coalesce(answer.written_by, 'device:' || answer.measurement_id), answer.written_at))";
const REMOVE_ANSWERS: &str = "DELETE FROM inspection_form_answers answer USING import_lines input, import_plan plan, form_template_points point \
    WHERE input.line BETWEEN $1 AND $2 AND plan.line = input.line AND plan.differs <> '{}' AND answer.inspection_form_id = plan.id \
    AND point.id = answer.point_id AND point.organization_id = answer.organization_id \
    AND NOT EXISTS (SELECT FROM jsonb_array_elements(input.answers) item WHERE item ->> 'point' = point.code)";

const DEFAULT: KindSql = KindSql {
    join_references: "",
    reference: "NULL::uuid",
    join_by_key: "",
    key: &[],
    key_field: "",
    is_strict: true,
    unique: &[],
    join_duplicate: "",
    problems: &[],
    organization_id: None,
    insert_order: "input.line",
    inserts: &[],
    updates: &[],
    from: "",
    export_order: "",
    organization_filter: "",
    time_filter: None,
};

static ORGANIZATIONS: KindSql = KindSql {
    join_by_key: "LEFT JOIN (SELECT id, slug, 1 AS found FROM organizations) by_key ON by_key.slug = input.slug",
    key: &["slug"],
    key_field: "slug",
    from: "organizations target",
    export_order: "target.slug COLLATE \"C\"",
    organization_filter: "target.id",
    ..DEFAULT
};
static BRANCHES: KindSql = KindSql {
    join_by_key: "LEFT JOIN (SELECT organization_id, code_folded, (array_agg(id))[1] AS id, count(*) AS found FROM branches \
            GROUP BY organization_id, code_folded) by_key \
            ON by_key.organization_id = input.organization_id AND by_key.code_folded = input.code_folded",
    key: &["organization_id", "code_folded"],
    key_field: "code",
    // The schema allows two branches with one code, so an export with them must be importable.
    is_strict: false,
    from: "branches target JOIN organizations organization ON organization.id = target.organization_id",
    export_order: "organization.slug COLLATE \"C\", target.code_folded COLLATE \"C\", target.id",
    organization_filter: "target.organization_id",
    ..DEFAULT
};
static TEMPLATES: KindSql = KindSql {
    join_by_key: "LEFT JOIN (SELECT id, organization_id, code, 1 AS found FROM form_templates) by_key \
            ON by_key.organization_id = input.organization_id AND by_key.code = input.code",
    key: &["organization_id", "code"],
    key_field: "code",
    unique: &[("organization_id", "is_test_line", "is_test_line")],
    join_duplicate: "LEFT JOIN form_templates duplicate ON duplicate.organization_id = input.organization_id AND duplicate.is_test_line \
           AND input.is_test_line",
    problems: &[
        ("duplicate.id <> {id}", "is_test_line|test_line"),
        (
            "EXISTS (SELECT 1 FROM form_template_points point \
               WHERE point.template_id = existing.id AND point.organization_id = existing.organization_id \
               AND NOT EXISTS (SELECT FROM jsonb_array_elements(input.points) item WHERE item ->> 'code' = point.code) \
               AND EXISTS (SELECT 1 FROM inspection_form_answers answer \
                 WHERE answer.point_id = point.id AND answer.organization_id = point.organization_id))",
            "points|answered",
        ),
    ],
    inserts: &[STORE_POINTS],
    updates: &[REMOVE_POINTS, STORE_POINTS],
    from: "form_templates target JOIN organizations organization ON organization.id = target.organization_id",
    export_order: "organization.slug COLLATE \"C\", target.position, target.code COLLATE \"C\"",
    organization_filter: "target.organization_id",
    ..DEFAULT
};
const OF_A_POINT: KindSql = KindSql {
    key: &["organization_id", "point_code"],
    key_field: "point_code",
    export_order: "organization.slug COLLATE \"C\", target.point_code COLLATE \"C\"",
    organization_filter: "target.organization_id",
    ..DEFAULT
};
static THRESHOLDS: KindSql = KindSql {
    from: "thresholds target JOIN organizations organization ON organization.id = target.organization_id",
    ..OF_A_POINT
};
static RANGES: KindSql = KindSql {
    from: "plausible_ranges target JOIN organizations organization ON organization.id = target.organization_id",
    ..OF_A_POINT
};
static VEHICLES: KindSql = KindSql {
    join_by_key: "LEFT JOIN (SELECT vin, (array_agg(id))[1] AS id, count(*) AS found FROM vehicles \
            WHERE vin IN (SELECT vin FROM import_lines WHERE NOT id_is_given) GROUP BY vin) by_key \
            ON by_key.vin = input.vin AND NOT input.id_is_given",
    key: &["vin"],
    key_field: "vin",
    is_strict: false,
    from: "vehicles target",
    export_order: "target.id",
    organization_filter: "EXISTS (SELECT FROM inspections inspection WHERE inspection.vehicle_id = target.id \
           AND inspection.organization_id = $1)",
    ..DEFAULT
};
static INSPECTIONS: KindSql = KindSql {
    join_references: "LEFT JOIN vehicles by_id ON by_id.id = input.vehicle_id \
             LEFT JOIN (SELECT vin, (array_agg(id))[1] AS id, count(*) AS found FROM vehicles \
               WHERE vin IN (SELECT vehicle FROM import_lines) GROUP BY vin) by_name ON by_name.vin = input.vehicle",
    reference: "coalesce(by_id.id, by_name.id)",
    join_by_key: "LEFT JOIN (SELECT id, report_number, 1 AS found FROM inspections) by_key ON by_key.report_number = input.report_number",
    key: &["report_number"],
    key_field: "report_number",
    unique: &[("public_slug", "public_slug IS NOT NULL", "public_slug")],
    join_duplicate: "LEFT JOIN inspections duplicate ON duplicate.public_slug = input.public_slug",
    problems: &[
        ("coalesce(by_id.id, by_name.id) IS NULL", "vehicle|missing"),
        ("by_name.found > 1", "vehicle|several"),
        ("duplicate.id <> {id}", "public_slug|taken"),
    ],
    insert_order: "input.organization_id, input.branch_id, input.created_at",
    from: "inspections target JOIN organizations organization ON organization.id = target.organization_id \
           JOIN branch_names branch ON branch.id = target.branch_id",
    export_order: "target.id",
    organization_filter: "target.organization_id",
    time_filter: Some("target.created_at"),
    ..DEFAULT
};
static FORMS: KindSql = KindSql {
    join_references: JOIN_REPORT,
    reference: "coalesce(by_id.id, by_name.id)",
    join_by_key: "LEFT JOIN (SELECT id, inspection_id, template_id, 1 AS found FROM inspection_forms) by_key \
            ON by_key.inspection_id = coalesce(by_id.id, by_name.id) AND by_key.template_id = input.template_id",
    key: &["reference", "template_id"],
    key_field: "template",
    problems: &[
        ("coalesce(by_id.id, by_name.id) IS NULL", "inspection|missing"),
        (
            "coalesce(by_id.organization_id, by_name.organization_id) <> input.organization_id",
            "inspection|elsewhere",
        ),
    ],
    inserts: &[STORE_ANSWERS],
    updates: &[KEEP_ANSWERS, REMOVE_ANSWERS, STORE_ANSWERS],
    from: "inspection_forms target \
           JOIN inspections inspection \
             ON inspection.id = target.inspection_id AND inspection.organization_id = target.organization_id \
           JOIN organizations organization ON organization.id = inspection.organization_id \
           JOIN form_templates template ON template.id = target.template_id AND template.organization_id = target.organization_id",
    export_order: "target.inspection_id, template.code COLLATE \"C\", target.id",
    organization_filter: "inspection.organization_id",
    time_filter: Some("inspection.created_at"),
    ..DEFAULT
};
static PHOTOS: KindSql = KindSql {
    join_references: JOIN_REPORT,
    reference: "coalesce(by_id.id, by_name.id)",
    join_by_key: "LEFT JOIN LATERAL (SELECT (array_agg(same.id))[1] AS id, count(*) AS found FROM photos same \
              WHERE NOT input.id_is_given AND same.inspection_id = coalesce(by_id.id, by_name.id) \
              AND same.position = input.position) by_key ON true",
    key: &["reference", "position"],
    key_field: "position",
    is_strict: false,
    problems: &[("coalesce(by_id.id, by_name.id) IS NULL", "inspection|missing")],
    organization_id: Some(
        "(SELECT inspection.organization_id FROM inspections inspection WHERE inspection.id = plan.reference)",
    ),
    from: "photos target \
           JOIN inspections inspection \
             ON inspection.id = target.inspection_id AND inspection.organization_id = target.organization_id",
    export_order: "target.inspection_id, target.position, target.id",
    organization_filter: "inspection.organization_id",
    time_filter: Some("inspection.created_at"),
    ..DEFAULT
};

/// Finds the SQL of a kind by its name.
pub(super) fn kind_sql(kind: &str) -> &'static KindSql {
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
