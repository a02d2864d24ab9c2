-- Partners' remarks on reports, with the exact bytes that were sent.
SET LOCAL lock_timeout = '3s';
CALL lock_tables('SHARE ROW EXCLUSIVE', 'inspections', 'partners');

CREATE TABLE inspection_remarks (
    id              uuid        NOT NULL DEFAULT gen_random_uuid(),
    organization_id uuid        NOT NULL,
    inspection_id   uuid        NOT NULL,
    partner_id      uuid        NOT NULL REFERENCES partners,
    body            bytea       NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id, organization_id),
    FOREIGN KEY (inspection_id, organization_id) REFERENCES inspections (id, organization_id)
);
COMMENT ON TABLE inspection_remarks IS 'Partners'' remarks on reports.';
