-- The request log: a row for each request that reached the front door, refused ones too (SVC-5, SVC-8).
--
-- Only new tables: safe beside a version that knows nothing of them. Partitions are days of UTC by this database's clock, made
-- ahead and dropped whole (request_log::partitions). None is the default: one could not be detached concurrently any more. No
-- primary key: nothing here is evidence, and a row that was sent again after an answer was lost is looked for first.
CREATE TABLE request_log (
    -- When its head had arrived.
    at             timestamptz NOT NULL,
    -- UUIDv7: the rows of a moment stand together in the index.
    request_id     uuid NOT NULL,
    -- Whose key it is; null for one that nobody here has.
    partner_id     uuid,
    -- From the head's arrival to the answer's beginning, in microseconds.
    took_us        bigint NOT NULL,
    -- Bytes of the body that had arrived when the answer was made.
    received_bytes bigint NOT NULL,
    -- Bytes of the answer's body, of a stream as announced; null where nobody knew beforehand.
    sent_bytes     bigint,
    status         smallint NOT NULL,
    address        inet NOT NULL,
    -- `OTHER` for what is no method of HTTP's.
    method         text NOT NULL,
    -- The template of the path, never the path; for one that fits none, how much of it is the service's own (`/*`).
    route          text NOT NULL,
    operation      text,
    -- The error code, as the caller saw it, and why (request_log::Reason), which the caller may not know.
    code           text,
    reason         text,
    -- As sent, if it has the shape of a key id: proved only where a signature was right.
    key_id         text COLLATE "C",
    -- Cut, and without what looks like a secret or a person's.
    user_agent     text
) PARTITION BY RANGE (at);
CREATE INDEX request_log_by_id ON request_log (request_id);
CREATE INDEX request_log_by_time ON request_log (at);
CREATE INDEX request_log_by_key ON request_log (key_id, at) WHERE key_id IS NOT NULL;

-- How many rows are missing: written when the log can be written again, by each replica for itself.
CREATE TABLE request_log_drops (
    -- When it was told, which is after the last of them was dropped.
    at      timestamptz NOT NULL DEFAULT now(),
    -- As the database sees the replica; null through a local socket.
    replica inet DEFAULT inet_client_addr(),
    dropped bigint NOT NULL CHECK (dropped > 0),
    -- The replica's queue was full, or the database refused them or was out of reach for too long.
    why     text NOT NULL CHECK (why IN ('queue_full', 'not_written'))
);
CREATE INDEX request_log_drops_by_time ON request_log_drops (at);
