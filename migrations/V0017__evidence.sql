-- The report as evidence: who inspected and where, the limits that a value was judged by, where a report is verified, and the
-- SHA-256 of each PDF that was published.
--
-- Safe on a live system: columns with constant defaults and new tables; no row of a table that grows is read or rewritten. The
-- locks are taken for a moment; where they cannot be had soon, the migration gives up, and can be repeated. What a PDF is drawn
-- from has more in it from now on, so each is drawn anew when it is asked for, or by the sweep, as after any new drawing.
SET LOCAL lock_timeout = '3s';
CALL lock_tables('ACCESS EXCLUSIVE', 'inspections', 'branches', 'vehicles', 'thresholds', 'organizations');

------------------------------------------------------------------------------------------------------------------------
-- Who, and where

ALTER TABLE inspections
    -- Who inspected the vehicle and answers for the report; empty where that is not known.
    ADD COLUMN inspector_name text NOT NULL DEFAULT '';

ALTER TABLE branches
    -- The street address in lines of text, without district and city, and the telephone; empty where they are not known.
    ADD COLUMN address   text NOT NULL DEFAULT '',
    ADD COLUMN telephone text NOT NULL DEFAULT '';

-- As in V0014, and who inspected.
DROP TRIGGER moves ON inspections;
CREATE TRIGGER moves BEFORE UPDATE ON inspections FOR EACH ROW
    WHEN ((OLD.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED') OR NEW.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED'))
        AND (OLD.report_number, OLD.organization_id, OLD.branch_id, OLD.vehicle_id, OLD.status, OLD.package_name,
             OLD.package_base_price, OLD.base_price, OLD.discount_percent, OLD.discount_name, OLD.final_price, OLD.payment_type,
             OLD.currency, OLD.snapshot_vin, OLD.snapshot_mileage_km, OLD.summary, OLD.recommendation, OLD.overall_score,
             OLD.public_slug, OLD.published_at, OLD.created_at, OLD.inspector_name)
            IS DISTINCT FROM
            (NEW.report_number, NEW.organization_id, NEW.branch_id, NEW.vehicle_id, NEW.status, NEW.package_name,
             NEW.package_base_price, NEW.base_price, NEW.discount_percent, NEW.discount_name, NEW.final_price, NEW.payment_type,
             NEW.currency, NEW.snapshot_vin, NEW.snapshot_mileage_km, NEW.summary, NEW.recommendation, NEW.overall_score,
             NEW.public_slug, NEW.published_at, NEW.created_at, NEW.inspector_name))
    EXECUTE FUNCTION report_moves();

-- As in V0014, and what else of a branch stands in its reports: the district is part of the address.
DROP TRIGGER moves_organization ON branches;
CREATE TRIGGER moves_organization AFTER UPDATE ON branches FOR EACH ROW
    WHEN ((OLD.organization_id, OLD.name, OLD.city, OLD.district, OLD.address, OLD.telephone) IS DISTINCT FROM
          (NEW.organization_id, NEW.name, NEW.city, NEW.district, NEW.address, NEW.telephone))
    EXECUTE FUNCTION part_moves_organization();

-- All columns: of the registered power a PDF shows the ratio, also where no device has sent the measured one.
DROP TRIGGER moves_reports ON vehicles;
CREATE TRIGGER moves_reports AFTER UPDATE ON vehicles FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*)
    EXECUTE FUNCTION vehicle_moves_reports();

------------------------------------------------------------------------------------------------------------------------
-- Limits as they were

-- A report shows the limits that held when a value was written, whatever the organisation sets later. From when on those that
-- stood before this migration hold is not known: they count from the beginning.
ALTER TABLE thresholds ADD COLUMN since timestamptz NOT NULL DEFAULT '2000-01-01T00:00:00Z';
ALTER TABLE thresholds ALTER COLUMN since SET DEFAULT clock_timestamp();

