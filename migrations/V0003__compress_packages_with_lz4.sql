-- Expand: the previous release reads and writes the columns as before.
SET LOCAL lock_timeout = '3s';
CALL lock_tables('ACCESS EXCLUSIVE', 'measurements', 'measurement_mismatches');

-- For a package of a megabyte, pglz takes 7 to 39 ms of processor time, and LZ4 0.5 to 8 ms. A key must not cost others that much.
-- Only new rows use it. A server that was built without LZ4 keeps pglz.
DO $$
BEGIN
    ALTER TABLE measurements ALTER COLUMN raw SET COMPRESSION lz4;
    ALTER TABLE measurement_mismatches ALTER COLUMN raw SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    RAISE NOTICE 'this PostgreSQL was built without LZ4, so packages are compressed with pglz';
END $$;
