-- What moves a report's `updated_at`: every change of what partners see of it, whoever makes it.
--
-- What a report shows of its own (its row, its vehicle, its forms, its shown photos) moves the report. What all reports of an
-- organisation show (its name and mode, its branches, its templates) moves one time of the organisation, and `updated_at` is
-- the later of the two: a change of mode costs one row, not one per report. Reports that partners do not see are left alone,
-- so that a measurement costs no write to its report; becoming visible is a change of the report's own row.
--
-- Each may also move it without need; that it stays where it was means that nothing has changed.
SET LOCAL lock_timeout = '3s';
CALL lock_tables('ACCESS EXCLUSIVE', 'organizations', 'branches', 'vehicles', 'inspections', 'form_templates',
    'form_template_points', 'inspection_forms', 'inspection_form_answers', 'photos');

-- The moment of the migration covers what changed while there was nothing to move `updated_at`.
ALTER TABLE organizations ADD COLUMN reports_changed_at timestamptz NOT NULL DEFAULT now();
ALTER TABLE organizations ALTER COLUMN reports_changed_at SET DEFAULT clock_timestamp();

-- The time that follows `before`, also where the clock has stepped back.
CREATE FUNCTION moved(before timestamptz) RETURNS timestamptz LANGUAGE sql VOLATILE
RETURN greatest(before + interval '1 microsecond', clock_timestamp());

------------------------------------------------------------------------------------------------------------------------
-- One report

CREATE FUNCTION report_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at := moved(OLD.updated_at);
    RETURN NEW;
END $$;
-- All columns but those that no partner sees: the plate it was opened with, the object that holds its PDF.
CREATE TRIGGER moves BEFORE UPDATE ON inspections FOR EACH ROW
    WHEN ((OLD.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED') OR NEW.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED'))
        AND (OLD.report_number, OLD.organization_id, OLD.branch_id, OLD.vehicle_id, OLD.status, OLD.package_name,
             OLD.package_base_price, OLD.base_price, OLD.discount_percent, OLD.discount_name, OLD.final_price, OLD.payment_type,
             OLD.currency, OLD.snapshot_vin, OLD.snapshot_mileage_km, OLD.summary, OLD.recommendation, OLD.overall_score,
             OLD.public_slug, OLD.published_at, OLD.created_at)
            IS DISTINCT FROM
            (NEW.report_number, NEW.organization_id, NEW.branch_id, NEW.vehicle_id, NEW.status, NEW.package_name,
             NEW.package_base_price, NEW.base_price, NEW.discount_percent, NEW.discount_name, NEW.final_price, NEW.payment_type,
             NEW.currency, NEW.snapshot_vin, NEW.snapshot_mileage_km, NEW.summary, NEW.recommendation, NEW.overall_score,
             NEW.public_slug, NEW.published_at, NEW.created_at))
    EXECUTE FUNCTION report_moves();

