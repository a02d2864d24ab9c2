//! The rights of the owner, of the service and of the operators. The harness runs every service and every operator's command with
//! these roles; these tests check what the roles may not do.

// These crates are linked to register their statements.
use partner_api_inspector as _;
use partner_api_operator as _;

use partner_api::admission::nonces;
use partner_api_store::migrate::{MigrateError, migrate};
use partner_api_store::partitions::ANSWER_HISTORY;
use partner_api_store::pool::{PoolSettings, pool};
use partner_api_store::roles::{self, TABLES};
use partner_api_store::statement::{STATEMENTS, Statement};
use partner_api_tests::cluster::{self, Database, OPERATOR, SERVER};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config};

async fn connect_as(database: &Database, user: &str) -> Client {
    cluster::connect(&as_user(database, user)).await
}

fn as_user(database: &Database, user: &str) -> Config {
    database.config().user(user).clone()
}

/// Checks the rights that a statement needs, without executing it.
async fn explain(client: &Client, statement: &Statement) -> Result<(), tokio_postgres::Error> {
    let parameters = client.prepare(statement.sql()).await?.params().len();
    let nulls = match parameters {
        0 => String::new(),
        _ => format!("({})", vec!["NULL"; parameters].join(", ")),
    };
    client
        .batch_execute(&format!(
            "PREPARE explained AS {};\nEXPLAIN EXECUTE explained{nulls};\nDEALLOCATE explained",
            statement.sql()
        ))
        .await
}

/// Statements of these modules are executed only by the sandbox, which owns its database.
fn is_of_owner(statement: &Statement) -> bool {
    [
        "partner_api_sandbox",
        "partner_api_store::thresholds::SET",
        "deployment::CLAIM",
    ]
    .iter()
    .any(|part| statement.name().contains(part))
}

#[tokio::test]
async fn every_statement_is_permitted_to_the_role_that_executes_it() {
    let database = Database::create().await;
    let server = connect_as(&database, SERVER).await;
    let operator = connect_as(&database, OPERATOR).await;
    for client in [&server, &operator] {
        // Otherwise the null parameters would be part of the plan, which could omit tables.
        client
            .batch_execute("SET plan_cache_mode = force_generic_plan")
            .await
            .unwrap();
    }
    let mut forbidden = Vec::new();
    let mut explained = 0;
    for statement in STATEMENTS.iter().filter(|statement| !is_of_owner(statement)) {
        let is_explainable = ["SELECT", "WITH", "INSERT", "UPDATE", "DELETE"]
            .iter()
            .any(|verb| statement.sql().trim_start().starts_with(verb));
        if !is_explainable {
            continue;
        }
        let client = match statement.name().starts_with("partner_api_operator") {
            true => &operator,
            false => &server,
        };
        explained += 1;
        if let Err(error) = explain(client, statement).await {
            forbidden.push(format!("{}: {}", statement.name(), partner_api_store::cause(&error)));
            client.batch_execute("DEALLOCATE ALL").await.unwrap();
        }
    }
    assert!(explained > 100, "{explained}");
    assert!(forbidden.is_empty(), "{}", forbidden.join("\n"));
}

#[tokio::test]
async fn every_table_and_view_has_an_entry_in_the_list_of_privileges() {
    let database = Database::without_rows().await;
    let client = cluster::connect(&database.config()).await;
    let tables = "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
                  AND relkind IN ('r', 'p', 'v') AND NOT relispartition ORDER BY relname COLLATE \"C\"";
    let rows = client.query(tables, &[]).await.unwrap();
    let existing: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let listed: Vec<_> = TABLES.iter().map(|(name, ..)| *name).collect();
    assert_eq!(listed, existing);
}

