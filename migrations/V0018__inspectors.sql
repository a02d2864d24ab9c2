-- Inspectors: tokens bound to branches, sessions, attempts to sign in, and how a report came to its status (INS).
--
-- New tables, and a column with a constant default, which rewrites nothing: safe beside a version that knows nothing of them. The
-- locks are taken for a moment; where they cannot be had soon, the migration gives up, and can be repeated.
SET LOCAL lock_timeout = '3s';
CALL lock_tables('ACCESS EXCLUSIVE', 'inspections', 'branches', 'organizations');

CREATE TABLE inspectors (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    name            text NOT NULL,
    -- SHA-256 of the token, which has 130 random bits: nothing is to be gained by guessing, and nothing here opens anything.
    token_hash      bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
    -- The last characters of the token, by which people tell tokens apart.
    token_hint      text NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    revoked_at      timestamptz,
    UNIQUE (id, organization_id)
);
-- Of names that are in force an organisation has one of each.
CREATE UNIQUE INDEX inspectors_by_name ON inspectors (organization_id, lower(name)) WHERE revoked_at IS NULL;

CREATE TABLE inspector_branches (
    inspector_id    uuid NOT NULL,
    organization_id uuid NOT NULL,
    branch_id       uuid NOT NULL,
    PRIMARY KEY (inspector_id, branch_id),
    FOREIGN KEY (inspector_id, organization_id) REFERENCES inspectors (id, organization_id),
    FOREIGN KEY (branch_id, organization_id) REFERENCES branches (id, organization_id)
);

CREATE TABLE inspector_sessions (
    -- SHA-256 of the cookie.
    cookie_hash     bytea PRIMARY KEY CHECK (octet_length(cookie_hash) = 32),
    inspector_id    uuid NOT NULL,
    organization_id uuid NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    -- The last request, to the minute.
    seen_at         timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (inspector_id, organization_id) REFERENCES inspectors (id, organization_id)
);
CREATE INDEX inspector_sessions_by_inspector ON inspector_sessions (inspector_id);
CREATE INDEX inspector_sessions_by_beginning ON inspector_sessions (created_at);

-- Attempts to sign in that are not known to have succeeded, by address (of IPv6 the network of 64 bits).
CREATE TABLE sign_in_attempts (
    address  inet PRIMARY KEY,
    began_at timestamptz NOT NULL DEFAULT now(),
    failed   integer NOT NULL
);
CREATE INDEX sign_in_attempts_by_beginning ON sign_in_attempts (began_at);

-- How a report came to its status. Only ever added to.
CREATE TABLE inspection_transitions (
    inspection_id   uuid NOT NULL REFERENCES inspections,
    number          integer NOT NULL,
    organization_id uuid NOT NULL,
    -- Null where it was opened.
    from_status     text,
    to_status       text NOT NULL,
    reason          text,
    by_inspector    uuid NOT NULL,
    -- As the inspector was called then.
    by_name         text NOT NULL,
    at              timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (inspection_id, number),
    FOREIGN KEY (by_inspector, organization_id) REFERENCES inspectors (id, organization_id)
);
CREATE TRIGGER keep BEFORE DELETE OR UPDATE OR TRUNCATE ON inspection_transitions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_changing();

-- The running number in the number of a report that an inspector opens. Numbers that are lost leave gaps.
CREATE SEQUENCE report_numbers;

-- Grows with each change of the report's own row by an inspector.
ALTER TABLE inspections ADD COLUMN version bigint NOT NULL DEFAULT 1;
