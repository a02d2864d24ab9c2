-- Expand: the previous release uses the schema as before, and never deletes these rows.
SET LOCAL lock_timeout = '3s';
CALL lock_tables('SHARE ROW EXCLUSIVE', 'audit_log', 'imports');

CREATE OR REPLACE TRIGGER prevent_modification BEFORE DELETE OR UPDATE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION prevent_modification('except erasure');
CREATE OR REPLACE TRIGGER prevent_modification BEFORE DELETE OR UPDATE OR TRUNCATE ON imports
    FOR EACH STATEMENT EXECUTE FUNCTION prevent_modification('except erasure');
COMMENT ON TABLE audit_log IS 'The changes that operators made. Append-only, except for entries past their retention period.';
COMMENT ON TABLE imports IS
    'Completely imported files, which are not imported again. Append-only, except for entries past their retention period.';
COMMENT ON FUNCTION prevent_modification IS
    'Makes a table append-only, as a BEFORE trigger for each statement. The argument ''except erasure'' permits deletions by the '
    'functions that erase personal data or delete entries past their retention period.';

-- The IDs are in the order of the times, so that a step reads only the rows that it deletes.
CREATE FUNCTION purge_audit_log(
    older_than timestamptz, at_most integer,
    OUT purged_entries bigint, OUT purged_imports bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF older_than > now() - interval '1 year' THEN
        RAISE EXCEPTION 'the audit log of the last year is still needed';
    END IF;
    PERFORM set_config('partner_api.is_erasing', 'on', true);
    DELETE FROM audit_log WHERE id IN (
        SELECT id FROM (SELECT id, occurred_at FROM audit_log ORDER BY id LIMIT at_most) oldest WHERE occurred_at < older_than);
    GET DIAGNOSTICS purged_entries = ROW_COUNT;
    DELETE FROM imports WHERE id IN (
        SELECT id FROM (SELECT id, imported_at FROM imports ORDER BY id LIMIT at_most) oldest WHERE imported_at < older_than);
    GET DIAGNOSTICS purged_imports = ROW_COUNT;
    PERFORM set_config('partner_api.is_erasing', 'off', true);
END $$;
COMMENT ON FUNCTION purge_audit_log IS
    'Deletes the oldest entries of the audit log and of the list of imports, if they were made before a time. Returns their '
    'numbers; 0 when none is left.';
REVOKE EXECUTE ON FUNCTION purge_audit_log FROM PUBLIC;
