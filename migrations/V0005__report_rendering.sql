-- PDFs of reports that say what they were rendered from, and the work of rendering them in the background.
--
-- Nothing here rewrites a table or scans one. The trigger needs `inspections` for a moment without writers: rather than
-- make them queue behind a long transaction, the migration fails and is run again.
SET LOCAL lock_timeout = '3s';

-- The photos of a report that anybody outside sees: registration documents, archive documents of third parties and photos
-- kept out of the report are never shown (contract 2.9).
CREATE VIEW shown_photos AS
SELECT id, inspection_id, position, kind, point_code, caption, object_key, thumb_object_key, mime_type, size_bytes, created_at
FROM photos
WHERE show_in_report AND kind NOT IN ('REGISTRATION', 'OTOSICIL_PDF');

-- All that the PDF of a report is drawn from, as stored; null for no report. The renderer reads nothing else, so a change
-- to what is printed is a change of this document, whoever made it and however. Numbers and times are text: neither the
-- reader's floating point nor the session's time zone changes them. In PL/pgSQL, which keeps its plan for the session.
CREATE FUNCTION report_document(report uuid) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN RETURN (
SELECT jsonb_build_object(
    'pii_mode', o.pii_mode,
    'report_number', i.report_number,
    'organization_name', o.name,
    'branch_name', b.name,
    'branch_city', b.city,
    'published_at', to_char(i.published_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'created_at', to_char(i.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'vehicle', jsonb_build_object(
        'plate', v.plate, 'vin', i.snapshot_vin, 'brand', v.brand, 'model', v.model, 'year', v.year, 'body_type', v.type,
        'fuel_type', v.fuel_type, 'transmission', v.transmission, 'color', v.color, 'mileage_km', v.mileage_km),
    'snapshot_mileage_km', i.snapshot_mileage_km,
    'package_name', i.package_name,
    'pricing', jsonb_build_object(
        'base_price', i.base_price::text, 'discount_percent', i.discount_percent::text, 'discount_name', i.discount_name,
        'final_price', i.final_price::text, 'payment_type', i.payment_type, 'currency', i.currency),
    'overall_score', i.overall_score,
    'summary', i.summary,
    'recommendation', i.recommendation,
    'forms', (
        SELECT coalesce(jsonb_agg(jsonb_build_object(
            'name', t.name, 'score_category', t.score_category, 'general_note', f.general_note,
            'is_test_line', t.is_test_line,
            'points', (
                SELECT coalesce(jsonb_agg(jsonb_build_object(
                    'code', p.code, 'name', p.name, 'unit', p.unit, 'status_code', a.status_code,
                    'status_label', a.status_label, 'severity', a.severity, 'numeric_value', a.numeric_value::text,
                    'note', a.note) ORDER BY p.position, p.code), '[]')
                FROM inspection_form_answers a JOIN form_template_points p ON p.id = a.point_id
                WHERE a.inspection_form_id = f.id AND p.template_id = f.template_id)
            ) ORDER BY t.position, t.code), '[]')
        FROM inspection_forms f JOIN form_templates t ON t.id = f.template_id
        WHERE f.inspection_id = i.id),
    'photos', (
        SELECT coalesce(jsonb_agg(jsonb_build_object('kind', s.kind, 'caption', s.caption, 'object_key', s.object_key)
            ORDER BY s.position, s.id), '[]')
        FROM shown_photos s WHERE s.inspection_id = i.id AND s.mime_type = 'image/jpeg'))
FROM inspections i
JOIN organizations o ON o.id = i.organization_id
JOIN branches b ON b.id = i.branch_id
JOIN vehicles v ON v.id = i.vehicle_id
WHERE i.id = report
); END $$;

-- What a stored PDF is compared by, 64 hex digits.
CREATE FUNCTION report_fingerprint(report uuid) RETURNS text LANGUAGE sql STABLE AS $$
SELECT encode(sha256(convert_to(report_document(report)::text, 'UTF8')), 'hex')
$$;

-- Reports whose PDF is missing or stale. A row is a hint: whether a stored PDF may be served is decided when it is asked for,
-- by its fingerprint alone. No foreign key: a row for a report that is gone is dropped when its turn comes.
CREATE TABLE report_renderings (
    inspection_id uuid PRIMARY KEY,
    -- The fingerprint for which it was last wanted; null where that was not looked at.
    fingerprint   text,
    -- An older renderer leaves the row to a newer one.
    least_version integer NOT NULL DEFAULT 0,
    -- Somebody waits for it: first in line.
    is_asked      boolean NOT NULL DEFAULT false,
    -- From when on it may be claimed. A claim moves it ahead by its lease, a failure by its backoff.
    due_at        timestamptz NOT NULL DEFAULT now(),
    -- Claims since the fingerprint changed, counted when they begin: a report that kills its renderer is counted too.
    attempts      integer NOT NULL DEFAULT 0,
    -- The claim under way, or the one that a crash left.
    claim         uuid
);
CREATE INDEX report_renderings_in_line ON report_renderings (is_asked DESC, due_at);

-- Wants a report rendered. A claim under way keeps its lease: it finds out by itself that it draws what no longer holds.
CREATE FUNCTION want_rendering(report uuid, wanted text, version integer, asked boolean) RETURNS void LANGUAGE sql AS $$
INSERT INTO report_renderings AS r (inspection_id, fingerprint, least_version, is_asked)
VALUES (report, wanted, version, asked)
ON CONFLICT (inspection_id) DO UPDATE SET
    fingerprint = excluded.fingerprint,
    least_version = greatest(r.least_version, excluded.least_version),
    is_asked = r.is_asked OR excluded.is_asked,
    attempts = CASE WHEN r.fingerprint IS DISTINCT FROM excluded.fingerprint THEN 0 ELSE r.attempts END,
    due_at = CASE WHEN r.claim IS NULL AND r.fingerprint IS DISTINCT FROM excluded.fingerprint
                  THEN now() ELSE r.due_at END
WHERE r.fingerprint IS DISTINCT FROM excluded.fingerprint
   OR excluded.least_version > r.least_version
   OR excluded.is_asked AND NOT r.is_asked
$$;

-- The same for a caller that must not wait behind somebody's open transaction.
CREATE FUNCTION want_rendering_now(report uuid, wanted text, version integer, asked boolean) RETURNS void LANGUAGE sql
SET lock_timeout = '100ms' AS $$
SELECT want_rendering(report, wanted, version, asked)
$$;

-- A report is rendered when it is published. Later changes are found when the PDF is asked for, or by the sweep: a trigger
-- on answers would cost each measurement, and a change of mode would write a row for each report of the organisation.
CREATE FUNCTION want_published_report() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM want_rendering(NEW.id, NULL, 0, false);
    RETURN NULL;
END $$;
CREATE TRIGGER want_rendering AFTER INSERT OR UPDATE OF status, public_slug ON inspections
    FOR EACH ROW WHEN (NEW.status = 'PUBLISHED' AND NEW.public_slug IS NOT NULL)
    EXECUTE FUNCTION want_published_report();

-- How far the sweep over all reports has come; of all replicas one takes the next step.
CREATE TABLE report_sweep (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    after_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    due_at   timestamptz NOT NULL DEFAULT now()
);
INSERT INTO report_sweep DEFAULT VALUES;

-- Objects that no report names: one that is about to be uploaded (written before it is, so that a crash leaves no object
-- that nobody knows of), and one that was replaced. Deleted from the storage when their time has come.
CREATE TABLE unnamed_pdfs (
    object_key    text PRIMARY KEY,
    inspection_id uuid NOT NULL,
    delete_at     timestamptz NOT NULL,
    -- Its deletion has begun: no report can come to name it any more.
    is_condemned  boolean NOT NULL DEFAULT false
);
CREATE INDEX unnamed_pdfs_by_time ON unnamed_pdfs (delete_at);