/// The statements that a partner could execute through a hole in the service.
#[tokio::test]
async fn neither_the_service_nor_an_operator_can_change_the_schema_or_what_is_append_only() {
    let database = Database::create().await;
    for user in [SERVER, OPERATOR] {
        let client = connect_as(&database, user).await;
        // Only the functions of the owner erase anything, whatever a session sets.
        client.batch_execute("SET partner_api.is_erasing = 'on'").await.unwrap();
        for forbidden in [
            "SELECT erase_measurements(ARRAY(SELECT id FROM measurements))",
            "DELETE FROM inspections",
            "DELETE FROM inspection_transitions",
            "DELETE FROM measurement_mismatches",
            "CREATE TABLE public.stolen ()",
            "CREATE FUNCTION public.stolen() RETURNS int LANGUAGE sql RETURN 1",
            "CREATE SCHEMA stolen",
            "DROP TABLE audit_log",
            "ALTER TABLE audit_log DISABLE TRIGGER ALL",
            "DROP TRIGGER prevent_modification ON audit_log",
            "DROP FUNCTION prevent_modification CASCADE",
            "CREATE OR REPLACE FUNCTION prevent_modification() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
            "TRUNCATE measurements CASCADE",
            "TRUNCATE used_nonces",
            "DELETE FROM audit_log",
            "UPDATE audit_log SET actor = 'nobody'",
            "DELETE FROM used_nonces",
            "DELETE FROM measurements",
            "DELETE FROM published_pdfs",
            "UPDATE inspection_form_answer_history SET note = ''",
            "UPDATE deployment SET environment = 'live'",
            "DELETE FROM refinery_schema_history",
            "SET session_replication_role = replica",
            "SET ROLE template_schema_owner",
            "ALTER ROLE test_server SUPERUSER",
            "COPY partners TO PROGRAM 'cat'",
            "SELECT pg_read_file('postgresql.conf')",
        ] {
            let error = client.batch_execute(forbidden).await.expect_err(forbidden);
            assert_eq!(
                error.code(),
                Some(&SqlState::INSUFFICIENT_PRIVILEGE),
                "{user}: {forbidden}: {error:?}"
            );
        }
    }
    let server = connect_as(&database, SERVER).await;
    for forbidden in [
        "INSERT INTO partners (id, name) VALUES (gen_random_uuid(), 'Mallory')",
        "UPDATE partners SET is_enabled = true",
        "UPDATE api_keys SET scopes = '{test-line:write}'",
        "DELETE FROM grants",
        "INSERT INTO grants SELECT p.id, o.id, true FROM partners p, organizations o",
        "UPDATE organizations SET pii_mode = 'FULL'",
        "UPDATE inspectors SET revoked_at = NULL",
        "INSERT INTO inspector_branches SELECT i.id, b.organization_id, b.id FROM inspectors i, branches b",
        "SELECT * FROM audit_log",
        "INSERT INTO audit_log (actor, host, command, kind, subject, action) VALUES ('', '', '', '', '', '')",
        "UPDATE thresholds SET good_max = 1000",
        "SELECT erase_reports(ARRAY(SELECT id FROM inspections))",
        "SELECT erase_vehicle(id) FROM vehicles",
        "SELECT erase_unused_measurements(now() - interval '1 year', 1)",
    ] {
        let error = server.batch_execute(forbidden).await.expect_err(forbidden);
        assert_eq!(
            error.code(),
            Some(&SqlState::INSUFFICIENT_PRIVILEGE),
            "{forbidden}: {error:?}"
        );
    }
}