-- All limits that ever held, each from its time on until that of the next one. Without any bound: there was none from then on.
CREATE TABLE threshold_versions (
    organization_id uuid NOT NULL REFERENCES organizations,
    point_code      text NOT NULL,
    since           timestamptz NOT NULL,
    good_min        numeric,
    good_max        numeric,
    borderline_min  numeric,
    borderline_max  numeric,
    PRIMARY KEY (organization_id, point_code, since)
);
INSERT INTO threshold_versions (organization_id, point_code, since, good_min, good_max, borderline_min, borderline_max)
SELECT organization_id, point_code, since, good_min, good_max, borderline_min, borderline_max FROM thresholds;
CREATE TRIGGER keep BEFORE DELETE OR UPDATE OR TRUNCATE ON threshold_versions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_changing();

-- Whoever sets limits, they are kept, and always behind those before them: what held once is not rewritten, not by a clock that
-- has stepped back either.
CREATE FUNCTION time_threshold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF (OLD.organization_id, OLD.point_code) <> (NEW.organization_id, NEW.point_code) THEN
            RAISE EXCEPTION 'the limits of one point do not become those of another';
        END IF;
        IF (OLD.good_min, OLD.good_max, OLD.borderline_min, OLD.borderline_max) IS NOT DISTINCT FROM
           (NEW.good_min, NEW.good_max, NEW.borderline_min, NEW.borderline_max) THEN
            NEW.since := OLD.since;
            RETURN NEW;
        END IF;
        IF NEW.since = OLD.since THEN
            NEW.since := clock_timestamp();
        END IF;
    END IF;
    NEW.since := greatest(NEW.since, (
        SELECT max(v.since) + interval '1 microsecond' FROM threshold_versions v
        WHERE v.organization_id = NEW.organization_id AND v.point_code = NEW.point_code));
    RETURN NEW;
END $$;
CREATE TRIGGER time BEFORE INSERT OR UPDATE ON thresholds FOR EACH ROW EXECUTE FUNCTION time_threshold();

CREATE FUNCTION keep_threshold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO threshold_versions (organization_id, point_code, since)
        VALUES (OLD.organization_id, OLD.point_code, greatest(OLD.since + interval '1 microsecond', clock_timestamp()));
    ELSIF TG_OP = 'INSERT' OR OLD.since <> NEW.since THEN
        INSERT INTO threshold_versions (organization_id, point_code, since, good_min, good_max, borderline_min, borderline_max)
        VALUES (NEW.organization_id, NEW.point_code, NEW.since, NEW.good_min, NEW.good_max, NEW.borderline_min,
                NEW.borderline_max);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER keep AFTER INSERT OR UPDATE OR DELETE ON thresholds FOR EACH ROW EXECUTE FUNCTION keep_threshold();

------------------------------------------------------------------------------------------------------------------------
-- Published PDFs

-- What is the same for all reports.
CREATE TABLE report_settings (
    only_row          boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    -- The address of a report's public page, with `{slug}` in it; null: there is none. Each replica that is started with one
    -- writes it here, so that all replicas print the same.
    public_report_url text
);
INSERT INTO report_settings DEFAULT VALUES;