-- Moves those of some reports that partners see, once in a transaction. They are locked in one order, so that two who change
-- several never wait for each other; where there are none, nothing is written and nobody is waited for.
CREATE FUNCTION move_reports(changed uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    seen uuid[];
BEGIN
    SELECT array_agg(locked.id) INTO seen FROM (
        SELECT i.id FROM inspections i
        WHERE i.id = ANY (changed) AND i.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED') AND i.updated_at < now()
        ORDER BY i.id FOR NO KEY UPDATE) locked;
    IF seen IS NOT NULL THEN
        UPDATE inspections SET updated_at = moved(updated_at) WHERE id = ANY (seen);
    END IF;
END $$;

CREATE FUNCTION vehicle_moves_reports() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM move_reports(ARRAY(SELECT id FROM inspections WHERE vehicle_id = NEW.id));
    RETURN NULL;
END $$;
-- All columns but the factory power, of which partners see only the ratio that was computed from it.
CREATE TRIGGER moves_reports AFTER UPDATE ON vehicles FOR EACH ROW
    WHEN ((OLD.plate, OLD.vin, OLD.brand, OLD.model, OLD.year, OLD.type, OLD.fuel_type, OLD.transmission, OLD.color,
           OLD.mileage_km)
        IS DISTINCT FROM
          (NEW.plate, NEW.vin, NEW.brand, NEW.model, NEW.year, NEW.type, NEW.fuel_type, NEW.transmission, NEW.color,
           NEW.mileage_km))
    EXECUTE FUNCTION vehicle_moves_reports();

-- By statement, because imports and measurements write many rows at once.
CREATE FUNCTION answers_move_reports() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    forms uuid[];
BEGIN
    SELECT array_agg(DISTINCT inspection_form_id) INTO forms FROM changed;
    IF forms IS NOT NULL THEN
        PERFORM move_reports(ARRAY(SELECT inspection_id FROM inspection_forms WHERE id = ANY (forms)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER added_moves_reports AFTER INSERT ON inspection_form_answers REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION answers_move_reports();
CREATE TRIGGER changed_moves_reports AFTER UPDATE ON inspection_form_answers REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION answers_move_reports();
CREATE TRIGGER removed_moves_reports AFTER DELETE ON inspection_form_answers REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION answers_move_reports();

CREATE FUNCTION forms_move_reports() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM move_reports(ARRAY(SELECT DISTINCT inspection_id FROM changed));
    RETURN NULL;
END $$;
CREATE TRIGGER added_moves_reports AFTER INSERT ON inspection_forms REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION forms_move_reports();
CREATE TRIGGER removed_moves_reports AFTER DELETE ON inspection_forms REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION forms_move_reports();
CREATE FUNCTION form_moves_reports() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM move_reports(ARRAY[OLD.inspection_id, NEW.inspection_id]);
    RETURN NULL;
END $$;
-- By row: measurements make it of a form that is there, without changing it.
CREATE TRIGGER changed_moves_reports AFTER UPDATE ON inspection_forms FOR EACH ROW
    WHEN ((OLD.inspection_id, OLD.template_id, OLD.general_note) IS DISTINCT FROM
          (NEW.inspection_id, NEW.template_id, NEW.general_note))
    EXECUTE FUNCTION form_moves_reports();

CREATE FUNCTION photos_move_reports() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM move_reports(ARRAY(SELECT DISTINCT inspection_id FROM changed
        WHERE show_in_report AND kind NOT IN ('REGISTRATION', 'OTOSICIL_PDF')));
    RETURN NULL;
END $$;
CREATE TRIGGER added_moves_reports AFTER INSERT ON photos REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION photos_move_reports();
CREATE TRIGGER removed_moves_reports AFTER DELETE ON photos REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION photos_move_reports();
-- A photo that is hidden, moved or replaced: what was shown counts as much as what is.
CREATE TRIGGER shown_moves_reports AFTER UPDATE ON photos REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION photos_move_reports();
CREATE TRIGGER hidden_moves_reports AFTER UPDATE ON photos REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION photos_move_reports();

------------------------------------------------------------------------------------------------------------------------
-- All reports of an organisation

CREATE FUNCTION move_organizations(changed uuid[]) RETURNS void LANGUAGE sql AS $$
UPDATE organizations SET reports_changed_at = moved(reports_changed_at) WHERE id = ANY (changed)
$$;

CREATE FUNCTION organization_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.reports_changed_at := moved(OLD.reports_changed_at);
    RETURN NEW;
END $$;
CREATE TRIGGER moves BEFORE UPDATE ON organizations FOR EACH ROW
    WHEN ((OLD.slug, OLD.name, OLD.pii_mode) IS DISTINCT FROM (NEW.slug, NEW.name, NEW.pii_mode))
    EXECUTE FUNCTION organization_moves();

CREATE FUNCTION part_moves_organization() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM move_organizations(ARRAY[OLD.organization_id, NEW.organization_id]);
    RETURN NULL;
END $$;
-- The columns of a branch that stand in its reports.
CREATE TRIGGER moves_organization AFTER UPDATE ON branches FOR EACH ROW
    WHEN ((OLD.organization_id, OLD.name, OLD.city) IS DISTINCT FROM (NEW.organization_id, NEW.name, NEW.city))
    EXECUTE FUNCTION part_moves_organization();
-- A template that comes or goes has no reports.
CREATE TRIGGER moves_organization AFTER UPDATE ON form_templates FOR EACH ROW
    WHEN ((OLD.organization_id, OLD.code, OLD.name, OLD.score_category, OLD.position) IS DISTINCT FROM
          (NEW.organization_id, NEW.code, NEW.name, NEW.score_category, NEW.position))
    EXECUTE FUNCTION part_moves_organization();

CREATE FUNCTION points_move_organizations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM move_organizations(ARRAY(SELECT DISTINCT t.organization_id FROM changed c JOIN form_templates t ON t.id = c.template_id));
    RETURN NULL;
END $$;
CREATE TRIGGER added_moves_organizations AFTER INSERT ON form_template_points REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION points_move_organizations();
CREATE TRIGGER removed_moves_organizations AFTER DELETE ON form_template_points REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION points_move_organizations();
CREATE FUNCTION point_moves_organizations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM move_organizations(ARRAY(SELECT organization_id FROM form_templates WHERE id IN (OLD.template_id, NEW.template_id)));
    RETURN NULL;
END $$;
CREATE TRIGGER changed_moves_organizations AFTER UPDATE ON form_template_points FOR EACH ROW
    WHEN ((OLD.template_id, OLD.code, OLD.name, OLD.unit, OLD.position) IS DISTINCT FROM
          (NEW.template_id, NEW.code, NEW.name, NEW.unit, NEW.position))
    EXECUTE FUNCTION point_moves_organizations();
