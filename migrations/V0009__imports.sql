-- What was imported, and reports that are published by the thousand.
--
-- Nothing here rewrites a table or scans one. The trigger needs `inspections` for a moment without writers: rather than
-- make them queue behind a long transaction, the migration fails and is run again.
SET LOCAL lock_timeout = '3s';

-- Files that were brought in whole, so that they are not brought in again. Only ever added to.
CREATE TABLE imports (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    sha256     bytea NOT NULL CHECK (octet_length(sha256) = 32),
    size_bytes bigint NOT NULL,
    kind       text NOT NULL,
    -- Its name, without its folder.
    file       text NOT NULL,
    lines      bigint NOT NULL,
    inserted   bigint NOT NULL,
    updated    bigint NOT NULL,
    unchanged  bigint NOT NULL
);
CREATE INDEX imports_by_content ON imports (sha256, kind);
CREATE INDEX imports_by_size ON imports (size_bytes, kind);

CREATE TRIGGER keep BEFORE DELETE OR UPDATE OR TRUNCATE ON imports
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_changing();

-- Reports that are there as published ones from the beginning are wanted by one statement for all of them: for each by itself
-- took 32 of the 53 µs that a new report costs.
CREATE FUNCTION want_published_reports() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO report_renderings (inspection_id)
    SELECT id FROM new_reports WHERE status = 'PUBLISHED' AND public_slug IS NOT NULL
    ON CONFLICT (inspection_id) DO NOTHING;
    RETURN NULL;
END $$;
DROP TRIGGER want_rendering ON inspections;
CREATE TRIGGER want_rendering AFTER UPDATE OF status, public_slug ON inspections
    FOR EACH ROW WHEN (NEW.status = 'PUBLISHED' AND NEW.public_slug IS NOT NULL)
    EXECUTE FUNCTION want_published_report();
CREATE TRIGGER want_renderings AFTER INSERT ON inspections REFERENCING NEW TABLE AS new_reports
    FOR EACH STATEMENT EXECUTE FUNCTION want_published_reports();
