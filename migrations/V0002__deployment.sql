-- The identity of the database, and the functions through which the service maintains partitions without owning any table.

SET LOCAL lock_timeout = '3s';

CREATE TABLE deployment (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id          uuid NOT NULL DEFAULT gen_random_uuid(),
    environment text CHECK (environment IN ('test', 'live'))
);
COMMENT ON TABLE deployment IS
    'One row that says which deployment the database belongs to. Programs that are configured for another one refuse to use the '
    'database. Only the owner of the schema can change it.';
COMMENT ON COLUMN deployment.id IS 'Copies of the database, such as restored backups, have the same ID.';
COMMENT ON COLUMN deployment.environment IS 'Written by the program that migrates the database; null until then.';
INSERT INTO deployment DEFAULT VALUES;

CREATE FUNCTION partition_range(parent text, number bigint, OUT name text, OUT starts text, OUT ends text, OUT current_number bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    CASE parent
        WHEN 'used_nonces' THEN
            name := format('used_nonces_%s', number);
            starts := number;
            ends := number + 1;
            current_number := floor(extract(epoch FROM now()) / 900);
        WHEN 'request_log' THEN
            name := 'request_log_' || to_char(date '1970-01-01' + number::integer, 'YYYYMMDD');
            starts := to_char(date '1970-01-01' + number::integer, 'YYYY-MM-DD 00:00:00+00');
            ends := to_char(date '1970-01-01' + number::integer + 1, 'YYYY-MM-DD 00:00:00+00');
            current_number := floor(extract(epoch FROM now()) / 86400);
        WHEN 'inspection_form_answer_history' THEN
            name := format('inspection_form_answer_history_%s', number);
            starts := format('%s-01-01 00:00:00+00', number);
            ends := format('%s-01-01 00:00:00+00', number + 1);
            current_number := extract(year FROM now() AT TIME ZONE 'UTC');
        ELSE
            RAISE EXCEPTION 'the partitions of % are not maintained by the service', parent;
    END CASE;
END $$;
COMMENT ON FUNCTION partition_range IS
    'The name and the bounds of a partition, and the number of the current one by the database''s clock. Numbers count periods since '
    '1970, or are years.';

-- The two functions below run with the rights of the owner. They therefore accept only numbers, and refuse those that a correct
-- service never asks for: its role must not be able to remove rows that are still needed.
CREATE FUNCTION create_partition(parent text, number bigint) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '3s' AS $$
DECLARE
    range record;
    detaching boolean;
BEGIN
    SELECT * INTO STRICT range FROM partition_range(parent, number);
    IF number NOT BETWEEN range.current_number - 1 AND range.current_number + 100 THEN
        RAISE EXCEPTION 'partition % of % is not due yet, or is past', number, parent;
    END IF;
    SELECT inhdetachpending INTO detaching FROM pg_inherits WHERE inhrelid = to_regclass(range.name);
    IF NOT detaching THEN
        RETURN;
    END IF;
    IF detaching THEN
        EXECUTE format('DROP TABLE %I', range.name);
    END IF;
    -- Attaching an existing table, unlike creating a partition, does not lock the parent against requests.
    IF to_regclass(range.name) IS NULL THEN
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', range.name, parent);
    END IF;
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, range.name, range.starts, range.ends);
END $$;
COMMENT ON FUNCTION create_partition IS 'Creates a current or future partition, if it does not exist.';
REVOKE EXECUTE ON FUNCTION create_partition FROM PUBLIC;

-- DETACH CONCURRENTLY is impossible in a function. DROP locks the parent, and requests queue behind a waiting DROP. So the function
-- does not even try while a long transaction, such as a backup, uses the tables, and otherwise waits for 100 ms at most.
CREATE FUNCTION drop_partition(parent text, number bigint) RETURNS boolean LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
    range record;
    users text[];
BEGIN
    SELECT * INTO STRICT range FROM partition_range(parent, number);
    IF parent = 'inspection_form_answer_history' OR number >= range.current_number - 1 THEN
        RAISE EXCEPTION 'partition % of % is still needed', number, parent;
    END IF;
    users := ARRAY(
        SELECT virtualtransaction FROM pg_locks
        WHERE relation IN (to_regclass(parent), to_regclass(range.name)) AND pid IS DISTINCT FROM pg_backend_pid()
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database()));
    IF cardinality(users) > 0 THEN
        PERFORM pg_sleep(0.5);
        IF EXISTS (
            SELECT FROM pg_locks
            WHERE relation IN (to_regclass(parent), to_regclass(range.name)) AND virtualtransaction = ANY (users)
              AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) THEN
            RETURN false;
        END IF;
    END IF;
    EXECUTE format('DROP TABLE IF EXISTS %I', range.name);
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END $$;
COMMENT ON FUNCTION drop_partition IS
    'Drops a partition that is past, with its rows. Returns false if a transaction uses the table; try again later.';
REVOKE EXECUTE ON FUNCTION drop_partition FROM PUBLIC;
