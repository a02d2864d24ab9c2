-- How a migration that changes several tables takes them. Nothing that exists is touched.

-- Locks tables in a mode, all or none. Whoever waits for one table while it holds another may be waited for in turn, and after a
-- second (`deadlock_timeout`) PostgreSQL ends one of the two, which may be a request. So each is waited for shorter than that,
-- then all are let go for a moment. After 5 s the caller fails with what LOCK says, and can be repeated.
CREATE PROCEDURE lock_tables(mode text, VARIADIC tables regclass[]) LANGUAGE plpgsql AS $$
DECLARE
    names constant text := (SELECT string_agg(name::text, ', ' ORDER BY place) FROM unnest(tables) WITH ORDINALITY t (name, place));
    each constant text := format('%sms', 900 / cardinality(tables));
    before constant text := current_setting('lock_timeout');
    last constant timestamptz := clock_timestamp() + interval '5 seconds';
BEGIN
    LOOP
        BEGIN
            PERFORM set_config('lock_timeout', each, true);
            EXECUTE format('LOCK TABLE %s IN %s MODE', names, mode);
            PERFORM set_config('lock_timeout', before, true);
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            IF clock_timestamp() > last THEN
                RAISE;
            END IF;
            PERFORM pg_sleep(0.02 + 0.08 * random());
        END;
    END LOOP;
END $$;
