-- The state of the service. Ids are UUIDv7; the partner-visible text of an id is its canonical lower-case form.
-- Statuses and codes are text with CHECKs: a new value is one cheap migration.

------------------------------------------------------------------------------------------------------------------------
-- The platform's organisations and branches

CREATE TABLE organizations (
    id         uuid PRIMARY KEY,
    slug       text NOT NULL UNIQUE,
    name       text NOT NULL,
    pii_mode   text NOT NULL CHECK (pii_mode IN ('NONE', 'MASKED', 'FULL')),
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE branches (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    code            text NOT NULL,
    -- `code` under the folding of rules::fold: what submissions are compared with.
    code_folded     text NOT NULL,
    name            text NOT NULL,
    city            text NOT NULL,
    district        text NOT NULL,
    is_active       boolean NOT NULL DEFAULT true,
    UNIQUE (id, organization_id)
);
-- Not unique: two matches in a partner's scope are answered with 400.
CREATE INDEX branches_by_code ON branches (code_folded);
CREATE INDEX branches_by_organization ON branches (organization_id, code);

------------------------------------------------------------------------------------------------------------------------
-- Partners, their keys and what they may see

CREATE TABLE partners (
    id         uuid PRIMARY KEY,
    name       text NOT NULL UNIQUE,
    is_enabled boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE api_keys (
    key_id            text PRIMARY KEY,
    partner_id        uuid NOT NULL REFERENCES partners,
    environment       text NOT NULL CHECK (environment IN ('test', 'live')),
    -- The secret under the master key: XChaCha20-Poly1305, the key id as associated data.
    secret_nonce      bytea NOT NULL CHECK (octet_length(secret_nonce) = 24),
    secret_ciphertext bytea NOT NULL,
    scopes            text[] NOT NULL DEFAULT '{}',
    -- Requests a minute.
    rate_limit        integer NOT NULL DEFAULT 60 CHECK (rate_limit > 0),
    -- CIDR blocks, v4 or v6; empty admits every address.
    allowlist         text[] NOT NULL DEFAULT '{}',
    allowlist_mode    text NOT NULL DEFAULT 'enforce' CHECK (allowlist_mode IN ('enforce', 'report')),
    created_at        timestamptz NOT NULL DEFAULT now(),
    expires_at        timestamptz,
    revoked_at        timestamptz
);
CREATE INDEX api_keys_by_partner ON api_keys (partner_id);

CREATE TABLE grants (
    partner_id      uuid NOT NULL REFERENCES partners,
    organization_id uuid NOT NULL REFERENCES organizations,
    -- False: only the branches listed in grant_branches.
    all_branches    boolean NOT NULL,
    PRIMARY KEY (partner_id, organization_id)
);

CREATE TABLE grant_branches (
    partner_id      uuid NOT NULL,
    organization_id uuid NOT NULL,
    branch_id       uuid NOT NULL,
    PRIMARY KEY (partner_id, branch_id),
    FOREIGN KEY (partner_id, organization_id) REFERENCES grants ON DELETE CASCADE,
    FOREIGN KEY (branch_id, organization_id) REFERENCES branches (id, organization_id)
);

-- One row whose number rises with every change to keys or grants, so that replicas reload only when something changed.
CREATE TABLE directory_version (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version  bigint NOT NULL
);
INSERT INTO directory_version (version) VALUES (1);

CREATE FUNCTION bump_directory_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE directory_version SET version = version + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER bump AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON partners
    FOR EACH STATEMENT EXECUTE FUNCTION bump_directory_version();
CREATE TRIGGER bump AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON api_keys
    FOR EACH STATEMENT EXECUTE FUNCTION bump_directory_version();
CREATE TRIGGER bump AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON grants
    FOR EACH STATEMENT EXECUTE FUNCTION bump_directory_version();
CREATE TRIGGER bump AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON grant_branches
    FOR EACH STATEMENT EXECUTE FUNCTION bump_directory_version();

------------------------------------------------------------------------------------------------------------------------
-- Admission: used nonces and rate windows

-- A nonce is remembered in the time bucket of its use and in the next one, both under one primary key: whatever the
-- moment of a second use, it meets at least one of the two rows. Buckets are number = floor(unix time / bucket length);
-- partitions are made ahead and dropped whole (front_door::nonces). WAL-logged: a lost nonce is a replay that works.
CREATE TABLE nonces (
    bucket bigint NOT NULL,
    key_id text COLLATE "C" NOT NULL,
    nonce  text COLLATE "C" NOT NULL,
    PRIMARY KEY (bucket, key_id, nonce)
) PARTITION BY RANGE (bucket);

-- The fixed window of a key: opened by the first request after the last one ran out.
CREATE TABLE rate_windows (
    key_id     text COLLATE "C" PRIMARY KEY,
    started_at timestamptz NOT NULL,
    used       integer NOT NULL
) WITH (fillfactor = 50);

------------------------------------------------------------------------------------------------------------------------
-- Vehicles and inspections

CREATE TABLE vehicles (
    id               uuid PRIMARY KEY,
    -- Normalised: upper case, no spaces (rules::plate).
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
    -- The registered factory power, in HP; without it no DYNO_RATIO is computed.
    factory_power_hp numeric(7, 2) CHECK (factory_power_hp > 0)
);
CREATE INDEX vehicles_by_plate ON vehicles (plate);

CREATE TABLE inspections (
    id                    uuid PRIMARY KEY,
    report_number         text NOT NULL UNIQUE,
    organization_id       uuid NOT NULL REFERENCES organizations,
    branch_id             uuid NOT NULL,
    vehicle_id            uuid NOT NULL REFERENCES vehicles,
    status                text NOT NULL CHECK (status IN ('DRAFT', 'IN_REVIEW', 'REVISION_REQUESTED', 'CANCEL_REQUESTED',
                                                          'PUBLISHED', 'ARCHIVED', 'CANCELLED')),
    -- The plate under which the report was opened, normalised: measurements are matched with it.
    plate                 text NOT NULL,
    package_name          text NOT NULL,
    package_base_price    numeric(12, 2) NOT NULL,
    base_price            numeric(12, 2) NOT NULL,
    discount_percent      numeric(5, 2) NOT NULL DEFAULT 0 CHECK (discount_percent BETWEEN 0 AND 100),
    discount_name         text NOT NULL DEFAULT '',
    final_price           numeric(12, 2) NOT NULL,
    payment_type          text NOT NULL,
    currency              text NOT NULL DEFAULT 'TRY',
    -- The vehicle as it stood when it was inspected.
    snapshot_vin          text NOT NULL,
    snapshot_mileage_km   integer NOT NULL CHECK (snapshot_mileage_km >= 0),
    summary               text NOT NULL DEFAULT '',
    recommendation        text NOT NULL DEFAULT '',
    overall_score         integer NOT NULL DEFAULT 0 CHECK (overall_score BETWEEN 0 AND 100),
    -- The name of the public page; the PDF is served only when there is one.
    public_slug           text UNIQUE,
    -- The object that holds the rendered PDF.
    pdf_object_key        text,
    published_at          timestamptz,
    created_at            timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (branch_id, organization_id) REFERENCES branches (id, organization_id),
    CHECK (published_at IS NOT NULL OR status NOT IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED'))
);
-- The list's order, by organisation and by branch, for the query shapes of db::inspections. `published_at` is in them so
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
-- Reports in their writing phase, by what a measurement names.
CREATE INDEX inspections_open ON inspections (branch_id, plate, created_at DESC, id DESC)
    WHERE status IN ('DRAFT', 'REVISION_REQUESTED');

------------------------------------------------------------------------------------------------------------------------
-- Forms: templates, and the answers given in a report

CREATE TABLE form_templates (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations,
    code            text NOT NULL,
    name            text NOT NULL,
    score_category  text NOT NULL,
    position        integer NOT NULL,
    -- The form into which device measurements are written.
    is_test_line    boolean NOT NULL DEFAULT false,
    UNIQUE (organization_id, code)
);
CREATE UNIQUE INDEX form_templates_one_test_line ON form_templates (organization_id) WHERE is_test_line;

CREATE TABLE form_template_points (
    id          uuid PRIMARY KEY,
    template_id uuid NOT NULL REFERENCES form_templates,
    -- On the test-line form, the measurement point code.
    code        text NOT NULL,
    name        text NOT NULL,
    unit        text,
    position    integer NOT NULL,
    UNIQUE (template_id, code)
);

CREATE TABLE inspection_forms (
    id            uuid PRIMARY KEY,
    inspection_id uuid NOT NULL REFERENCES inspections,
    template_id   uuid NOT NULL REFERENCES form_templates,
    general_note  text NOT NULL DEFAULT '',
    UNIQUE (inspection_id, template_id)
);

CREATE TABLE inspection_form_answers (
    inspection_form_id uuid NOT NULL REFERENCES inspection_forms,
    point_id           uuid NOT NULL REFERENCES form_template_points,
    status_code        text NOT NULL,
    status_label       text NOT NULL,
    severity           text NOT NULL,
    numeric_value      numeric,
    note               text NOT NULL DEFAULT '',
    -- Who wrote the value (an inspector's name, or `device:<measurement id>`), and when.
    written_by         text NOT NULL,
    written_at         timestamptz NOT NULL,
    PRIMARY KEY (inspection_form_id, point_id)
);

-- What an overwritten answer was, so that who wrote it, and when, is kept.
CREATE TABLE inspection_form_answer_history (
    inspection_form_id uuid NOT NULL,
    point_id           uuid NOT NULL,
    status_code        text NOT NULL,
    status_label       text NOT NULL,
    severity           text NOT NULL,
    numeric_value      numeric,
    note               text NOT NULL,
    written_by         text NOT NULL,
    written_at         timestamptz NOT NULL,
    replaced_at        timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX inspection_form_answer_history_by_form ON inspection_form_answer_history (inspection_form_id, point_id);

-- Bounds that give a device value its status: inside the good ones GOOD, else inside the borderline ones BORDERLINE,
-- else OUT_OF_LIMIT. A null bound is open; bounds are inclusive.
CREATE TABLE thresholds (
    organization_id uuid NOT NULL REFERENCES organizations,
    point_code      text NOT NULL,
    good_min        numeric,
    good_max        numeric,
    borderline_min  numeric,
    borderline_max  numeric,
    PRIMARY KEY (organization_id, point_code),
    CHECK (good_min IS NOT NULL OR good_max IS NOT NULL)
);

------------------------------------------------------------------------------------------------------------------------
-- Photos

CREATE TABLE photos (
    id               uuid PRIMARY KEY,
    inspection_id    uuid NOT NULL REFERENCES inspections,
    position         integer NOT NULL,
    kind             text NOT NULL,
    point_code       text,
    caption          text,
    object_key       text NOT NULL,
    thumb_object_key text,
    mime_type        text NOT NULL,
    size_bytes       bigint NOT NULL,
    show_in_report   boolean NOT NULL DEFAULT true,
    created_at       timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX photos_by_inspection ON photos (inspection_id, position);

------------------------------------------------------------------------------------------------------------------------
-- Test-line measurements

CREATE TABLE measurements (
    id              uuid PRIMARY KEY,
    partner_id      uuid NOT NULL REFERENCES partners,
    key_id          text NOT NULL REFERENCES api_keys,
    organization_id uuid NOT NULL,
    branch_id       uuid NOT NULL,
    -- Normalised.
    plate           text NOT NULL,
    external_id     text,
    device_serial   text,
    measured_at     timestamptz NOT NULL,
    received_at     timestamptz NOT NULL DEFAULT now(),
    -- The exact bytes as sent, and their SHA-256.
    raw             bytea NOT NULL,
    raw_sha256      bytea NOT NULL,
    status          text NOT NULL CHECK (status IN ('APPLIED', 'PENDING', 'DISCARDED')),
    inspection_id   uuid REFERENCES inspections,
    -- When it was applied or discarded, and by whom (null: by the service, on arrival).
    settled_at      timestamptz,
    settled_by      text,
    FOREIGN KEY (branch_id, organization_id) REFERENCES branches (id, organization_id),
    CHECK ((status = 'APPLIED') = (inspection_id IS NOT NULL)),
    CHECK ((status = 'PENDING') = (settled_at IS NULL))
);
CREATE UNIQUE INDEX measurements_external_id ON measurements (partner_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX measurements_waiting ON measurements (branch_id, plate, received_at DESC) WHERE status = 'PENDING';
CREATE INDEX measurements_by_inspection ON measurements (inspection_id) WHERE inspection_id IS NOT NULL;

CREATE TABLE measurement_points (
    measurement_id uuid NOT NULL REFERENCES measurements,
    code           text NOT NULL,
    -- The value, and its decimal text as sent.
    value          numeric NOT NULL,
    value_text     text NOT NULL,
    -- What became of it; null while the measurement waits.
    outcome        text CHECK (outcome IN ('applied', 'unknown_point', 'no_status')),
    position       integer NOT NULL,
    PRIMARY KEY (measurement_id, code)
);

-- Data is never lost: the raw package outlives every code path.
CREATE FUNCTION refuse_losing_raw() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' THEN
        RAISE EXCEPTION 'measurements are never deleted';
    END IF;
    IF NEW.raw IS DISTINCT FROM OLD.raw OR NEW.raw_sha256 IS DISTINCT FROM OLD.raw_sha256 THEN
        RAISE EXCEPTION 'the raw package of a measurement never changes';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER keep_raw BEFORE DELETE OR UPDATE ON measurements
    FOR EACH ROW EXECUTE FUNCTION refuse_losing_raw();
CREATE TRIGGER keep_all_raw BEFORE TRUNCATE ON measurements
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_losing_raw();
