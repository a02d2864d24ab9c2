-- The schema of the service. README.md in this folder has the rules for the migrations that follow.
--
-- Conventions
-- * Ids are UUIDv7 and made by the service. Times are `timestamptz` and end in `_at`.
-- * A closed vocabulary is `text` with a CHECK. Vocabularies that the contract leaves open (severity, fuel type, kind of photo …)
--   have no CHECK: unknown values pass through.
-- * Every row of a tenant carries its owner in `organization_id` (reports and what belongs to them) or `partner_id` (keys, grants,
--   measurements). A child refers to its parent together with the owner, so that no row can point into another organization.
--   In the keys of reports and what belongs to them the owner is the last column.
-- * A trigger holds an invariant whoever writes: the service, an operator's command, an import, or a person with psql.

SET LOCAL lock_timeout = '3s';

------------------------------------------------------------------------------------------------------------------------
-- Functions that several tables share

CREATE FUNCTION prevent_modification() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% are never changed or deleted', TG_TABLE_NAME;
END $$;
COMMENT ON FUNCTION prevent_modification IS 'Makes a table append-only, as a BEFORE trigger for each statement.';

CREATE FUNCTION prevent_removal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND to_jsonb(OLD) -> TG_ARGV[0] = to_jsonb(NEW) -> TG_ARGV[0] THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'rows of % are never deleted, and keep their %: measurements refer to them', TG_TABLE_NAME, TG_ARGV[0]
        USING ERRCODE = 'foreign_key_violation';
END $$;
COMMENT ON FUNCTION prevent_removal IS
    'Keeps a row, and its key, which the argument names. Measurements refer to it without a foreign key: see the comment there.';

CREATE FUNCTION later_than(before timestamptz) RETURNS timestamptz LANGUAGE sql VOLATILE
RETURN greatest(before + interval '1 microsecond', clock_timestamp());
COMMENT ON FUNCTION later_than IS 'The current time, but always later than the given one, even after the clock was set back.';

-- Waiting for one table while holding another can deadlock with a request, and after `deadlock_timeout` (1 s) PostgreSQL ends
-- one of the two. So each table is waited for less than that, and then all are released for a moment. After 5 s the caller
-- fails with the error of LOCK, and can be repeated.
CREATE PROCEDURE lock_tables(mode text, VARIADIC tables regclass[]) LANGUAGE plpgsql AS $$
DECLARE
    names constant text := (SELECT string_agg(name::text, ', ' ORDER BY place) FROM unnest(tables) WITH ORDINALITY t (name, place));
    timeout_for_each constant text := format('%sms', 900 / cardinality(tables));
    timeout_before constant text := current_setting('lock_timeout');
    gives_up_at constant timestamptz := clock_timestamp() + interval '5 seconds';
BEGIN
    LOOP
        BEGIN
            PERFORM set_config('lock_timeout', timeout_for_each, true);
            EXECUTE format('LOCK TABLE %s IN %s MODE', names, mode);
            PERFORM set_config('lock_timeout', timeout_before, true);
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            IF clock_timestamp() > gives_up_at THEN
                RAISE;
            END IF;
            PERFORM pg_sleep(0.02 + 0.08 * random());
        END;
    END LOOP;
END $$;
COMMENT ON PROCEDURE lock_tables IS 'Locks tables in a mode, all or none. Migrations that change several tables begin with it.';

------------------------------------------------------------------------------------------------------------------------
-- Organizations and branches