#[tokio::test]
async fn the_service_cannot_drop_partitions_that_are_needed_or_create_others() {
    let database = Database::create().await;
    let pool = pool(as_user(&database, SERVER), &PoolSettings::default()).unwrap();
    nonces::PARTITIONS.prepare(&pool).await.unwrap();
    ANSWER_HISTORY.prepare(&pool).await.unwrap();
    let client = connect_as(&database, SERVER).await;
    let partitions = async || -> Vec<String> {
        let names = "SELECT inhrelid::regclass::text FROM pg_inherits ORDER BY 1";
        client
            .query(names, &[])
            .await
            .unwrap()
            .iter()
            .map(|row| row.get(0))
            .collect()
    };
    let before = partitions().await;
    for (forbidden, reason) in [
        (
            "SELECT drop_partition('used_nonces', floor(extract(epoch FROM now()) / 900)::bigint)",
            "still needed",
        ),
        (
            "SELECT drop_partition('used_nonces', floor(extract(epoch FROM now()) / 900)::bigint - 1)",
            "still needed",
        ),
        (
            "SELECT drop_partition('request_log', floor(extract(epoch FROM now()) / 86400)::bigint)",
            "still needed",
        ),
        (
            "SELECT drop_partition('inspection_form_answer_history', 2020)",
            "still needed",
        ),
        ("SELECT drop_partition('audit_log', 1)", "not maintained"),
        (
            "SELECT drop_partition('used_nonces; DROP TABLE audit_log', 1)",
            "not maintained",
        ),
        ("SELECT create_partition('used_nonces', 1)", "not due"),
        ("SELECT create_partition('used_nonces', 9000000)", "not due"),
        ("SELECT create_partition('partners', 1)", "not maintained"),
    ] {
        let error = client.batch_execute(forbidden).await.expect_err(forbidden);
        let message = error.as_db_error().unwrap().message();
        assert!(message.contains(reason), "{forbidden}: {message}");
    }
    // A partition that exists is not created again.
    let again = "SELECT create_partition('used_nonces', floor(extract(epoch FROM now()) / 900)::bigint)";
    client.batch_execute(again).await.unwrap();
    assert_eq!(partitions().await, before);

    // Others cannot call the functions at all.
    let superuser = cluster::connect(&database.config()).await;
    let stranger = format!("stranger_{}", database.config().get_dbname().unwrap());
    let create = format!("CREATE ROLE {stranger} LOGIN; GRANT SELECT ON used_nonces TO {stranger}");
    superuser.batch_execute(&create).await.unwrap();
    let error = connect_as(&database, &stranger)
        .await
        .batch_execute(again)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{error:?}");
    superuser
        .batch_execute(&format!("DROP OWNED BY {stranger}; DROP ROLE {stranger}"))
        .await
        .unwrap();
}

/// The service may update measurements, so only the trigger protects their packages from it.
#[tokio::test]
async fn the_service_cannot_empty_a_package_and_recent_measurements_are_not_erased_by_age() {
    let database = Database::create().await;
    let owner = cluster::connect(&database.config()).await;
    let measured = "INSERT INTO measurements (id, partner_id, key_id, organization_id, branch_id, plate, measured_at, raw,
                        raw_sha256, status, point_codes, point_texts)
                    SELECT gen_random_uuid(), p.id, 'key', b.organization_id, b.id, '34ABC123', now(), 'body', sha256('body'),
                        'PENDING', '{}', '{}'
                    FROM (SELECT id FROM partners LIMIT 1) p, (SELECT id, organization_id FROM branches LIMIT 1) b";
    owner.batch_execute(measured).await.unwrap();
    let empty = "SET partner_api.is_erasing = 'on'; UPDATE measurements SET raw = '', raw_sha256 = sha256('')";
    let error = connect_as(&database, SERVER)
        .await
        .batch_execute(empty)
        .await
        .unwrap_err();
    assert_eq!(
        error.as_db_error().unwrap().message(),
        "the raw package of a measurement never changes"
    );
    let recent = "SELECT erase_unused_measurements(now() - interval '1 hour', 1)";
    let error = connect_as(&database, OPERATOR)
        .await
        .batch_execute(recent)
        .await
        .unwrap_err();
    assert!(
        error.as_db_error().unwrap().message().contains("still needed"),
        "{error:?}"
    );
}

/// A temporary table cannot replace a table that the owner's functions use.
#[tokio::test]
async fn the_functions_with_the_owners_rights_ignore_temporary_tables() {
    let database = Database::create().await;
    let operator = connect_as(&database, OPERATOR).await;
    let bucket = "SELECT floor(extract(epoch FROM now()) / 900)::bigint + 50";
    let bucket: i64 = operator.query_one(bucket, &[]).await.unwrap().get(0);
    operator
        .batch_execute("CREATE TEMP TABLE used_nonces (bucket bigint, digest uuid) PARTITION BY RANGE (bucket)")
        .await
        .unwrap();
    operator
        .execute("SELECT create_partition('used_nonces', $1)", &[&bucket])
        .await
        .unwrap();
    let parent = format!(
        "SELECT inhparent = 'public.used_nonces'::regclass FROM pg_inherits WHERE inhrelid = 'public.used_nonces_{bucket}'::regclass"
    );
    assert!(operator.query_one(&parent, &[]).await.unwrap().get::<_, bool>(0));
}