-- Each PDF that a report came to name, so that a copy can be told from a forgery also when it was replaced. Only ever added to.
CREATE TABLE published_pdfs (
    object_key    text PRIMARY KEY,
    inspection_id uuid NOT NULL,
    -- Of the very bytes that are served.
    sha256        bytea NOT NULL CHECK (octet_length(sha256) = 32),
    size_bytes    bigint NOT NULL,
    published_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX published_pdfs_by_report ON published_pdfs (inspection_id, published_at);
CREATE INDEX published_pdfs_by_content ON published_pdfs (sha256);
CREATE TRIGGER keep BEFORE DELETE OR UPDATE OR TRUNCATE ON published_pdfs
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_changing();

-- As in V0005, and: where a report is verified; who inspected; branch and telephone; the vehicle's registered power; of a
-- test-line form which device measured what and when, the limits by which each value was judged, and those of its other codes
-- (sums and differences) at the time of its last value; all photos shown, whatever their format, with what they show.
CREATE OR REPLACE FUNCTION report_document(report uuid) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN RETURN (
SELECT jsonb_build_object(
    'pii_mode', o.pii_mode,
    'report_number', i.report_number,
    'organization_name', o.name,
    'branch_name', b.name,
    'branch_city', b.city,
    'branch_district', b.district,
    'branch_address', b.address,
    'branch_telephone', b.telephone,
    'inspector_name', i.inspector_name,
    'public_slug', i.public_slug,
    'public_report_url', (SELECT s.public_report_url FROM report_settings s),
    'published_at', to_char(i.published_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'created_at', to_char(i.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'vehicle', jsonb_build_object(
        'plate', v.plate, 'vin', i.snapshot_vin, 'brand', v.brand, 'model', v.model, 'year', v.year, 'body_type', v.type,
        'fuel_type', v.fuel_type, 'transmission', v.transmission, 'color', v.color, 'mileage_km', v.mileage_km,
        'factory_power_hp', v.factory_power_hp::text),
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
                    'note', a.note,
                    'measurement', CASE WHEN t.is_test_line AND starts_with(a.written_by, 'device:')
                                        THEN substr(a.written_by, 8) END,
                    'limits', CASE WHEN t.is_test_line THEN (
                        SELECT jsonb_build_object('good_min', h.good_min::text, 'good_max', h.good_max::text,
                            'borderline_min', h.borderline_min::text, 'borderline_max', h.borderline_max::text)
                        FROM threshold_versions h
                        WHERE h.organization_id = i.organization_id AND h.point_code = p.code AND h.since <= a.written_at
                        ORDER BY h.since DESC LIMIT 1) END
                    ) ORDER BY p.position, p.code), '[]')
                FROM inspection_form_answers a JOIN form_template_points p ON p.id = a.point_id
                WHERE a.inspection_form_id = f.id AND p.template_id = f.template_id),
            'measurements', CASE WHEN t.is_test_line THEN (
                SELECT coalesce(jsonb_agg(jsonb_build_object(
                    'id', m.id, 'device_serial', m.device_serial,
                    'measured_at', to_char(m.measured_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                    'applied_at', to_char(m.settled_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
                    ) ORDER BY m.measured_at, m.id), '[]')
                FROM measurements m
                WHERE m.inspection_id = i.id AND m.status = 'APPLIED' AND EXISTS (
                    SELECT FROM inspection_form_answers a
                    WHERE a.inspection_form_id = f.id AND a.written_by = 'device:' || m.id::text)) END,
            'limits', CASE WHEN t.is_test_line THEN (
                SELECT coalesce(jsonb_object_agg(l.point_code, jsonb_build_object(
                    'good_min', l.good_min::text, 'good_max', l.good_max::text,
                    'borderline_min', l.borderline_min::text, 'borderline_max', l.borderline_max::text)), '{}')
                FROM (
                    SELECT DISTINCT ON (h.point_code) h.* FROM threshold_versions h
                    WHERE h.organization_id = i.organization_id
                      AND h.since <= (SELECT max(a.written_at) FROM inspection_form_answers a WHERE a.inspection_form_id = f.id)
                      AND NOT EXISTS (
                        SELECT FROM inspection_form_answers a JOIN form_template_points p ON p.id = a.point_id
                        WHERE a.inspection_form_id = f.id AND p.code = h.point_code)
                    ORDER BY h.point_code, h.since DESC) l) END
            ) ORDER BY t.position, t.code), '[]')
        FROM inspection_forms f JOIN form_templates t ON t.id = f.template_id
        WHERE f.inspection_id = i.id),
    'photos', (
        SELECT coalesce(jsonb_agg(jsonb_build_object('kind', s.kind, 'point_code', s.point_code, 'caption', s.caption,
            'object_key', s.object_key, 'mime_type', s.mime_type) ORDER BY s.position, s.id), '[]')
        FROM shown_photos s WHERE s.inspection_id = i.id))
FROM inspections i
JOIN organizations o ON o.id = i.organization_id
JOIN branches b ON b.id = i.branch_id
JOIN vehicles v ON v.id = i.vehicle_id
WHERE i.id = report
); END $$;
