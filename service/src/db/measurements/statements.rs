//! The SQL of measurements. All of it runs inside the caller's transaction, at READ COMMITTED.
//!
//! A package with 50 points takes no more statements than one with a single point: points travel as arrays.

/// The active branches in scope with a folded code; two rows are enough to know that the code is ambiguous.
///
/// `$1` the folded code, `$2` organisations granted whole, `$3` branches granted alone.
pub const FIND_BRANCH: &str = "\
SELECT b.id, b.organization_id
FROM branches b
WHERE b.code_folded = $1 AND b.is_active AND (b.organization_id = ANY($2::uuid[]) OR b.id = ANY($3::uuid[]))
LIMIT 2";

/// Records a package with its points as waiting; no row when the partner's `external_id` is taken.
///
/// Where another transaction is recording the same `external_id`, this waits for its end: the unique index decides.
pub const RECORD: &str = "\
WITH recorded AS (
    INSERT INTO measurements (id, partner_id, key_id, organization_id, branch_id, plate, external_id, device_serial,
                              measured_at, raw, raw_sha256, status)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, coalesce($9, now()), $10, $11, 'PENDING')
    ON CONFLICT (partner_id, external_id) WHERE external_id IS NOT NULL DO NOTHING
    RETURNING id
), points AS (
    INSERT INTO measurement_points (measurement_id, code, value, value_text, position)
    SELECT recorded.id, point.code, point.value, point.value_text, point.position
    FROM recorded, unnest($12::text[], $13::numeric[], $14::text[]) WITH ORDINALITY
         AS point (code, value, value_text, position)
)
SELECT id FROM recorded";

/// What an `external_id` was recorded as, and whether the raw package was the same (`$3`: SHA-256 of the one at hand).
pub const REPLAY: &str = "\
SELECT m.id, m.status, m.plate, m.inspection_id, m.raw_sha256 = $3 AS same_raw, skipped.codes, skipped.outcomes
FROM measurements m,
     LATERAL (SELECT coalesce(array_agg(p.code ORDER BY p.position), '{}') AS codes,
                     coalesce(array_agg(p.outcome ORDER BY p.position), '{}') AS outcomes
              FROM measurement_points p
              WHERE p.measurement_id = m.id AND p.outcome <> 'applied') skipped
WHERE m.partner_id = $1 AND m.external_id = $2";

/// Locks the open report of a plate at a branch: in its writing phase, created within the last 24 hours by the database's
/// clock, of several the newest.
///
/// Whoever publishes a report changes its row, and so waits for this lock, or this statement for him: it then looks at the
/// row again, and goes on to the next one if it is no longer open. The lock does not keep photos or forms from being added.
pub const LOCK_OPEN_REPORT: &str = "\
SELECT i.id
FROM inspections i
WHERE i.branch_id = $1 AND i.plate = $2 AND i.status IN ('DRAFT', 'REVISION_REQUESTED')
  AND i.created_at >= now() - interval '24 hours'
ORDER BY i.created_at DESC, i.id DESC
LIMIT 1
FOR NO KEY UPDATE";

/// Locks a waiting measurement (`$1`).
pub const LOCK_WAITING: &str = "\
SELECT m.branch_id, m.plate FROM measurements m WHERE m.id = $1 AND m.status = 'PENDING' FOR NO KEY UPDATE";

/// Locks a report (`$1`) if it is in its writing phase, at the branch `$2` and for the plate `$3`, whatever its age.
pub const LOCK_REPORT: &str = "\
SELECT i.id
FROM inspections i
WHERE i.id = $1 AND i.branch_id = $2 AND i.plate = $3 AND i.status IN ('DRAFT', 'REVISION_REQUESTED')
FOR NO KEY UPDATE";

/// The points of a measurement (`$1`) in their order.
pub const POINTS: &str = "\
SELECT p.code, p.value, p.value_text FROM measurement_points p WHERE p.measurement_id = $1 ORDER BY p.position";