/// Creates the roles of a database again, and later with a table that a migration has added.
#[tokio::test]
async fn creating_the_roles_twice_changes_nothing_and_takes_away_what_is_not_listed() {
    let database = Database::without_rows().await;
    let client = cluster::connect(&database.config()).await;
    let rights = async || -> (String, String) {
        let acl = "SELECT string_agg(c.oid::regclass::text || coalesce(c.relacl::text, ''), E'\\n' ORDER BY c.oid),
                          string_agg(DISTINCT pg_get_userbyid(c.relowner), ' ')
                   FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S')";
        let row = client.query_one(acl, &[]).await.unwrap();
        (row.get(0), row.get(1))
    };
    let created = roles::create(&database.config()).await.unwrap();
    let name = database.config().get_dbname().unwrap().to_owned();
    assert_eq!(created.owner, format!("{name}_owner"));
    let before = rights().await;
    assert_eq!(before.1, created.owner);
    let more = format!(
        "GRANT UPDATE, TRUNCATE ON audit_log TO {}; GRANT SELECT ON api_keys TO PUBLIC",
        created.server
    );
    client.batch_execute(&more).await.unwrap();
    assert_ne!(rights().await, before);
    assert_eq!(roles::create(&database.config()).await.unwrap(), created);
    assert_eq!(rights().await, before);
    // The functions' owner is the owner of the tables, so that they have no more rights than it.
    let owners =
        "SELECT DISTINCT pg_get_userbyid(proowner)::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace";
    let owners: Vec<String> = client
        .query(owners, &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(owners, [created.owner]);
}

/// `serve` migrates at its start, which the service's role cannot.
#[tokio::test]
async fn the_service_starts_on_a_migrated_schema_and_refuses_to_migrate_an_older_one() {
    let database = Database::without_rows().await;
    let config = as_user(&database, SERVER);
    assert_eq!(migrate(&config).await.unwrap(), Vec::<String>::new());

    let client = cluster::connect(&database.config()).await;
    let newest =
        "DELETE FROM refinery_schema_history WHERE version = (SELECT max(version) FROM refinery_schema_history)";
    client.batch_execute(newest).await.unwrap();
    let error = migrate(&config).await.unwrap_err();
    assert!(matches!(error, MigrateError::NotOwner { .. }), "{error}");
    let message = error.to_string();
    assert!(
        message.contains("template_schema_owner") && message.contains("partner-api migrate"),
        "{message}"
    );
}

/// A member of the owner's role migrates as the owner, and new tables get their privileges.
#[tokio::test]
async fn a_member_of_the_owner_migrates_and_the_roles_keep_their_rights() {
    let database = Database::without_rows().await;
    let created = roles::create(&database.config()).await.unwrap();
    let client = cluster::connect(&database.config()).await;
    let user = format!("migrator_{}", database.config().get_dbname().unwrap());
    // As if no migration had been applied yet. The table of migrations remains, whose owner is the owner of the schema.
    let undo = format!(
        "CREATE ROLE {user} LOGIN IN ROLE {owner};
         CREATE SCHEMA kept;
         ALTER TABLE refinery_schema_history SET SCHEMA kept;
         DROP SCHEMA public CASCADE;
         CREATE SCHEMA public AUTHORIZATION {owner};
         ALTER TABLE kept.refinery_schema_history SET SCHEMA public;
         DROP SCHEMA kept;
         DELETE FROM refinery_schema_history",
        owner = created.owner
    );
    client.batch_execute(&undo).await.unwrap();
    let applied = migrate(&as_user(&database, &user)).await.unwrap();
    let known = refinery::load_sql_migrations("../migrations").unwrap();
    let known: Vec<_> = known.iter().map(ToString::to_string).collect();
    assert_eq!(applied, known);
    let state = "SELECT pg_get_userbyid(relowner)::text, has_table_privilege($1, 'deployment', 'SELECT'),
                        has_function_privilege($1, 'create_partition(text, bigint)', 'EXECUTE')
                 FROM pg_class WHERE oid = 'deployment'::regclass";
    let state = client.prepare_typed(state, &[Type::TEXT]).await.unwrap();
    let row = client.query_one(&state, &[&created.server]).await.unwrap();
    assert_eq!(
        (row.get::<_, String>(0), row.get(1), row.get(2)),
        (created.owner, true, true)
    );
    client.batch_execute(&format!("DROP ROLE {user}")).await.unwrap();
}
