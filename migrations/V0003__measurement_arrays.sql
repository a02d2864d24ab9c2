-- The points of a measurement in its own row, what is sent again with another body, and no foreign keys to hot rows.
--
-- Safe on a live system: every change is one of the catalogue, no row is rewritten. The locks are taken for a moment;
-- where they cannot be had soon, the migration gives up instead of holding up the traffic behind it, and can be repeated.
SET LOCAL lock_timeout = '3s';

ALTER TABLE measurements
    -- The codes in their order, and each value's decimal text as sent (its number: `point_texts::numeric[]`). Null: the
    -- points are in measurement_points, where versions before this one write them, also beside this one during a rolling
    -- upgrade. Such rows are read from there and not copied: copying would rewrite every row in one transaction, and what
    -- an old version writes a moment later would be missing all the same.
    ADD COLUMN point_codes text[],
    ADD COLUMN point_texts text[],
    -- What became of each point; null while the measurement waits, and when it was ignored.
    ADD COLUMN point_outcomes text[],
    -- The last line also keeps a version before this one from settling a measurement whose points it does not see.
    -- NOT VALID: no row that is there has any of the columns, so there is nothing to look at.
    ADD CONSTRAINT measurements_points CHECK (
        CASE WHEN point_codes IS NULL THEN point_texts IS NULL AND point_outcomes IS NULL
        ELSE cardinality(point_texts) IS NOT DISTINCT FROM cardinality(point_codes)
             AND (point_outcomes IS NULL OR cardinality(point_outcomes) = cardinality(point_codes))
             AND (point_outcomes IS NOT NULL) = (status = 'APPLIED') END
    ) NOT VALID,
    ADD CONSTRAINT measurements_point_outcomes CHECK (
        point_outcomes <@ ARRAY['applied', 'unknown_point', 'no_status', 'superseded']
    ) NOT VALID,
    -- Partner, key and branch come from the statement that records, which has just read them; to look each up again took a
    -- lock on a row that all stations of a branch share. That they stay is held below, where they would go.
    DROP CONSTRAINT measurements_partner_id_fkey,
    DROP CONSTRAINT measurements_key_id_fkey,
    DROP CONSTRAINT measurements_branch_id_organization_id_fkey;

CREATE FUNCTION refuse_orphans() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    -- The column of measurements, and the column here that it names.
    naming text := TG_ARGV[0];
    named  text := to_jsonb(OLD) ->> TG_ARGV[1];
    is_named boolean;
BEGIN
    IF TG_OP = 'UPDATE' AND to_jsonb(NEW) ->> TG_ARGV[1] = named THEN
        RETURN NEW;
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT FROM measurements WHERE %I::text = $1)', naming) INTO is_named USING named;
    IF is_named THEN
        RAISE EXCEPTION 'measurements name this row of %', TG_TABLE_NAME USING ERRCODE = 'foreign_key_violation';
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER keep_named BEFORE DELETE OR UPDATE OF id ON partners
    FOR EACH ROW EXECUTE FUNCTION refuse_orphans('partner_id', 'id');
CREATE TRIGGER keep_named BEFORE DELETE OR UPDATE OF key_id ON api_keys
    FOR EACH ROW EXECUTE FUNCTION refuse_orphans('key_id', 'key_id');
CREATE TRIGGER keep_named BEFORE DELETE OR UPDATE OF id ON branches
    FOR EACH ROW EXECUTE FUNCTION refuse_orphans('branch_id', 'id');

-- Packages whose external_id had been used for another body: kept beside the record, for two stations may share a counter.
CREATE TABLE measurement_mismatches (
    -- The record that answered.
    measurement_id uuid NOT NULL REFERENCES measurements,
    -- The exact bytes as sent, and their SHA-256; the very same bytes are kept once.
    raw_sha256     bytea NOT NULL,
    raw            bytea NOT NULL,
    key_id         text NOT NULL,
    received_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (measurement_id, raw_sha256)
);

CREATE FUNCTION refuse_changing() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% are never changed or deleted', TG_TABLE_NAME;
END $$;
CREATE TRIGGER keep BEFORE DELETE OR UPDATE OR TRUNCATE ON measurement_mismatches
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_changing();