/// Of the codes `$2`, the points that the test-line form of a report (`$1`) has, each with the organisation's bounds, and
/// the vehicle's registered factory power.
pub const TEST_LINE_POINTS: &str = "\
SELECT t.id AS template_id, p.id AS point_id, p.code, v.factory_power_hp, h.point_code IS NOT NULL AS has_bounds,
       h.good_min, h.good_max, h.borderline_min, h.borderline_max
FROM inspections i
JOIN vehicles v ON v.id = i.vehicle_id
JOIN form_templates t ON t.organization_id = i.organization_id AND t.is_test_line
JOIN form_template_points p ON p.template_id = t.id AND p.code = ANY($2::text[])
LEFT JOIN thresholds h ON h.organization_id = i.organization_id AND h.point_code = p.code
WHERE i.id = $1";

/// Writes the decided points into a report's form, keeps the answers they replace, and settles the measurement.
///
/// The form is made when the report has none yet. An inspector's note on a point stays beside the new value. The report is
/// locked by the caller, so that nobody changes answers between the copy into the history and the new value.
///
/// `$1` measurement, `$2` report, `$3` id for a new form, `$4` template; `$5`–`$9` the answers: point, status code, label,
/// severity, value; `$10`–`$14` all points: code, value, text, outcome, position; `$15` by whom (null: on arrival).
pub const APPLY: &str = "\
WITH answer AS (
    SELECT * FROM unnest($5::uuid[], $6::text[], $7::text[], $8::text[], $9::numeric[])
                  AS a (point_id, status_code, status_label, severity, numeric_value)
), form AS (
    INSERT INTO inspection_forms AS f (id, inspection_id, template_id)
    SELECT $3::uuid, $2::uuid, $4::uuid WHERE EXISTS (SELECT FROM answer)
    -- Changes nothing, but returns the form that is there.
    ON CONFLICT (inspection_id, template_id) DO UPDATE SET general_note = f.general_note
    RETURNING id
), replaced AS (
    INSERT INTO inspection_form_answer_history (inspection_form_id, point_id, status_code, status_label, severity,
                                                numeric_value, note, written_by, written_at)
    SELECT old.inspection_form_id, old.point_id, old.status_code, old.status_label, old.severity,
           old.numeric_value, old.note, old.written_by, old.written_at
    FROM form JOIN inspection_form_answers old ON old.inspection_form_id = form.id JOIN answer USING (point_id)
), written AS (
    INSERT INTO inspection_form_answers (inspection_form_id, point_id, status_code, status_label, severity,
                                         numeric_value, written_by, written_at)
    SELECT form.id, answer.point_id, answer.status_code, answer.status_label, answer.severity,
           answer.numeric_value, 'device:' || $1::uuid, now()
    FROM form, answer
    ON CONFLICT (inspection_form_id, point_id) DO UPDATE
    SET status_code = excluded.status_code, status_label = excluded.status_label, severity = excluded.severity,
        numeric_value = excluded.numeric_value, written_by = excluded.written_by, written_at = excluded.written_at
), decided AS (
    -- The computed point is new here, the others are there.
    INSERT INTO measurement_points (measurement_id, code, value, value_text, outcome, position)
    SELECT $1::uuid, p.* FROM unnest($10::text[], $11::numeric[], $12::text[], $13::text[], $14::integer[]) AS p
    ON CONFLICT (measurement_id, code) DO UPDATE SET outcome = excluded.outcome
)
UPDATE measurements
SET status = 'APPLIED', inspection_id = $2::uuid, settled_at = now(), settled_by = $15
WHERE id = $1::uuid AND status = 'PENDING'";

/// Settles a waiting measurement (`$1`) as ignored by an inspector (`$2`).
pub const DISCARD: &str = "\
UPDATE measurements SET status = 'DISCARDED', settled_at = now(), settled_by = $2
WHERE id = $1 AND status = 'PENDING'";
