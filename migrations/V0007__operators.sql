-- What operators do: a log of their changes that is only ever added to, and the limit of active keys.
SET LOCAL lock_timeout = '3s';

CREATE TABLE audit_log (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The account of the operating system, and its machine.
    actor         text NOT NULL,
    host          text NOT NULL,
    -- What the database knows by itself: nobody's claim.
    database_role text NOT NULL DEFAULT session_user,
    address       inet DEFAULT inet_client_addr(),
    -- The command without its values, such as `key revoke`.
    command       text NOT NULL,
    -- What was changed: a kind, such as `key`, and an id.
    kind          text NOT NULL,
    subject       text NOT NULL,
    -- A sentence, and the command that undoes it.
    what          text NOT NULL,
    undo          text,
    -- The thing as it was and as it became. Never a secret.
    before        jsonb,
    after         jsonb
);
CREATE INDEX audit_log_by_subject ON audit_log (kind, subject, id DESC);

CREATE TRIGGER keep BEFORE DELETE OR UPDATE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_changing();

-- A partner has at most two active keys per environment (KEY-11). The partner's row is locked, so that of two that are made at
-- once the second sees the first; NO KEY, so that measurements, which refer to the partner, do not wait. What was active
-- before this migration stays as it is until it is changed.
CREATE FUNCTION at_most_two_active_keys() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    others bigint;
BEGIN
    IF NEW.revoked_at IS NOT NULL OR NEW.expires_at <= clock_timestamp() THEN
        RETURN NEW;
    END IF;
    PERFORM FROM partners WHERE id = NEW.partner_id FOR NO KEY UPDATE;
    SELECT count(*) INTO others FROM api_keys
    WHERE partner_id = NEW.partner_id AND environment = NEW.environment AND key_id <> NEW.key_id
      AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp());
    IF others >= 2 THEN
        RAISE EXCEPTION 'a partner has at most two active keys per environment'
            USING ERRCODE = 'check_violation', CONSTRAINT = 'at_most_two_active_keys';
    END IF;
    RETURN NEW;
END $$;
-- Renewing an expired key makes it active, too; other changes do not count.
CREATE TRIGGER at_most_two_active_keys BEFORE INSERT OR UPDATE OF partner_id, environment, expires_at, revoked_at ON api_keys
    FOR EACH ROW EXECUTE FUNCTION at_most_two_active_keys();
