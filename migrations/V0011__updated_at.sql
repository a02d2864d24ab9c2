-- When a report last changed, for `updated_at` and the filters by it: the column alone, which rewrites nothing and takes its
-- lock for a moment. What moves it comes with V0014, when the indexes stand.
SET LOCAL lock_timeout = '3s';

-- Reports that are there have the moment of the migration: when they last changed was not kept.
ALTER TABLE inspections ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now();
ALTER TABLE inspections ALTER COLUMN updated_at SET DEFAULT clock_timestamp();
