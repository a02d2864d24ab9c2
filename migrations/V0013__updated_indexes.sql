-- Indexes for the list by `updated_at`, and for reports by their vehicle's number.
--
-- Who changes a row of `inspections` or `vehicles` waits while they are built, who reads or measures does not: the lock is
-- SHARE, and measurements only lock rows. Where that is too long, they are made beforehand by the same statements with
-- CONCURRENTLY, under the same names; this migration then finds them.
SET LOCAL lock_timeout = '3s';
CALL lock_tables('SHARE', 'inspections', 'vehicles');

-- What a filter may ask besides is in them, so that a walk past other reports never touches the table.
CREATE INDEX IF NOT EXISTS inspections_by_organization_updated ON inspections (organization_id, updated_at, id)
    INCLUDE (status, published_at, created_at) WHERE status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED');
CREATE INDEX IF NOT EXISTS inspections_by_branch_updated ON inspections (branch_id, updated_at, id)
    INCLUDE (status, published_at, created_at) WHERE status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED');
CREATE INDEX IF NOT EXISTS inspections_by_vehicle ON inspections (vehicle_id);
CREATE INDEX IF NOT EXISTS vehicles_by_vin ON vehicles (vin);
