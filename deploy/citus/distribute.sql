-- Distributes the tables of a migrated database with Citus: an experiment, which script/citus runs. Not for production, because
-- many statements of the service are refused (docs/scaling.md, "On a distributed engine").
--
-- The server needs citus.enable_unsafe_triggers, because tables have triggers; citus.allow_nested_distributed_execution, because
-- triggers read and write other tables of their organization; and citus.multi_shard_modify_mode = sequential, because a transaction
-- writes to a reference table after it has read several shards.

SET client_min_messages = warning;
SET citus.multi_shard_modify_mode = sequential;

BEGIN;

------------------------------------------------------------------------------------------------------------------------
-- Triggers run on a shard. They can use the other tables if each of their statements names one organization: its rows are then on
-- the same node, and Citus executes the statement in the same transaction. A statement may assign values, but neither volatile nor
-- stable functions of columns (such as `updated_at + interval`).

CREATE FUNCTION touch_reports(changed uuid[], owner uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    visible uuid[];
    later timestamptz;
BEGIN
    SELECT array_agg(locked.id), max(locked.updated_at) INTO visible, later FROM (
        SELECT i.id, i.updated_at FROM inspections i
        WHERE i.id = ANY (changed) AND i.organization_id = owner AND i.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED') AND i.updated_at < now()
        ORDER BY i.id FOR NO KEY UPDATE) locked;
    IF visible IS NOT NULL THEN
        later := later_than(later);
        UPDATE inspections SET updated_at = later WHERE id = ANY (visible) AND organization_id = owner;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION touch_reports_of_answers() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    forms uuid[];
    owners uuid[];
    r record;
BEGIN
    SELECT array_agg(DISTINCT inspection_form_id), array_agg(DISTINCT organization_id) INTO forms, owners FROM changed;
    IF forms IS NOT NULL THEN
        FOR r IN
            SELECT i.organization_id, array_agg(i.id) AS reports
            FROM inspection_forms f JOIN inspections i ON i.id = f.inspection_id AND i.organization_id = f.organization_id
            WHERE f.id = ANY (forms) AND f.organization_id = ANY (owners)
              AND i.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED') AND i.updated_at < now()
            GROUP BY i.organization_id
        LOOP
            PERFORM touch_reports(r.reports, r.organization_id);
        END LOOP;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION touch_reports_of_forms() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT organization_id, array_agg(DISTINCT inspection_id) AS reports FROM changed GROUP BY organization_id LOOP
        PERFORM touch_reports(r.reports, r.organization_id);
    END LOOP;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION touch_report_of_edited_form() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM touch_reports(ARRAY[OLD.inspection_id, NEW.inspection_id], NEW.organization_id);
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION touch_reports_of_photos() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    IF TG_OP <> 'DELETE' THEN
      FOR r IN SELECT organization_id, array_agg(DISTINCT inspection_id) AS reports FROM new_photos
                         WHERE show_in_report AND kind NOT IN ('REGISTRATION', 'OTOSICIL_PDF') GROUP BY organization_id LOOP
        PERFORM touch_reports(r.reports, r.organization_id);
      END LOOP;
    END IF;
    IF TG_OP <> 'INSERT' THEN
      FOR r IN SELECT organization_id, array_agg(DISTINCT inspection_id) AS reports FROM old_photos
                         WHERE show_in_report AND kind NOT IN ('REGISTRATION', 'OTOSICIL_PDF') GROUP BY organization_id LOOP
        PERFORM touch_reports(r.reports, r.organization_id);
      END LOOP;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION enqueue_published_report() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO report_renderings AS r (inspection_id, organization_id) VALUES (NEW.id, NEW.organization_id)
    ON CONFLICT (inspection_id, organization_id) DO UPDATE SET fingerprint = NULL, attempts = CASE WHEN r.fingerprint IS NOT NULL THEN 0 ELSE r.attempts END,
      due_at = CASE WHEN r.claim IS NULL AND r.fingerprint IS NOT NULL THEN excluded.due_at ELSE r.due_at END
      WHERE r.fingerprint IS NOT NULL;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION enqueue_imported_reports() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    FOR r IN SELECT organization_id, array_agg(id) AS ids FROM new_reports WHERE status = 'PUBLISHED' AND public_slug IS NOT NULL GROUP BY organization_id LOOP
      INSERT INTO report_renderings (inspection_id, organization_id)
      SELECT id, r.organization_id FROM unnest(r.ids) AS id
      ON CONFLICT (inspection_id, organization_id) DO NOTHING;
    END LOOP;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION touch_organization_of_row() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE later timestamptz;
BEGIN
    SELECT reports_changed_at INTO later FROM organizations WHERE id = NEW.organization_id FOR NO KEY UPDATE;
    later := later_than(later);
    UPDATE organizations SET reports_changed_at = later WHERE id = NEW.organization_id;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION touch_organizations_of_points() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE later timestamptz; r record;
BEGIN
    FOR r IN SELECT DISTINCT organization_id FROM changed LOOP
    SELECT reports_changed_at INTO later FROM organizations WHERE id = r.organization_id FOR NO KEY UPDATE;
    later := later_than(later);
    UPDATE organizations SET reports_changed_at = later WHERE id = r.organization_id;
    END LOOP;
    RETURN NULL;
END $$;

-- Statements of the service call these on a shard, where only PL/pgSQL can execute a distributed statement.
CREATE OR REPLACE FUNCTION enqueue_rendering(report uuid, wanted text, renderer_version integer, requested boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE owner constant uuid := (SELECT organization_id FROM inspections WHERE id = report);
BEGIN
    IF owner IS NULL THEN
        RETURN;
    END IF;
    INSERT INTO report_renderings AS r (inspection_id, organization_id, fingerprint, least_version, is_requested)
    VALUES (report, owner, wanted, renderer_version, requested)
    ON CONFLICT (inspection_id, organization_id) DO UPDATE SET
        fingerprint = excluded.fingerprint,
        least_version = greatest(r.least_version, excluded.least_version),
        is_requested = r.is_requested OR excluded.is_requested,
        attempts = CASE WHEN r.fingerprint IS DISTINCT FROM excluded.fingerprint THEN 0 ELSE r.attempts END,
        due_at = CASE WHEN r.claim IS NULL AND r.fingerprint IS DISTINCT FROM excluded.fingerprint
                      THEN excluded.due_at ELSE r.due_at END
    WHERE r.fingerprint IS DISTINCT FROM excluded.fingerprint
       OR excluded.least_version > r.least_version
       OR excluded.is_requested AND NOT r.is_requested;
END $$;

CREATE OR REPLACE FUNCTION try_enqueue_rendering(report uuid, wanted text, renderer_version integer, requested boolean) RETURNS void LANGUAGE plpgsql
SET lock_timeout = '100ms' AS $$
BEGIN
    PERFORM enqueue_rendering(report, wanted, renderer_version, requested);
END $$;

-- A reference table has the trigger on each node; only that of the coordinator changes the reports.
CREATE OR REPLACE FUNCTION touch_reports_of_vehicle() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    IF (SELECT groupid FROM pg_dist_local_group) = 0 THEN
        FOR r IN SELECT organization_id, array_agg(id) AS reports FROM inspections
                 WHERE vehicle_id = NEW.id AND status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED') GROUP BY organization_id LOOP
            PERFORM touch_reports(r.reports, r.organization_id);
        END LOOP;
    END IF;
    RETURN NULL;
END $$;

-- Each table of the document of a report is restricted to the owner, so that the document is read on one shard.
DO $$
DECLARE
    definition text := pg_get_functiondef('report_document'::regproc);
    place text[];
BEGIN
    definition := replace(definition, 'BEGIN RETURN (',
        'DECLARE owner constant uuid := (SELECT organization_id FROM inspections WHERE id = report); BEGIN RETURN (');
    -- Grants on the view do not exist on the workers.
    definition := replace(definition, 'FROM shown_photos s WHERE',
        'FROM photos s WHERE s.show_in_report AND s.kind NOT IN (''REGISTRATION'', ''OTOSICIL_PDF'') AND');
    FOREACH place SLICE 1 IN ARRAY ARRAY[
        ['WHERE a.', 'a.organization_id'], ['ON p.', 'p.organization_id'], ['WHERE p.', 'p.organization_id'],
        ['WHERE m.', 'm.organization_id'], ['WHERE h.', 'h.organization_id'], ['WHERE f.', 'f.organization_id'],
        ['ON t.', 't.organization_id'], ['WHERE t.', 't.organization_id'], ['WHERE s.', 's.organization_id'],
        ['WHERE i.id = report', 'i.organization_id'], ['ON o.', 'o.id'], ['ON b.', 'b.organization_id']]
    LOOP
        definition := replace(definition, place[1], regexp_replace(place[1], '^(WHERE|ON) ', '\1 ' || place[2] || ' = owner AND '));
    END LOOP;
    EXECUTE definition;
END $$;

------------------------------------------------------------------------------------------------------------------------
-- Foreign keys are dropped, and added again when both tables are distributed. Those to measurements are not possible, because their
-- key then contains the owner. A distributed table cannot be referenced by one that is not distributed.

CREATE TEMP TABLE foreign_keys AS
SELECT conrelid::regclass AS child, confrelid::regclass AS parent, conname AS name, pg_get_constraintdef(oid) AS definition
FROM pg_constraint
WHERE contype = 'f' AND conparentid = 0 AND connamespace = 'public'::regnamespace;
DO $$
DECLARE
    key record;
BEGIN
    FOR key IN SELECT * FROM foreign_keys LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', key.child, key.name);
    END LOOP;
END $$;

-- Unique keys contain the owner. These values are then unique only within an organization.
ALTER TABLE inspections DROP CONSTRAINT inspections_report_number_key;
ALTER TABLE inspections DROP CONSTRAINT inspections_public_slug_key;
CREATE UNIQUE INDEX inspections_report_number_key ON inspections (report_number, organization_id);
CREATE UNIQUE INDEX inspections_public_slug_key ON inspections (public_slug, organization_id);
ALTER TABLE measurements DROP CONSTRAINT measurements_pkey;
ALTER TABLE measurements ADD PRIMARY KEY (id, organization_id);
DROP INDEX measurements_external_id;
CREATE UNIQUE INDEX measurements_external_id ON measurements (partner_id, external_id, organization_id)
    WHERE external_id IS NOT NULL;
ALTER TABLE branches DROP CONSTRAINT branches_pkey;
ALTER TABLE branches ADD PRIMARY KEY (id, organization_id);
ALTER TABLE form_templates DROP CONSTRAINT form_templates_pkey;
ALTER TABLE form_templates ADD PRIMARY KEY (id, organization_id);
ALTER TABLE organizations DROP CONSTRAINT organizations_slug_key;
CREATE INDEX organizations_slug_key ON organizations (slug);

SELECT create_reference_table(name) FROM unnest(ARRAY['vehicles', 'report_settings', 'inspectors']) AS name;
SELECT create_distributed_table('organizations', 'id');
SELECT create_distributed_table(name::regclass, 'organization_id', colocate_with => 'organizations')
FROM unnest(ARRAY[
    'branches', 'form_templates', 'form_template_points', 'thresholds', 'threshold_versions', 'plausible_ranges',
    'inspector_branches', 'inspections', 'inspection_forms', 'inspection_form_answers', 'inspection_form_answer_history', 'photos',
    'published_pdfs', 'inspection_transitions', 'plate_corrections', 'measurements', 'report_renderings']) AS name;
SELECT create_distributed_function(name::regprocedure) FROM unnest(ARRAY[
    'time_document(timestamptz)', 'threshold_document(numeric,numeric,numeric,numeric)', 'report_document(uuid)', 'report_fingerprint(uuid)'
]) AS name;
COMMIT;

BEGIN;
DO $$
DECLARE
    key record;
BEGIN
    FOR key IN
        SELECT * FROM foreign_keys
        WHERE parent <> 'measurements'::regclass
          AND (EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = child AND partmethod = 'h')
               OR NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = parent AND partmethod = 'h'))
    LOOP
        EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I %s', key.child, key.name, key.definition);
    END LOOP;
END $$;
COMMIT;
