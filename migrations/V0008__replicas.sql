-- Which replicas serve, and word to them of a change to keys or grants.
SET LOCAL lock_timeout = '3s';

-- Written by each replica every few seconds; a row that is not is one that is gone. UNLOGGED: after a crash they write again.
CREATE UNLOGGED TABLE replicas (
    id          uuid PRIMARY KEY,
    host        text NOT NULL,
    address     text NOT NULL,
    environment text NOT NULL,
    version     text NOT NULL,
    -- What the master keys that it accepts are told apart by; the first one seals.
    master_keys text[] NOT NULL,
    started_at  timestamptz NOT NULL DEFAULT now(),
    seen_at     timestamptz NOT NULL DEFAULT now()
);

-- As before, and replicas hear of it when it is committed: they need not wait for their next look.
CREATE OR REPLACE FUNCTION bump_directory_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE directory_version SET version = version + 1;
    PERFORM pg_notify('directory', '');
    RETURN NULL;
END $$;
