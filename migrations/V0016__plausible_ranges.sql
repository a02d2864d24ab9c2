-- Values that cannot be: the ranges that organisations narrow, and the word for what lies outside.
--
-- Safe on a live system: a new table, and a constraint that admits more than before; no row is read or rewritten. The lock
-- is taken for a moment; where it cannot be had soon, the migration gives up, and can be repeated.
SET LOCAL lock_timeout = '3s';
CALL lock_tables('ACCESS EXCLUSIVE', 'measurements', 'organizations');

-- Which values of a point an organisation takes for possible, narrower than what the API's document says. Inclusive.
CREATE TABLE plausible_ranges (
    organization_id uuid NOT NULL REFERENCES organizations,
    point_code      text NOT NULL,
    minimum         numeric,
    maximum         numeric,
    PRIMARY KEY (organization_id, point_code),
    CHECK (minimum IS NOT NULL OR maximum IS NOT NULL),
    CHECK (minimum <= maximum)
);

ALTER TABLE measurements
    DROP CONSTRAINT measurements_point_outcomes,
    -- NOT VALID: what the narrower one admitted, this one does.
    ADD CONSTRAINT measurements_point_outcomes CHECK (
        point_outcomes <@ ARRAY['applied', 'unknown_point', 'no_status', 'superseded', 'implausible']
    ) NOT VALID;
