-- Measures the cost of the organization ID in the primary key of the answers, the largest table (docs/scaling.md): insert time and size
-- for 2,000,000 rows of 40 organizations, without the ID, with it last in the key (as in the schema), and with it first.
--
--   cargo run --bin test-postgres -- sh -c 'psql --quiet --file crates/bench/keys.sql "$TEST_DATABASE_URL"'

CREATE TABLE without (
    inspection_form_id uuid NOT NULL, point_id uuid NOT NULL, status_code text NOT NULL, status_label text NOT NULL,
    severity text NOT NULL, numeric_value numeric, note text NOT NULL DEFAULT '', by_device boolean NOT NULL,
    measurement_id uuid, written_by text, written_at timestamptz NOT NULL,
    PRIMARY KEY (inspection_form_id, point_id)
);
CREATE TABLE first (LIKE without INCLUDING DEFAULTS);
ALTER TABLE first ADD COLUMN organization_id uuid NOT NULL;
CREATE TABLE last (LIKE first INCLUDING DEFAULTS);
ALTER TABLE first ADD PRIMARY KEY (organization_id, inspection_form_id, point_id);
ALTER TABLE last ADD PRIMARY KEY (inspection_form_id, point_id, organization_id);

-- The IDs of forms increase with time, as UUIDs of version 7 do. The organizations alternate.
CREATE TABLE answers AS
SELECT (lpad(to_hex(1700000000000 + n / 12), 12, '0') || substr(md5((n / 12)::text), 1, 20))::uuid AS form,
       md5('point' || n % 12)::uuid AS point, 'GOOD' AS code, 'İyi' AS label, 'NONE' AS severity, 2.85 AS value, '' AS note,
       true AS by_device, md5('measurement' || n / 12)::uuid AS measurement, NULL::text AS by, now() AS at,
       md5('organization' || (n / 12) % 40)::uuid AS organization
FROM generate_series(1, 2000000) AS n;

CREATE TABLE times (what text, seconds double precision);
DO $$
DECLARE
    began timestamptz;
    columns text := 'inspection_form_id, point_id, status_code, status_label, severity, numeric_value, note, by_device, measurement_id,
                     written_by, written_at';
    what text;
BEGIN
    FOR round IN 1..5 LOOP
        FOREACH what IN ARRAY ARRAY['without', 'first', 'last'] LOOP
            EXECUTE format('TRUNCATE %I', what);
            began := clock_timestamp();
            EXECUTE CASE what
                WHEN 'without' THEN format('INSERT INTO %I (%s) SELECT form, point, code, label, severity, value, note, by_device,
                                            measurement, by, at FROM answers', what, columns)
                ELSE format('INSERT INTO %I (%s, organization_id) SELECT * FROM answers', what, columns)
            END;
            INSERT INTO times VALUES (what, extract(epoch FROM clock_timestamp() - began));
        END LOOP;
    END LOOP;
END $$;

SELECT what, round((percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds))::numeric, 2) AS "median, s",
       round((percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) /
              (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FROM times WHERE what = 'without'))::numeric, 2) AS "÷ without",
       pg_size_pretty(pg_table_size(what::regclass)) AS rows, pg_size_pretty(pg_indexes_size(what::regclass)) AS key,
       round(pg_total_relation_size(what::regclass) / pg_total_relation_size('without')::numeric, 2) AS "size ÷ without"
FROM times GROUP BY what ORDER BY 3;