CREATE TABLE organizations (
    id                 uuid PRIMARY KEY,
    slug               text NOT NULL UNIQUE,
    name               text NOT NULL,
    pii_mode           text NOT NULL CHECK (pii_mode IN ('NONE', 'MASKED', 'FULL')),
    created_at         timestamptz NOT NULL DEFAULT now(),
    reports_changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE organizations IS 'The organizations of the platform: its tenants.';
COMMENT ON COLUMN organizations.slug IS 'The name in addresses.';
COMMENT ON COLUMN organizations.pii_mode IS 'How much partners see of persons.';
COMMENT ON COLUMN organizations.reports_changed_at IS
    'When something changed that all reports of the organization show. A report''s updated_at is the later of this and its own: '
    'changing the mode writes one row, not one for each report.';

CREATE TABLE branches (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    code            text NOT NULL,
    code_folded     text NOT NULL,
    name            text NOT NULL,
    city            text NOT NULL,
    district        text NOT NULL,
    address         text NOT NULL DEFAULT '',
    telephone       text NOT NULL DEFAULT '',
    is_active       boolean NOT NULL DEFAULT true,
    UNIQUE (id, organization_id)
);
COMMENT ON TABLE branches IS 'The branches of organizations. They are deactivated, never deleted.';
COMMENT ON COLUMN branches.code_folded IS
    'The code with its letter case folded, which submissions are compared with. Not unique: a submission that '
    'matches two branches in its partner''s scope is answered with 400.';
COMMENT ON COLUMN branches.address IS 'The street address without district and city; empty if unknown.';
COMMENT ON COLUMN branches.telephone IS 'Empty if unknown.';
CREATE INDEX branches_by_code ON branches (code_folded);
CREATE INDEX branches_by_organization ON branches (organization_id, code);

CREATE TRIGGER prevent_removal BEFORE DELETE OR UPDATE OF id ON branches
    FOR EACH ROW EXECUTE FUNCTION prevent_removal('id');

------------------------------------------------------------------------------------------------------------------------
-- Partners, their keys and their grants

CREATE TABLE partners (
    id         uuid PRIMARY KEY,
    name       text NOT NULL UNIQUE,
    is_enabled boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE partners IS 'Who calls the partner API. Partners are disabled; one that has keys cannot be deleted.';

CREATE TABLE api_keys (
    key_id            text PRIMARY KEY,
    partner_id        uuid NOT NULL REFERENCES partners,
    environment       text NOT NULL CHECK (environment IN ('test', 'live')),
    secret_nonce      bytea NOT NULL CHECK (octet_length(secret_nonce) = 24),
    secret_ciphertext bytea NOT NULL,
    scopes            text[] NOT NULL DEFAULT '{}' CHECK (scopes <@ ARRAY['test-line:write']),
    rate_limit        integer NOT NULL DEFAULT 60 CHECK (rate_limit > 0),
    allowlist         cidr[] NOT NULL DEFAULT '{}',
    allowlist_mode    text NOT NULL DEFAULT 'enforce' CHECK (allowlist_mode IN ('enforce', 'report')),
    created_at        timestamptz NOT NULL DEFAULT now(),
    expires_at        timestamptz,
    revoked_at        timestamptz
);
COMMENT ON TABLE api_keys IS 'The keys that partners sign with. Keys are revoked or expire; they are never deleted.';
COMMENT ON COLUMN api_keys.secret_nonce IS 'The nonce under which secret_ciphertext was sealed.';
COMMENT ON COLUMN api_keys.secret_ciphertext IS
    'The secret under the master key: XChaCha20-Poly1305, with the key id as associated data.';
COMMENT ON COLUMN api_keys.rate_limit IS 'Requests per minute.';
COMMENT ON COLUMN api_keys.allowlist IS 'The addresses that may use the key; empty admits every address.';
COMMENT ON COLUMN api_keys.allowlist_mode IS 'What happens to other addresses: enforce refuses them, report only logs them.';
CREATE INDEX api_keys_by_partner ON api_keys (partner_id);

CREATE TABLE grants (
    partner_id      uuid NOT NULL REFERENCES partners,
    organization_id uuid NOT NULL REFERENCES organizations,
    all_branches    boolean NOT NULL,
    PRIMARY KEY (partner_id, organization_id)
);
COMMENT ON TABLE grants IS 'The organizations whose reports a partner may read, and to whose branches it may send measurements.';
COMMENT ON COLUMN grants.all_branches IS 'False: only the branches in grant_branches.';
CREATE INDEX grants_by_organization ON grants (organization_id);

CREATE TABLE grant_branches (
    partner_id      uuid NOT NULL,
    organization_id uuid NOT NULL,
    branch_id       uuid NOT NULL,
    PRIMARY KEY (partner_id, branch_id),
    FOREIGN KEY (partner_id, organization_id) REFERENCES grants ON DELETE CASCADE,
    FOREIGN KEY (branch_id, organization_id) REFERENCES branches (id, organization_id)
);
COMMENT ON TABLE grant_branches IS 'The branches of a grant that does not cover the whole organization.';
CREATE INDEX grant_branches_by_branch ON grant_branches (branch_id);

CREATE TRIGGER prevent_removal BEFORE DELETE OR UPDATE OF key_id ON api_keys
    FOR EACH ROW EXECUTE FUNCTION prevent_removal('key_id');

-- The partner's row is locked, so that of two keys that are created at once the second sees the first. NO KEY UPDATE does not
-- conflict with the foreign keys that refer to the partner.
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
-- Renewing an expired key activates it, too; other changes do not count.
CREATE TRIGGER at_most_two_active_keys BEFORE INSERT OR UPDATE OF partner_id, environment, expires_at, revoked_at ON api_keys
    FOR EACH ROW EXECUTE FUNCTION at_most_two_active_keys();

CREATE TABLE directory_version (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version  bigint NOT NULL
);
COMMENT ON TABLE directory_version IS
    'One row whose number rises with every change to partners, keys or grants: replicas read them again only if it has changed.';
INSERT INTO directory_version (version) VALUES (1);

CREATE FUNCTION bump_directory_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE directory_version SET version = version + 1;
    PERFORM pg_notify('directory', '');
    RETURN NULL;
END $$;
COMMENT ON FUNCTION bump_directory_version IS
    'Tells replicas of a change: those that listen when it is committed, the others at their next look.';
CREATE TRIGGER bump_directory_version AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON partners
    FOR EACH STATEMENT EXECUTE FUNCTION bump_directory_version();
CREATE TRIGGER bump_directory_version AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON api_keys
    FOR EACH STATEMENT EXECUTE FUNCTION bump_directory_version();
CREATE TRIGGER bump_directory_version AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON grants
    FOR EACH STATEMENT EXECUTE FUNCTION bump_directory_version();
CREATE TRIGGER bump_directory_version AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON grant_branches
    FOR EACH STATEMENT EXECUTE FUNCTION bump_directory_version();

------------------------------------------------------------------------------------------------------------------------
-- Admission

CREATE TABLE used_nonces (
    bucket bigint NOT NULL,
    digest uuid NOT NULL,
    PRIMARY KEY (bucket, digest)
) PARTITION BY RANGE (bucket);
COMMENT ON TABLE used_nonces IS
    'Nonces that were used, each remembered for 900 to 1,800 s. The service makes the partitions ahead and drops them whole '
    '(service/src/admission/nonces.rs). WAL-logged: a lost nonce is a replay that works.';
COMMENT ON COLUMN used_nonces.bucket IS
    'floor(unix time / 900 s) by the database''s clock. A nonce is written into the bucket of its use and looked up in the one '
    'before. In a bucket''s last half minute it is written into the next one, too: a use that is not committed yet is met there.';
COMMENT ON COLUMN used_nonces.digest IS 'The first 16 bytes of SHA-256 over key id, a zero byte, and nonce.';

CREATE TABLE rate_windows (
    key_id     text COLLATE "C" PRIMARY KEY,
    started_at timestamptz NOT NULL,
    used       integer NOT NULL CHECK (used >= 0)
) WITH (fillfactor = 50);
COMMENT ON TABLE rate_windows IS
    'The fixed rate window of each key; the first request after the last one ended opens it. No foreign key: a batch of '
    'admissions holds many keys, and must not fail because of one.';
COMMENT ON COLUMN rate_windows.used IS 'Requests in the window.';

------------------------------------------------------------------------------------------------------------------------
-- Vehicles and inspections

CREATE TABLE vehicles (
    id               uuid PRIMARY KEY,
    plate            text NOT NULL,
    vin              text NOT NULL,
    brand            text NOT NULL,
    model            text NOT NULL,
    year             integer NOT NULL,
    type             text NOT NULL,
    fuel_type        text NOT NULL,
    transmission     text NOT NULL,
    color            text NOT NULL,
    mileage_km       integer NOT NULL CHECK (mileage_km >= 0),
    factory_power_hp numeric(7, 2) CHECK (factory_power_hp > 0)
);
COMMENT ON TABLE vehicles IS
    'Vehicles as registered. They belong to no organization: an import identifies them by VIN whoever inspected them.';
COMMENT ON COLUMN vehicles.plate IS 'Normalized: upper case, no spaces.';
COMMENT ON COLUMN vehicles.type IS 'The body type.';
COMMENT ON COLUMN vehicles.factory_power_hp IS 'The registered power; without it no DYNO_RATIO is computed.';
CREATE INDEX vehicles_by_plate ON vehicles (plate);
CREATE INDEX vehicles_by_vin ON vehicles (vin);

CREATE TABLE inspections (
    id                  uuid NOT NULL,
    report_number       text NOT NULL UNIQUE,
    organization_id     uuid NOT NULL REFERENCES organizations,
    branch_id           uuid NOT NULL,
    vehicle_id          uuid NOT NULL REFERENCES vehicles,
    status              text NOT NULL CHECK (status IN ('DRAFT', 'IN_REVIEW', 'REVISION_REQUESTED', 'CANCEL_REQUESTED',
                                                        'PUBLISHED', 'ARCHIVED', 'CANCELLED')),
    plate               text NOT NULL,
    package_name        text NOT NULL,
    package_base_price  numeric(12, 2) NOT NULL,
    base_price          numeric(12, 2) NOT NULL,
    discount_percent    numeric(5, 2) NOT NULL DEFAULT 0 CHECK (discount_percent BETWEEN 0 AND 100),
    discount_name       text NOT NULL DEFAULT '',
    final_price         numeric(12, 2) NOT NULL,
    payment_type        text NOT NULL,
    currency            text NOT NULL DEFAULT 'TRY',
    snapshot_vin        text NOT NULL,
    snapshot_mileage_km integer NOT NULL CHECK (snapshot_mileage_km >= 0),
    summary             text NOT NULL DEFAULT '',
    recommendation      text NOT NULL DEFAULT '',
    overall_score       integer NOT NULL DEFAULT 0 CHECK (overall_score BETWEEN 0 AND 100),
    inspector_name      text NOT NULL DEFAULT '',
    public_slug         text UNIQUE,
    pdf_object_key      text,
    published_at        timestamptz,
    created_at          timestamptz NOT NULL DEFAULT now(),
    updated_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    version             bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (id, organization_id),
    FOREIGN KEY (branch_id, organization_id) REFERENCES branches (id, organization_id),
    CHECK (published_at IS NOT NULL OR status NOT IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED'))
);
COMMENT ON TABLE inspections IS
    'Inspections, and the reports on them. Partners see those that are published, archived or canceled.';
COMMENT ON COLUMN inspections.plate IS
    'The plate under which the report was opened, normalized: measurements are matched with it, whatever the vehicle''s plate becomes.';
COMMENT ON COLUMN inspections.package_base_price IS 'The package''s list price.';
COMMENT ON COLUMN inspections.base_price IS 'The price before the discount.';
COMMENT ON COLUMN inspections.snapshot_vin IS 'The VIN as it was read at the inspection.';
COMMENT ON COLUMN inspections.snapshot_mileage_km IS 'The mileage as it was read at the inspection.';
COMMENT ON COLUMN inspections.inspector_name IS 'Who inspected the vehicle and answers for the report; empty if unknown.';
COMMENT ON COLUMN inspections.public_slug IS 'The name of the public page. A report without one has no PDF.';
COMMENT ON COLUMN inspections.pdf_object_key IS 'The stored object that holds the rendered PDF.';
COMMENT ON COLUMN inspections.updated_at IS
    'When something last changed that partners see of this report alone. See organizations.reports_changed_at.';
COMMENT ON COLUMN inspections.version IS 'Grows with each change of this row by an inspector, for optimistic locking.';
-- The list in its order, by organization and by branch, for the query shapes of crates/store/src/inspections. `published_at` is included so
-- that a walk past reports outside a range of it never touches the table (ten times faster; script/bench-list).
CREATE INDEX inspections_by_organization ON inspections (organization_id, created_at DESC, id DESC) INCLUDE (published_at)
    WHERE status IN ('PUBLISHED', 'ARCHIVED');
CREATE INDEX inspections_by_branch ON inspections (branch_id, created_at DESC, id DESC) INCLUDE (published_at)
    WHERE status IN ('PUBLISHED', 'ARCHIVED');
CREATE INDEX inspections_by_organization_status ON inspections (organization_id, status, created_at DESC, id DESC)
    INCLUDE (published_at);
CREATE INDEX inspections_by_branch_status ON inspections (branch_id, status, created_at DESC, id DESC)
    INCLUDE (published_at);
-- A range of `published_at` with few reports in it: the incremental sync.
CREATE INDEX inspections_by_organization_published ON inspections (organization_id, published_at DESC)
    WHERE status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED');
CREATE INDEX inspections_by_branch_published ON inspections (branch_id, published_at DESC)
    WHERE status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED');
-- The list of changes. What a filter may ask besides is included, so that a walk past other reports never touches the table.
CREATE INDEX inspections_by_organization_updated ON inspections (organization_id, updated_at, id)
    INCLUDE (status, published_at, created_at) WHERE status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED');
CREATE INDEX inspections_by_branch_updated ON inspections (branch_id, updated_at, id)
    INCLUDE (status, published_at, created_at) WHERE status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED');
CREATE INDEX inspections_by_vehicle ON inspections (vehicle_id);
-- Reports in their writing phase, by what a measurement names.
CREATE INDEX inspections_open ON inspections (branch_id, plate, created_at DESC, id DESC)
    WHERE status IN ('DRAFT', 'REVISION_REQUESTED');

CREATE SEQUENCE report_numbers;
COMMENT ON SEQUENCE report_numbers IS
    'The running number in the numbers of reports that inspectors open. A transaction that is rolled back leaves a gap.';

------------------------------------------------------------------------------------------------------------------------
-- Forms: templates, and the answers given in a report

CREATE TABLE form_templates (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    code            text NOT NULL,
    name            text NOT NULL,
    score_category  text NOT NULL,
    position        integer NOT NULL,
    is_test_line    boolean NOT NULL DEFAULT false,
    UNIQUE (id, organization_id),
    UNIQUE (organization_id, code)
);
COMMENT ON TABLE form_templates IS 'The forms that an organization''s inspectors fill in.';
COMMENT ON COLUMN form_templates.is_test_line IS 'Whether device measurements are written into this form; one for an organization.';
CREATE UNIQUE INDEX form_templates_one_test_line ON form_templates (organization_id) WHERE is_test_line;

CREATE TABLE form_template_points (
    id              uuid NOT NULL,
    organization_id uuid NOT NULL,
    template_id     uuid NOT NULL,
    code            text NOT NULL,
    name            text NOT NULL,
    unit            text,
    position        integer NOT NULL,
    PRIMARY KEY (id, organization_id),
    UNIQUE (template_id, code, organization_id),
    FOREIGN KEY (template_id, organization_id) REFERENCES form_templates (id, organization_id)
);
COMMENT ON TABLE form_template_points IS 'The points of a form. A point that some report answers is not deleted.';
COMMENT ON COLUMN form_template_points.code IS 'On the test-line form, the code of the measurement point.';

CREATE TABLE inspection_forms (
    id              uuid NOT NULL,
    organization_id uuid NOT NULL,
    inspection_id   uuid NOT NULL,
    template_id     uuid NOT NULL,
    general_note    text NOT NULL DEFAULT '',
    PRIMARY KEY (id, organization_id),
    UNIQUE (inspection_id, template_id, organization_id),
    FOREIGN KEY (inspection_id, organization_id) REFERENCES inspections (id, organization_id),
    FOREIGN KEY (template_id, organization_id) REFERENCES form_templates (id, organization_id)
);
COMMENT ON TABLE inspection_forms IS 'The forms of a report.';
CREATE INDEX inspection_forms_by_template ON inspection_forms (template_id);

CREATE TABLE inspection_form_answers (
    inspection_form_id uuid NOT NULL,
    point_id           uuid NOT NULL,
    organization_id    uuid NOT NULL,
    status_code        text NOT NULL,
    status_label       text NOT NULL,
    severity           text NOT NULL,
    numeric_value      numeric,
    note               text NOT NULL DEFAULT '',
    by_device          boolean NOT NULL,
    measurement_id     uuid,
    written_by         text,
    written_at         timestamptz NOT NULL,
    PRIMARY KEY (inspection_form_id, point_id, organization_id),
    FOREIGN KEY (inspection_form_id, organization_id) REFERENCES inspection_forms (id, organization_id),
    FOREIGN KEY (point_id, organization_id) REFERENCES form_template_points (id, organization_id),
    CONSTRAINT inspection_form_answers_writer CHECK (
        num_nonnulls(measurement_id, written_by) = 1 AND (by_device OR measurement_id IS NULL))
);
COMMENT ON TABLE inspection_form_answers IS 'What was found at the points of a report''s forms: the largest table.';
COMMENT ON COLUMN inspection_form_answers.by_device IS 'Whether a device wrote the value, or an inspector.';
COMMENT ON COLUMN inspection_form_answers.measurement_id IS 'The measurement whose value it is.';
COMMENT ON COLUMN inspection_form_answers.written_by IS
    'The inspector''s name. Of an imported device value whose measurement is not in this database, the text of the import.';
CREATE INDEX inspection_form_answers_by_point ON inspection_form_answers (point_id);

CREATE TABLE inspection_form_answer_history (
    inspection_form_id uuid NOT NULL,
    point_id           uuid NOT NULL,
    organization_id    uuid NOT NULL,
    status_code        text NOT NULL,
    status_label       text NOT NULL,
    severity           text NOT NULL,
    numeric_value      numeric,
    note               text NOT NULL,
    by_device          boolean NOT NULL,
    measurement_id     uuid,
    written_by         text,
    written_at         timestamptz NOT NULL,
    replaced_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    ordinal            integer NOT NULL DEFAULT 0,
    PRIMARY KEY (inspection_form_id, point_id, replaced_at, ordinal, organization_id)
) PARTITION BY RANGE (replaced_at);
COMMENT ON TABLE inspection_form_answer_history IS
    'Answers that were replaced or removed, so that it stays known who wrote what, and when. Copies of rows of '
    'inspection_form_answers, whose constraints they met; they have no foreign keys, so that a point that is no longer answered '
    'can be deleted. The service makes the partitions, a year each, ahead '
    '(crates/store/src/partitions.rs); none is dropped.';
COMMENT ON COLUMN inspection_form_answer_history.ordinal IS
    'Of several values of a point that one statement replaced, which one it was; 0 is the one that was stored before.';
DO $$
DECLARE
    this_year constant integer := extract(year FROM now() AT TIME ZONE 'UTC');
BEGIN
    FOR year IN this_year .. this_year + 1 LOOP
        EXECUTE format('CREATE TABLE inspection_form_answer_history_%s PARTITION OF inspection_form_answer_history
                        FOR VALUES FROM (%L) TO (%L)', year, year || '-01-01 00:00:00+00', year + 1 || '-01-01 00:00:00+00');
    END LOOP;
END $$;

------------------------------------------------------------------------------------------------------------------------
-- What decides on device values

CREATE TABLE thresholds (
    organization_id uuid NOT NULL REFERENCES organizations,
    point_code      text NOT NULL,
    good_min        numeric,
    good_max        numeric,
    borderline_min  numeric,
    borderline_max  numeric,
    valid_from      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (organization_id, point_code),
    CHECK (good_min IS NOT NULL OR good_max IS NOT NULL)
);
COMMENT ON TABLE thresholds IS
    'The bounds that give a device value its status: inside the good ones GOOD, else inside the borderline ones BORDERLINE, else '
    'OUT_OF_LIMIT. A null bound is open; bounds are inclusive.';

CREATE TABLE threshold_versions (
    organization_id uuid NOT NULL REFERENCES organizations,
    point_code      text NOT NULL,
    valid_from      timestamptz NOT NULL,
    good_min        numeric,
    good_max        numeric,
    borderline_min  numeric,
    borderline_max  numeric,
    PRIMARY KEY (organization_id, point_code, valid_from)
);
COMMENT ON TABLE threshold_versions IS
    'All thresholds that ever held, each until the next one: a report shows those that held when its values were written. A row '
    'without any bound says that there was none from then on.';
CREATE TRIGGER prevent_modification BEFORE DELETE OR UPDATE OR TRUNCATE ON threshold_versions
    FOR EACH STATEMENT EXECUTE FUNCTION prevent_modification();

CREATE FUNCTION set_valid_from() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF (OLD.organization_id, OLD.point_code) <> (NEW.organization_id, NEW.point_code) THEN
            RAISE EXCEPTION 'the thresholds of one point cannot become those of another';
        END IF;
        IF (OLD.good_min, OLD.good_max, OLD.borderline_min, OLD.borderline_max) IS NOT DISTINCT FROM
           (NEW.good_min, NEW.good_max, NEW.borderline_min, NEW.borderline_max) THEN
            NEW.valid_from := OLD.valid_from;
            RETURN NEW;
        END IF;
        IF NEW.valid_from = OLD.valid_from THEN
            NEW.valid_from := clock_timestamp();
        END IF;
    END IF;
    NEW.valid_from := greatest(NEW.valid_from, (
        SELECT max(v.valid_from) + interval '1 microsecond' FROM threshold_versions v
        WHERE v.organization_id = NEW.organization_id AND v.point_code = NEW.point_code));
    RETURN NEW;
END $$;
COMMENT ON FUNCTION set_valid_from IS
    'Has new thresholds hold after all that held before: the past is not rewritten, not even by a clock that was set back.';
CREATE TRIGGER set_valid_from BEFORE INSERT OR UPDATE ON thresholds FOR EACH ROW EXECUTE FUNCTION set_valid_from();

CREATE FUNCTION record_threshold_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO threshold_versions (organization_id, point_code, valid_from)
        VALUES (OLD.organization_id, OLD.point_code, later_than(OLD.valid_from));
    ELSIF TG_OP = 'INSERT' OR OLD.valid_from <> NEW.valid_from THEN
        INSERT INTO threshold_versions (organization_id, point_code, valid_from, good_min, good_max, borderline_min, borderline_max)
        VALUES (NEW.organization_id, NEW.point_code, NEW.valid_from, NEW.good_min, NEW.good_max, NEW.borderline_min,
                NEW.borderline_max);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER record_threshold_version AFTER INSERT OR UPDATE OR DELETE ON thresholds
    FOR EACH ROW EXECUTE FUNCTION record_threshold_version();

CREATE TABLE plausible_ranges (
    organization_id uuid NOT NULL REFERENCES organizations,
    point_code      text NOT NULL,
    minimum         numeric,
    maximum         numeric,
    PRIMARY KEY (organization_id, point_code),
    CHECK (minimum IS NOT NULL OR maximum IS NOT NULL),
    CHECK (minimum <= maximum)
);
COMMENT ON TABLE plausible_ranges IS
    'The values that an organization takes for possible, narrower than the API''s document says. Inclusive.';

------------------------------------------------------------------------------------------------------------------------
-- Photos

CREATE TABLE photos (
    id               uuid NOT NULL,
    organization_id  uuid NOT NULL,
    inspection_id    uuid NOT NULL,
    position         integer NOT NULL,
    kind             text NOT NULL,
    point_code       text,
    caption          text,
    object_key       text NOT NULL,
    thumb_object_key text,
    mime_type        text NOT NULL,
    size_bytes       bigint NOT NULL,
    show_in_report   boolean NOT NULL DEFAULT true,
    created_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id, organization_id),
    FOREIGN KEY (inspection_id, organization_id) REFERENCES inspections (id, organization_id)
);
COMMENT ON TABLE photos IS 'The photos of a report; the bytes are in the object storage.';
COMMENT ON COLUMN photos.point_code IS 'The point that the photo shows.';
COMMENT ON COLUMN photos.thumb_object_key IS 'The stored object that holds the small version.';
CREATE INDEX photos_by_inspection ON photos (inspection_id, position);

CREATE VIEW shown_photos AS
SELECT id, organization_id, inspection_id, position, kind, point_code, caption, object_key, thumb_object_key, mime_type,
       size_bytes, created_at
FROM photos
WHERE show_in_report AND kind NOT IN ('REGISTRATION', 'OTOSICIL_PDF');
COMMENT ON VIEW shown_photos IS
    'The photos that anybody outside sees. Registration documents, archive documents of third parties and photos that are kept '
    'out of the report are never shown (contract 2.9).';

------------------------------------------------------------------------------------------------------------------------
-- Measurements of the test line

CREATE TABLE measurements (
    id              uuid PRIMARY KEY,
    partner_id      uuid NOT NULL,
    key_id          text NOT NULL,
    organization_id uuid NOT NULL,
    branch_id       uuid NOT NULL,
    plate           text NOT NULL,
    external_id     text,
    device_serial   text,
    measured_at     timestamptz NOT NULL,
    received_at     timestamptz NOT NULL DEFAULT now(),
    raw             bytea NOT NULL,
    raw_sha256      bytea NOT NULL CHECK (octet_length(raw_sha256) = 32),
    status          text NOT NULL CHECK (status IN ('APPLIED', 'PENDING', 'DISCARDED')),
    inspection_id   uuid,
    settled_at      timestamptz,
    settled_by      text,
    point_codes     text[] NOT NULL,
    point_texts     text[] NOT NULL,
    point_outcomes  text[],
    FOREIGN KEY (inspection_id, organization_id) REFERENCES inspections (id, organization_id),
    CHECK ((status = 'APPLIED') = (inspection_id IS NOT NULL)),
    CHECK ((status = 'PENDING') = (settled_at IS NULL)),
    CONSTRAINT measurements_points CHECK (
        cardinality(point_texts) = cardinality(point_codes)
        AND (point_outcomes IS NOT NULL) = (status = 'APPLIED')
        AND (point_outcomes IS NULL OR cardinality(point_outcomes) = cardinality(point_codes))),
    CONSTRAINT measurements_point_outcomes CHECK (
        point_outcomes <@ ARRAY['applied', 'unknown_point', 'no_status', 'superseded', 'implausible'])
);
COMMENT ON TABLE measurements IS
    'Packages that devices sent; never deleted. Partner, key and branch have no foreign keys: the statement that records has '
    'just read them, and three look-ups that lock rows which all stations share would more than double the cost of a record '
    '(migrations/README.md). Keys and branches are kept by triggers (prevent_removal), partners by their keys.';
COMMENT ON COLUMN measurements.plate IS 'Normalized.';
COMMENT ON COLUMN measurements.external_id IS 'The partner''s own id of the measurement: sent again, it is recorded once.';
COMMENT ON COLUMN measurements.raw IS 'The exact bytes of the request''s body.';
COMMENT ON COLUMN measurements.settled_at IS 'When it was applied or discarded.';
COMMENT ON COLUMN measurements.settled_by IS 'The inspector who applied or discarded it; null if the service applied it on arrival.';
COMMENT ON COLUMN measurements.point_texts IS 'The decimal text of each value as it was sent, in the order of point_codes.';
COMMENT ON COLUMN measurements.point_outcomes IS 'What became of each point; null unless the measurement was applied.';
CREATE UNIQUE INDEX measurements_external_id ON measurements (partner_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX measurements_waiting ON measurements (branch_id, plate, received_at DESC) WHERE status = 'PENDING';
CREATE INDEX measurements_by_inspection ON measurements (inspection_id) WHERE inspection_id IS NOT NULL;

CREATE FUNCTION protect_raw_package() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' THEN
        RAISE EXCEPTION 'measurements are never deleted';
    END IF;
    IF NEW.raw IS DISTINCT FROM OLD.raw OR NEW.raw_sha256 IS DISTINCT FROM OLD.raw_sha256 THEN
        RAISE EXCEPTION 'the raw package of a measurement never changes';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION protect_raw_package IS 'Data is never lost: the raw package outlives every code path.';
CREATE TRIGGER protect_raw_package BEFORE DELETE OR UPDATE ON measurements
    FOR EACH ROW EXECUTE FUNCTION protect_raw_package();
CREATE TRIGGER prevent_truncation BEFORE TRUNCATE ON measurements
    FOR EACH STATEMENT EXECUTE FUNCTION protect_raw_package();

ALTER TABLE inspection_form_answers ADD FOREIGN KEY (measurement_id) REFERENCES measurements;

CREATE TABLE measurement_mismatches (
    measurement_id uuid NOT NULL REFERENCES measurements,
    raw_sha256     bytea NOT NULL CHECK (octet_length(raw_sha256) = 32),
    partner_id     uuid NOT NULL REFERENCES partners,
    raw            bytea NOT NULL,
    key_id         text NOT NULL REFERENCES api_keys,
    received_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (measurement_id, raw_sha256, partner_id)
);
COMMENT ON TABLE measurement_mismatches IS
    'Packages whose external_id had been used for another body, kept beside the record that answered: two stations may share a '
    'counter. The very same bytes are kept once.';
COMMENT ON COLUMN measurement_mismatches.raw IS 'The exact bytes of the request''s body.';
CREATE TRIGGER prevent_modification BEFORE DELETE OR UPDATE OR TRUNCATE ON measurement_mismatches
    FOR EACH STATEMENT EXECUTE FUNCTION prevent_modification();

------------------------------------------------------------------------------------------------------------------------
-- Inspectors

CREATE TABLE inspectors (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    name            text NOT NULL,
    token_hash      bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
    token_hint      text NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    revoked_at      timestamptz,
    UNIQUE (id, organization_id)
);
COMMENT ON TABLE inspectors IS 'Who signs in to write reports. Inspectors are revoked, never deleted.';
COMMENT ON COLUMN inspectors.token_hash IS 'SHA-256 of the token, which has 130 random bits.';
COMMENT ON COLUMN inspectors.token_hint IS 'The last characters of the token, by which people tell tokens apart.';
CREATE UNIQUE INDEX inspectors_by_name ON inspectors (organization_id, lower(name)) WHERE revoked_at IS NULL;

CREATE TABLE inspector_branches (
    inspector_id    uuid NOT NULL,
    organization_id uuid NOT NULL,
    branch_id       uuid NOT NULL,
    PRIMARY KEY (inspector_id, branch_id, organization_id),
    FOREIGN KEY (inspector_id, organization_id) REFERENCES inspectors (id, organization_id),
    FOREIGN KEY (branch_id, organization_id) REFERENCES branches (id, organization_id)
);
COMMENT ON TABLE inspector_branches IS 'The branches that an inspector''s token is bound to.';
CREATE INDEX inspector_branches_by_branch ON inspector_branches (branch_id);

CREATE TABLE inspector_sessions (
    cookie_hash     bytea PRIMARY KEY CHECK (octet_length(cookie_hash) = 32),
    inspector_id    uuid NOT NULL,
    organization_id uuid NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    seen_at         timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (inspector_id, organization_id) REFERENCES inspectors (id, organization_id)
);
COMMENT ON TABLE inspector_sessions IS 'Who is signed in. A session is found by its cookie alone.';
COMMENT ON COLUMN inspector_sessions.cookie_hash IS 'SHA-256 of the cookie.';
COMMENT ON COLUMN inspector_sessions.seen_at IS 'The last request, to the half minute.';
CREATE INDEX inspector_sessions_by_inspector ON inspector_sessions (inspector_id);
CREATE INDEX inspector_sessions_by_creation ON inspector_sessions (created_at);

CREATE TABLE sign_in_attempts (
    address           inet PRIMARY KEY,
    window_started_at timestamptz NOT NULL DEFAULT now(),
    failed_count      integer NOT NULL
);
COMMENT ON TABLE sign_in_attempts IS 'Attempts to sign in that are not known to have succeeded, in windows of a quarter of an hour.';
COMMENT ON COLUMN sign_in_attempts.address IS 'The client''s address; of IPv6 its network of 64 bits.';
CREATE INDEX sign_in_attempts_by_window ON sign_in_attempts (window_started_at);

CREATE TABLE inspection_transitions (
    inspection_id   uuid NOT NULL,
    number          integer NOT NULL,
    organization_id uuid NOT NULL,
    from_status     text CHECK (from_status IN ('DRAFT', 'IN_REVIEW', 'REVISION_REQUESTED', 'CANCEL_REQUESTED', 'PUBLISHED',
                                                'ARCHIVED', 'CANCELLED')),
    to_status       text NOT NULL CHECK (to_status IN ('DRAFT', 'IN_REVIEW', 'REVISION_REQUESTED', 'CANCEL_REQUESTED',
                                                       'PUBLISHED', 'ARCHIVED', 'CANCELLED')),
    reason          text,
    inspector_id    uuid NOT NULL,
    inspector_name  text NOT NULL,
    occurred_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (inspection_id, number, organization_id),
    FOREIGN KEY (inspection_id, organization_id) REFERENCES inspections (id, organization_id),
    FOREIGN KEY (inspector_id, organization_id) REFERENCES inspectors (id, organization_id)
);
COMMENT ON TABLE inspection_transitions IS 'How a report came to its status, from 1 on.';
COMMENT ON COLUMN inspection_transitions.from_status IS 'Null where the report was opened.';
COMMENT ON COLUMN inspection_transitions.inspector_name IS 'The inspector''s name at the time.';
CREATE TRIGGER prevent_modification BEFORE DELETE OR UPDATE OR TRUNCATE ON inspection_transitions
    FOR EACH STATEMENT EXECUTE FUNCTION prevent_modification();

------------------------------------------------------------------------------------------------------------------------
-- `updated_at`: every change of what partners see of a report, whoever makes it (REP-13)
--
-- What a report shows of its own (its row, vehicle, forms, shown photos) sets its `updated_at`. What all reports of an organization
-- show (its name and mode, branches, templates) sets `organizations.reports_changed_at`. Reports that partners do not see are
-- left alone, so that a measurement costs no write to its report; becoming visible is a change of the report's own row. A time may
-- also move without need; that it stays where it was means that nothing has changed.

CREATE FUNCTION touch_report_itself() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before inspections := OLD;
BEGIN
    -- The columns that no partner sees, and the time itself.
    before.plate := NEW.plate;
    before.pdf_object_key := NEW.pdf_object_key;
    before.version := NEW.version;
    before.updated_at := NEW.updated_at;
    IF before IS DISTINCT FROM NEW THEN
        NEW.updated_at := later_than(OLD.updated_at);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER touch_updated_at BEFORE UPDATE ON inspections FOR EACH ROW
    WHEN (OLD.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED') OR NEW.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED'))
    EXECUTE FUNCTION touch_report_itself();

-- They are locked in one order, so that two writers who change several never wait for each other. Where none is visible, nothing
-- is written and nobody is waited for.
CREATE FUNCTION touch_reports(changed uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    visible uuid[];
BEGIN
    SELECT array_agg(locked.id) INTO visible FROM (
        SELECT i.id FROM inspections i
        WHERE i.id = ANY (changed) AND i.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED') AND i.updated_at < now()
        ORDER BY i.id FOR NO KEY UPDATE) locked;
    IF visible IS NOT NULL THEN
        UPDATE inspections SET updated_at = later_than(updated_at) WHERE id = ANY (visible);
    END IF;
END $$;
COMMENT ON FUNCTION touch_reports IS 'Sets updated_at of those reports that partners see, once in a transaction.';

CREATE FUNCTION touch_reports_of_vehicle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM touch_reports(ARRAY(SELECT id FROM inspections WHERE vehicle_id = NEW.id));
    RETURN NULL;
END $$;
CREATE TRIGGER touch_updated_at AFTER UPDATE ON vehicles FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*)
    EXECUTE FUNCTION touch_reports_of_vehicle();

-- For each statement, because imports and measurements write many rows at once. A trigger with a transition table has one event.
CREATE FUNCTION touch_reports_of_answers() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    forms uuid[];
BEGIN
    SELECT array_agg(DISTINCT inspection_form_id) INTO forms FROM changed;
    IF forms IS NOT NULL THEN
        PERFORM touch_reports(ARRAY(SELECT inspection_id FROM inspection_forms WHERE id = ANY (forms)));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER touch_updated_at_on_insert AFTER INSERT ON inspection_form_answers REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION touch_reports_of_answers();
CREATE TRIGGER touch_updated_at_on_update AFTER UPDATE ON inspection_form_answers REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION touch_reports_of_answers();
CREATE TRIGGER touch_updated_at_on_delete AFTER DELETE ON inspection_form_answers REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION touch_reports_of_answers();

CREATE FUNCTION touch_reports_of_forms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM touch_reports(ARRAY(SELECT DISTINCT inspection_id FROM changed));
    RETURN NULL;
END $$;
CREATE TRIGGER touch_updated_at_on_insert AFTER INSERT ON inspection_forms REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION touch_reports_of_forms();
CREATE TRIGGER touch_updated_at_on_delete AFTER DELETE ON inspection_forms REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION touch_reports_of_forms();
CREATE FUNCTION touch_report_of_edited_form() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM touch_reports(ARRAY[OLD.inspection_id, NEW.inspection_id]);
    RETURN NULL;
END $$;
-- For each row: a measurement updates a form that exists without changing it.
CREATE TRIGGER touch_updated_at_on_update AFTER UPDATE ON inspection_forms FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*)
    EXECUTE FUNCTION touch_report_of_edited_form();

-- A photo that is hidden, moved or replaced: what was shown counts as much as what is shown now.
CREATE FUNCTION touch_reports_of_photos() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    reports uuid[];
BEGIN
    IF TG_OP <> 'DELETE' THEN
        reports := ARRAY(SELECT DISTINCT inspection_id FROM new_photos
                         WHERE show_in_report AND kind NOT IN ('REGISTRATION', 'OTOSICIL_PDF'));
    END IF;
    IF TG_OP <> 'INSERT' THEN
        reports := reports || ARRAY(SELECT DISTINCT inspection_id FROM old_photos
                                    WHERE show_in_report AND kind NOT IN ('REGISTRATION', 'OTOSICIL_PDF'));
    END IF;
    PERFORM touch_reports(reports);
    RETURN NULL;
END $$;
CREATE TRIGGER touch_updated_at_on_insert AFTER INSERT ON photos REFERENCING NEW TABLE AS new_photos
    FOR EACH STATEMENT EXECUTE FUNCTION touch_reports_of_photos();
CREATE TRIGGER touch_updated_at_on_update AFTER UPDATE ON photos REFERENCING OLD TABLE AS old_photos NEW TABLE AS new_photos
    FOR EACH STATEMENT EXECUTE FUNCTION touch_reports_of_photos();
CREATE TRIGGER touch_updated_at_on_delete AFTER DELETE ON photos REFERENCING OLD TABLE AS old_photos
    FOR EACH STATEMENT EXECUTE FUNCTION touch_reports_of_photos();

CREATE FUNCTION touch_organization_itself() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.reports_changed_at := later_than(OLD.reports_changed_at);
    RETURN NEW;
END $$;
CREATE TRIGGER touch_reports_changed_at BEFORE UPDATE ON organizations FOR EACH ROW
    WHEN ((OLD.slug, OLD.name, OLD.pii_mode) IS DISTINCT FROM (NEW.slug, NEW.name, NEW.pii_mode))
    EXECUTE FUNCTION touch_organization_itself();

CREATE FUNCTION touch_organization_of_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE organizations SET reports_changed_at = later_than(reports_changed_at)
    WHERE id IN (OLD.organization_id, NEW.organization_id);
    RETURN NULL;
END $$;
-- The columns of a branch that its reports show.
CREATE TRIGGER touch_reports_changed_at AFTER UPDATE ON branches FOR EACH ROW
    WHEN ((OLD.organization_id, OLD.name, OLD.city, OLD.district, OLD.address, OLD.telephone) IS DISTINCT FROM
          (NEW.organization_id, NEW.name, NEW.city, NEW.district, NEW.address, NEW.telephone))
    EXECUTE FUNCTION touch_organization_of_row();
-- A template that is created or deleted has no reports.
CREATE TRIGGER touch_reports_changed_at AFTER UPDATE ON form_templates FOR EACH ROW
    WHEN ((OLD.organization_id, OLD.code, OLD.name, OLD.score_category, OLD.position) IS DISTINCT FROM
          (NEW.organization_id, NEW.code, NEW.name, NEW.score_category, NEW.position))
    EXECUTE FUNCTION touch_organization_of_row();
CREATE TRIGGER touch_reports_changed_at_on_update AFTER UPDATE ON form_template_points FOR EACH ROW
    WHEN (OLD.* IS DISTINCT FROM NEW.*)
    EXECUTE FUNCTION touch_organization_of_row();

CREATE FUNCTION touch_organizations_of_points() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE organizations SET reports_changed_at = later_than(reports_changed_at)
    WHERE id IN (SELECT organization_id FROM changed);
    RETURN NULL;
END $$;
CREATE TRIGGER touch_reports_changed_at_on_insert AFTER INSERT ON form_template_points REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION touch_organizations_of_points();
CREATE TRIGGER touch_reports_changed_at_on_delete AFTER DELETE ON form_template_points REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION touch_organizations_of_points();

------------------------------------------------------------------------------------------------------------------------
-- PDFs

CREATE TABLE report_settings (
    only_row          boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    public_report_url text
);
COMMENT ON TABLE report_settings IS 'What is the same for all reports.';
COMMENT ON COLUMN report_settings.public_report_url IS
    'The address of a report''s public page, with {slug} in it; null if there is none. Each replica that is started with one '
    'writes it here, so that all replicas print the same.';
INSERT INTO report_settings DEFAULT VALUES;

-- Numbers and times are text: neither the reader's floating point nor the session's time zone changes them.
CREATE FUNCTION threshold_document(good_min numeric, good_max numeric, borderline_min numeric, borderline_max numeric)
RETURNS jsonb LANGUAGE sql STABLE
RETURN jsonb_build_object('good_min', good_min::text, 'good_max', good_max::text,
    'borderline_min', borderline_min::text, 'borderline_max', borderline_max::text);

CREATE FUNCTION time_document(moment timestamptz) RETURNS text LANGUAGE sql STABLE
RETURN to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');

-- In PL/pgSQL, which keeps its plan for the session.
CREATE FUNCTION report_document(report uuid) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN RETURN (
SELECT jsonb_build_object(
    'pii_mode', o.pii_mode,
    'report_number', i.report_number,
    'organization_name', o.name,
    'branch_name', b.name,
    'branch_city', b.city,
    'branch_district', b.district,
    'branch_address', b.address,
    'branch_telephone', b.telephone,
    'inspector_name', i.inspector_name,
    'public_slug', i.public_slug,
    'public_report_url', (SELECT s.public_report_url FROM report_settings s),
    'published_at', time_document(i.published_at),
    'created_at', time_document(i.created_at),
    'vehicle', jsonb_build_object(
        'plate', v.plate, 'vin', i.snapshot_vin, 'brand', v.brand, 'model', v.model, 'year', v.year, 'body_type', v.type,
        'fuel_type', v.fuel_type, 'transmission', v.transmission, 'color', v.color, 'mileage_km', v.mileage_km,
        'factory_power_hp', v.factory_power_hp::text),
    'snapshot_mileage_km', i.snapshot_mileage_km,
    'package_name', i.package_name,
    'pricing', jsonb_build_object(
        'base_price', i.base_price::text, 'discount_percent', i.discount_percent::text, 'discount_name', i.discount_name,
        'final_price', i.final_price::text, 'payment_type', i.payment_type, 'currency', i.currency),
    'overall_score', i.overall_score,
    'summary', i.summary,
    'recommendation', i.recommendation,
    'forms', (
        SELECT coalesce(jsonb_agg(jsonb_build_object(
            'name', t.name, 'score_category', t.score_category, 'general_note', f.general_note,
            'is_test_line', t.is_test_line,
            'points', (
                SELECT coalesce(jsonb_agg(jsonb_build_object(
                    'code', p.code, 'name', p.name, 'unit', p.unit, 'status_code', a.status_code,
                    'status_label', a.status_label, 'severity', a.severity, 'numeric_value', a.numeric_value::text,
                    'note', a.note,
                    -- Empty where the measurement is not in this database.
                    'measurement', CASE WHEN t.is_test_line AND a.by_device THEN coalesce(a.measurement_id::text, '') END,
                    -- Those that held when the value was written.
                    'limits', CASE WHEN t.is_test_line THEN (
                        SELECT threshold_document(h.good_min, h.good_max, h.borderline_min, h.borderline_max)
                        FROM threshold_versions h
                        WHERE h.organization_id = i.organization_id AND h.point_code = p.code AND h.valid_from <= a.written_at
                        ORDER BY h.valid_from DESC LIMIT 1) END
                    ) ORDER BY p.position, p.code), '[]')
                FROM inspection_form_answers a JOIN form_template_points p ON p.id = a.point_id
                WHERE a.inspection_form_id = f.id AND p.template_id = f.template_id),
            'measurements', CASE WHEN t.is_test_line THEN (
                SELECT coalesce(jsonb_agg(jsonb_build_object(
                    'id', m.id, 'device_serial', m.device_serial, 'measured_at', time_document(m.measured_at),
                    'applied_at', time_document(m.settled_at)) ORDER BY m.measured_at, m.id), '[]')
                FROM measurements m
                WHERE m.inspection_id = i.id AND m.status = 'APPLIED' AND EXISTS (
                    SELECT FROM inspection_form_answers a WHERE a.inspection_form_id = f.id AND a.measurement_id = m.id)) END,
            -- Of codes without an answer (sums and differences), those that held when the form's last value was written.
            'limits', CASE WHEN t.is_test_line THEN (
                SELECT coalesce(jsonb_object_agg(last.point_code, threshold_document(
                    last.good_min, last.good_max, last.borderline_min, last.borderline_max)), '{}')
                FROM (
                    SELECT DISTINCT ON (h.point_code) h.* FROM threshold_versions h
                    WHERE h.organization_id = i.organization_id
                      AND h.valid_from <= (
                        SELECT max(a.written_at) FROM inspection_form_answers a WHERE a.inspection_form_id = f.id)
                      AND NOT EXISTS (
                        SELECT FROM inspection_form_answers a JOIN form_template_points p ON p.id = a.point_id
                        WHERE a.inspection_form_id = f.id AND p.code = h.point_code)
                    ORDER BY h.point_code, h.valid_from DESC) last) END
            ) ORDER BY t.position, t.code), '[]')
        FROM inspection_forms f JOIN form_templates t ON t.id = f.template_id
        WHERE f.inspection_id = i.id),
    'photos', (
        SELECT coalesce(jsonb_agg(jsonb_build_object('kind', s.kind, 'point_code', s.point_code, 'caption', s.caption,
            'object_key', s.object_key, 'mime_type', s.mime_type) ORDER BY s.position, s.id), '[]')
        FROM shown_photos s WHERE s.inspection_id = i.id))
FROM inspections i
JOIN organizations o ON o.id = i.organization_id
JOIN branches b ON b.id = i.branch_id
JOIN vehicles v ON v.id = i.vehicle_id
WHERE i.id = report
); END $$;
COMMENT ON FUNCTION report_document IS
    'All that the PDF of a report is drawn from, as stored; null for no report. The renderer reads nothing else, so that every '
    'change to what is printed is a change of this document, whoever made it and however.';

CREATE FUNCTION report_fingerprint(report uuid) RETURNS text LANGUAGE sql STABLE AS $$
SELECT encode(sha256(convert_to(report_document(report)::text, 'UTF8')), 'hex')
$$;
COMMENT ON FUNCTION report_fingerprint IS 'What a stored PDF is compared by: 64 hex digits.';

CREATE TABLE report_renderings (
    inspection_id   uuid NOT NULL,
    organization_id uuid NOT NULL,
    fingerprint     text,
    least_version   integer NOT NULL DEFAULT 0,
    is_requested    boolean NOT NULL DEFAULT false,
    due_at          timestamptz NOT NULL DEFAULT now(),
    attempts        integer NOT NULL DEFAULT 0,
    claim           uuid,
    PRIMARY KEY (inspection_id, organization_id)
);
COMMENT ON TABLE report_renderings IS
    'The queue of reports whose PDF is missing or stale. A row is a hint: whether a stored PDF may be served is decided when '
    'it is asked for, by its fingerprint alone. No foreign key: a row for a report that is gone is dropped when its turn comes.';
COMMENT ON COLUMN report_renderings.fingerprint IS 'The fingerprint that was last asked for; null if nobody looked at it.';
COMMENT ON COLUMN report_renderings.least_version IS 'The oldest version of the renderer that may draw it.';
COMMENT ON COLUMN report_renderings.is_requested IS 'Somebody waits for it: it comes first.';
COMMENT ON COLUMN report_renderings.due_at IS
    'When it may be claimed. A claim moves it ahead by the lease, a failure by the backoff.';
COMMENT ON COLUMN report_renderings.attempts IS
    'Claims since the fingerprint changed, counted when they begin: a report that kills its renderer is counted, too.';
COMMENT ON COLUMN report_renderings.claim IS 'The claim under way, or one that a crash left.';
CREATE INDEX report_renderings_by_turn ON report_renderings (is_requested DESC, due_at);

CREATE FUNCTION enqueue_rendering(report uuid, wanted text, renderer_version integer, requested boolean) RETURNS void LANGUAGE sql AS $$
INSERT INTO report_renderings AS r (inspection_id, organization_id, fingerprint, least_version, is_requested)
SELECT i.id, i.organization_id, wanted, renderer_version, requested FROM inspections i WHERE i.id = report
ON CONFLICT (inspection_id, organization_id) DO UPDATE SET
    fingerprint = excluded.fingerprint,
    least_version = greatest(r.least_version, excluded.least_version),
    is_requested = r.is_requested OR excluded.is_requested,
    attempts = CASE WHEN r.fingerprint IS DISTINCT FROM excluded.fingerprint THEN 0 ELSE r.attempts END,
    due_at = CASE WHEN r.claim IS NULL AND r.fingerprint IS DISTINCT FROM excluded.fingerprint
                  THEN now() ELSE r.due_at END
WHERE r.fingerprint IS DISTINCT FROM excluded.fingerprint
   OR excluded.least_version > r.least_version
   OR excluded.is_requested AND NOT r.is_requested
$$;
COMMENT ON FUNCTION enqueue_rendering IS
    'Asks for a report''s PDF. A claim under way keeps its lease: its renderer notices by itself that it draws what is outdated.';

CREATE FUNCTION try_enqueue_rendering(report uuid, wanted text, renderer_version integer, requested boolean) RETURNS void LANGUAGE sql
SET lock_timeout = '100ms' AS $$
SELECT enqueue_rendering(report, wanted, renderer_version, requested)
$$;
COMMENT ON FUNCTION try_enqueue_rendering IS
    'As enqueue_rendering, for a caller that must not wait behind somebody''s open transaction.';

-- A report is enqueued when it is published, whoever publishes it. Later changes are found when the PDF is asked for, or by the
-- sweep: a trigger on answers would cost each measurement, and a change of mode would write a row for each report.
CREATE FUNCTION enqueue_published_report() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM enqueue_rendering(NEW.id, NULL, 0, false);
    RETURN NULL;
END $$;
CREATE TRIGGER enqueue_rendering_on_update AFTER UPDATE OF status, public_slug ON inspections
    FOR EACH ROW WHEN (NEW.status = 'PUBLISHED' AND NEW.public_slug IS NOT NULL)
    EXECUTE FUNCTION enqueue_published_report();
-- For each statement: for each row, this was 32 of the 53 µs that a new report costs an import.
CREATE FUNCTION enqueue_imported_reports() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO report_renderings (inspection_id, organization_id)
    SELECT id, organization_id FROM new_reports WHERE status = 'PUBLISHED' AND public_slug IS NOT NULL
    ON CONFLICT (inspection_id, organization_id) DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER enqueue_rendering_on_insert AFTER INSERT ON inspections REFERENCING NEW TABLE AS new_reports
    FOR EACH STATEMENT EXECUTE FUNCTION enqueue_imported_reports();

CREATE TABLE report_sweep (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    after_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    due_at   timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE report_sweep IS
    'How far the sweep over all reports has come that looks for stale PDFs. One replica takes each step.';
INSERT INTO report_sweep DEFAULT VALUES;

CREATE TABLE orphaned_objects (
    object_key      text PRIMARY KEY,
    inspection_id   uuid NOT NULL,
    organization_id uuid NOT NULL,
    delete_at       timestamptz NOT NULL,
    is_condemned    boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE orphaned_objects IS
    'Stored objects that no report refers to: one that is about to be uploaded (noted before, so that a crash leaves none that '
    'nobody knows of), and one that was replaced. They are deleted from the storage when their time has come. No foreign key: '
    'the object outlives a report that is deleted.';
COMMENT ON COLUMN orphaned_objects.is_condemned IS 'Its deletion has begun: no report can come to refer to it anymore.';
CREATE INDEX orphaned_objects_by_deletion ON orphaned_objects (delete_at);

CREATE TABLE published_pdfs (
    object_key      text NOT NULL,
    organization_id uuid NOT NULL,
    inspection_id   uuid NOT NULL,
    sha256          bytea NOT NULL CHECK (octet_length(sha256) = 32),
    size_bytes      bigint NOT NULL,
    published_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (object_key, organization_id),
    FOREIGN KEY (inspection_id, organization_id) REFERENCES inspections (id, organization_id)
);
COMMENT ON TABLE published_pdfs IS
    'Each PDF that a report ever had, so that a copy can be told from a forgery even after it was replaced.';
COMMENT ON COLUMN published_pdfs.sha256 IS 'Of the very bytes that are served.';
CREATE INDEX published_pdfs_by_report ON published_pdfs (inspection_id, published_at);
CREATE INDEX published_pdfs_by_content ON published_pdfs (sha256);
CREATE TRIGGER prevent_modification BEFORE DELETE OR UPDATE OR TRUNCATE ON published_pdfs
    FOR EACH STATEMENT EXECUTE FUNCTION prevent_modification();

------------------------------------------------------------------------------------------------------------------------
-- The request log

CREATE TABLE request_log (
    arrived_at     timestamptz NOT NULL,
    request_id     uuid NOT NULL,
    partner_id     uuid,
    duration_us    bigint NOT NULL,
    received_bytes bigint NOT NULL,
    sent_bytes     bigint,
    status         smallint NOT NULL,
    address        inet NOT NULL,
    method         text NOT NULL,
    route          text NOT NULL,
    operation      text,
    code           text,
    reason         text,
    key_id         text COLLATE "C",
    user_agent     text,
    PRIMARY KEY (request_id, arrived_at)
) PARTITION BY RANGE (arrived_at);
COMMENT ON TABLE request_log IS
    'A row for each request that reached the gateway, refused ones included (SVC-5, SVC-8). Partitions are days of UTC by the '
    'database''s clock; the service makes them ahead and drops them whole (service/src/request_log). There is no default '
    'partition: with one, none could be detached concurrently.';
COMMENT ON COLUMN request_log.arrived_at IS 'When the request''s head had arrived.';
COMMENT ON COLUMN request_log.request_id IS 'UUIDv7: the rows of a moment stand together in the index.';
COMMENT ON COLUMN request_log.partner_id IS 'Whose key it is; null for a key that nobody here has.';
COMMENT ON COLUMN request_log.duration_us IS 'From the arrival of the head to the beginning of the response, in microseconds.';
COMMENT ON COLUMN request_log.received_bytes IS 'Bytes of the body that had arrived when the response was made.';
COMMENT ON COLUMN request_log.sent_bytes IS
    'Bytes of the response''s body, of a stream as announced; null where nobody knew them beforehand.';
COMMENT ON COLUMN request_log.method IS 'OTHER for a method that HTTP does not have.';
COMMENT ON COLUMN request_log.route IS
    'The template of the path, never the path. For one that fits none, how much of it is the service''s own (/*).';
COMMENT ON COLUMN request_log.code IS 'The error code, as the caller saw it.';
COMMENT ON COLUMN request_log.reason IS 'Why it was refused; the caller is not told.';
COMMENT ON COLUMN request_log.key_id IS
    'As sent, if it has the shape of a key id: proved only where the signature was right.';
COMMENT ON COLUMN request_log.user_agent IS 'Shortened, and without what looks like a secret or personal data.';
CREATE INDEX request_log_by_time ON request_log (arrived_at);
CREATE INDEX request_log_by_key ON request_log (key_id, arrived_at) WHERE key_id IS NOT NULL;

CREATE TABLE request_log_drops (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reported_at   timestamptz NOT NULL DEFAULT now(),
    replica       inet DEFAULT inet_client_addr(),
    dropped_count bigint NOT NULL CHECK (dropped_count > 0),
    reason        text NOT NULL CHECK (reason IN ('queue_full', 'not_written'))
);
COMMENT ON TABLE request_log_drops IS
    'How many rows of the request log are missing. Each replica writes this when the log can be written again.';
COMMENT ON COLUMN request_log_drops.reported_at IS 'After the last of them was dropped.';
COMMENT ON COLUMN request_log_drops.replica IS 'The replica as the database sees it; null through a local socket.';
COMMENT ON COLUMN request_log_drops.reason IS
    'The replica''s queue was full, or the database refused the rows or was out of reach for too long.';
CREATE INDEX request_log_drops_by_time ON request_log_drops (reported_at);

------------------------------------------------------------------------------------------------------------------------
-- Operations

CREATE TABLE audit_log (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    occurred_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor         text NOT NULL,
    host          text NOT NULL,
    database_role text NOT NULL DEFAULT session_user,
    address       inet DEFAULT inet_client_addr(),
    command       text NOT NULL,
    kind          text NOT NULL,
    subject       text NOT NULL,
    action        text NOT NULL,
    undo          text,
    before        jsonb,
    after         jsonb
);
COMMENT ON TABLE audit_log IS 'What operators changed.';
COMMENT ON COLUMN audit_log.actor IS 'The account of the operating system.';
COMMENT ON COLUMN audit_log.host IS 'The machine of that account.';
COMMENT ON COLUMN audit_log.database_role IS 'What the database knows by itself: nobody''s claim.';
COMMENT ON COLUMN audit_log.command IS 'The command without its values, such as "key revoke".';
COMMENT ON COLUMN audit_log.kind IS 'What was changed, such as "key".';
COMMENT ON COLUMN audit_log.subject IS 'The id of what was changed.';
COMMENT ON COLUMN audit_log.action IS 'A sentence that says what was done.';
COMMENT ON COLUMN audit_log.undo IS 'The command that undoes it.';
COMMENT ON COLUMN audit_log.before IS 'What was changed, as it was before; never a secret.';
COMMENT ON COLUMN audit_log.after IS 'What was changed, as it was afterwards; never a secret.';
CREATE INDEX audit_log_by_subject ON audit_log (kind, subject, id DESC);
CREATE TRIGGER prevent_modification BEFORE DELETE OR UPDATE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION prevent_modification();

CREATE TABLE imports (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    imported_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    sha256      bytea NOT NULL CHECK (octet_length(sha256) = 32),
    size_bytes  bigint NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('organizations', 'branches', 'templates', 'thresholds', 'ranges', 'vehicles',
                                              'inspections', 'forms', 'photos')),
    file        text NOT NULL,
    lines       bigint NOT NULL,
    inserted    bigint NOT NULL,
    updated     bigint NOT NULL,
    unchanged   bigint NOT NULL
);
COMMENT ON TABLE imports IS 'Files that were imported whole, so that they are not imported again.';
COMMENT ON COLUMN imports.file IS 'The file''s name without its folder.';
CREATE INDEX imports_by_content ON imports (sha256, kind);
CREATE INDEX imports_by_size ON imports (size_bytes, kind);
CREATE TRIGGER prevent_modification BEFORE DELETE OR UPDATE OR TRUNCATE ON imports
    FOR EACH STATEMENT EXECUTE FUNCTION prevent_modification();

CREATE UNLOGGED TABLE replicas (
    id          uuid PRIMARY KEY,
    host        text NOT NULL,
    address     text NOT NULL,
    environment text NOT NULL CHECK (environment IN ('test', 'live')),
    version     text NOT NULL,
    master_keys text[] NOT NULL,
    started_at  timestamptz NOT NULL DEFAULT now(),
    seen_at     timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE replicas IS
    'The replicas that serve. Each writes its row every few seconds; one that is not written is gone. UNLOGGED: after a crash '
    'they write again.';
COMMENT ON COLUMN replicas.master_keys IS
    'What identifies the master keys that the replica accepts; it seals with the first one.';
