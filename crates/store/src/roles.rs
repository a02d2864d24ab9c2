//! The database roles: the owner of the schema, the service, and its operators.
//!
//! The owner migrates the schema. The service and the operators read and write rows, each only in the tables of [`TABLES`], and
//! cannot change the schema. Each database has its own three roles, named after it, so that the service of one database has no
//! rights in another database of the same cluster. They cannot log in. Administrators create users in them, with their own means
//! of authentication.
//!
//! The file is long because [`TABLES`] lists the rights in every table.
//!
//! Partitions need no privileges, because statements name only the partitioned tables. Tables that a later migration adds get
//! their privileges from [`grant_if_created`].

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;
use tokio_postgres::{Client, Config};

use super::connection::Connection;
use super::pool::{self, DedicatedError};
use super::{DbError, cause};
use crate::statement;

/// A table, and the privileges of the service's role and of the operators' role on it, as letters of [`PRIVILEGES`]. The owner has
/// all privileges.
pub type Access = (&'static str, &'static str, &'static str);

/// The letters of [`TABLES`].
const PRIVILEGES: [(char, &str); 4] = [('S', "SELECT"), ('I', "INSERT"), ('U', "UPDATE"), ('D', "DELETE")];

/// Each table with its privileges. UPDATE is also needed to lock a row.
pub const TABLES: &[Access] = &[
    ("api_keys", "S", "SIU"),
    ("audit_log", "", "SI"),
    ("branches", "S", "SIU"),
    ("deployment", "S", "S"),
    ("directory_version", "S", "SU"),
    ("form_template_points", "S", "SIUD"),
    ("form_templates", "S", "SIU"),
    ("grant_branches", "S", "SID"),
    ("grants", "S", "SIUD"),
    ("imports", "", "SI"),
    ("inspection_form_answer_history", "SI", "SI"),
    ("inspection_form_answers", "SIUD", "SIUD"),
    ("inspection_forms", "SIU", "SIU"),
    ("inspection_transitions", "SI", "S"),
    ("inspections", "SIU", "SIU"),
    ("inspector_branches", "S", "SID"),
    ("inspector_sessions", "SIUD", ""),
    ("inspectors", "S", "SIU"),
    ("last_verified_backup", "S", "S"),
    ("measurement_mismatches", "SI", "S"),
    ("measurements", "SIU", "S"),
    ("organizations", "S", "SIU"),
    ("orphaned_objects", "SIUD", "S"),
    ("partners", "S", "SIU"),
    ("photos", "SIUD", "SIU"),
    ("plate_corrections", "SI", "S"),
    ("plausible_ranges", "S", "SIUD"),
    ("published_pdfs", "SI", "S"),
    ("rate_windows", "SIU", "S"),
    ("refinery_schema_history", "S", "S"),
    ("replicas", "SIUD", "S"),
    ("report_renderings", "SIUD", "SIU"),
    ("report_settings", "SU", "S"),
    ("report_sweep", "SU", ""),
    ("request_log", "SI", "S"),
    ("request_log_drops", "SID", "S"),
    ("shown_photos", "S", "S"),
    ("sign_in_attempts", "SIUD", ""),
    ("threshold_versions", "S", "SI"),
    ("thresholds", "S", "SIUD"),
    ("used_nonces", "SI", ""),
    ("vehicles", "SIU", "SIU"),
];

/// The privileges on a table that are compared.
const ON_A_TABLE: [&str; 6] = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "TRIGGER"];

/// The functions that run with the owner's rights and both roles may call; nobody else may.
const FUNCTIONS: [&str; 2] = ["create_partition(text, bigint)", "drop_partition(text, bigint)"];

/// The functions that run with the owner's rights and only operators may call. They erase data that no role may delete.
const FUNCTIONS_OF_OPERATORS: [&str; 4] = [
    "erase_reports(uuid[])",
    "erase_unused_measurements(timestamptz, integer)",
    "erase_vehicle(uuid)",
    "purge_audit_log(timestamptz, integer)",
];

/// The sequences from which the service takes numbers.
const SEQUENCES: [&str; 1] = ["report_numbers"];

// The statements on a dedicated session are not registered. Their results are the statements to execute.
const DATABASE: &str = "SELECT current_database()::text";
const CREATE: &str = "SELECT format('CREATE ROLE %I NOLOGIN', role) FROM unnest($1::text[]) AS role \
                      WHERE to_regrole(quote_ident(role)) IS NULL";
/// Only a member can make the owner own something. A superuser is a member of every role.
const JOIN_OWNER: &str = "SELECT format('GRANT %I TO CURRENT_USER', $1::text) FROM pg_roles \
                          WHERE rolname = current_user AND NOT rolsuper AND rolname <> $1::text";
/// Skips objects of extensions, sequences of identity columns, which follow their tables, and objects that need no change.
const OWN: &str = "\
SELECT format('ALTER %s %s OWNER TO %I', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END,
              c.oid::regclass, $1::text)
FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S')
  AND pg_get_userbyid(c.relowner) <> $1::text
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                  AND d.deptype IN ('e', 'i', 'a') AND (c.relkind = 'S' OR d.deptype = 'e'))
UNION ALL
SELECT format('ALTER ROUTINE %s OWNER TO %I', p.oid::regprocedure, $1::text)
FROM pg_proc p
WHERE p.pronamespace = 'public'::regnamespace AND pg_get_userbyid(p.proowner) <> $1::text
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')";
const ARE_CREATED: &str = "SELECT bool_and(to_regrole(quote_ident(role)) IS NOT NULL) FROM unnest($1::text[]) AS role";

/// The longest name of a role in PostgreSQL, in bytes.
const MAX_NAME: usize = 63;

/// An error while creating the roles.
#[derive(Debug, Error)]
pub enum RolesError {
    /// The connection failed; see [`DedicatedError`].
    #[error(transparent)]
    Connect(#[from] DedicatedError),
    /// The names of the roles would be too long.
    #[error("the name of the database `{0}` must have at most 54 bytes, because the names of its roles begin with it")]
    Name(String),
    /// A statement failed.
    #[error(
        "failed to set up the database roles: {}; the user must be a superuser, or own the database and have CREATEROLE", cause(.0)
    )]
    Query(#[from] tokio_postgres::Error),
}

/// The names of the roles of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Owns the schema, and migrates it.
    pub owner: String,
    /// The role of `partner-api serve`.
    pub server: String,
    /// The role of the operators' commands.
    pub operator: String,
}

impl Roles {
    /// Returns the names for a database.
    #[must_use]
    pub fn of(database: &str) -> Self {
        Self {
            owner: format!("{database}_owner"),
            server: format!("{database}_server"),
            operator: format!("{database}_operator"),
        }
    }

    fn names(&self) -> Vec<&str> {
        vec![&self.owner, &self.server, &self.operator]
    }
}

/// Creates the roles of the database if they do not exist, makes the owner own the schema, and gives each role exactly its
/// privileges. Takes from everybody else the rights to connect, to create temporary tables and to create objects.
///
/// # Errors
/// If the user may not do this, or another transaction uses a table whose owner must be changed.
pub async fn create(config: &Config) -> Result<Roles, RolesError> {
    let client = pool::dedicated(config, "partner-api roles").await?;
    let database: String = client.query_one(DATABASE, &[]).await?.try_get(0)?;
    let roles = Roles::of(&database);
    if roles.operator.len() > MAX_NAME {
        return Err(RolesError::Name(database));
    }
    client.batch_execute("BEGIN; SET LOCAL lock_timeout = '3s'").await?;
    execute_all(&client, CREATE, &[&roles.names()]).await?;
    execute_all(&client, JOIN_OWNER, &[&roles.owner]).await?;
    let (database, owner) = (quoted(&database), quoted(&roles.owner));
    let (server, operator) = (quoted(&roles.server), quoted(&roles.operator));
    client
        .batch_execute(&format!(
            "REVOKE ALL ON DATABASE {database} FROM PUBLIC;
             GRANT CONNECT ON DATABASE {database} TO {server};
             GRANT CONNECT, TEMPORARY ON DATABASE {database} TO {owner}, {operator};
             REVOKE CREATE ON SCHEMA public FROM PUBLIC;
             GRANT USAGE ON SCHEMA public TO {server}, {operator};
             GRANT USAGE, CREATE ON SCHEMA public TO {owner}"
        ))
        .await?;
    execute_all(&client, OWN, &[&roles.owner]).await?;
    client.batch_execute(&format!("SET ROLE {owner}")).await?;
    grant(&client, &roles).await?;
    client.batch_execute("COMMIT").await?;
    Ok(roles)
}

/// Gives the roles their privileges if they exist, as the owner of the schema. A migration may have added tables.
pub(super) async fn grant_if_created(client: &Client) -> Result<(), RolesError> {
    let database: String = client.query_one(DATABASE, &[]).await?.try_get(0)?;
    let roles = Roles::of(&database);
    if client.query_one(ARE_CREATED, &[&roles.names()]).await?.try_get(0)? {
        client.batch_execute("BEGIN").await?;
        grant(client, &roles).await?;
        client.batch_execute("COMMIT").await?;
    }
    Ok(())
}

async fn grant(client: &Client, roles: &Roles) -> Result<(), RolesError> {
    let (server, operator) = (quoted(&roles.server), quoted(&roles.operator));
    let mut sql = String::new();
    for (table, of_server, of_operator) in TABLES {
        sql += &format!("REVOKE ALL ON {table} FROM PUBLIC, {server}, {operator};\n");
        for (role, letters) in [(&server, of_server), (&operator, of_operator)] {
            let privileges: Vec<_> = privileges(letters).collect();
            if !privileges.is_empty() {
                sql += &format!("GRANT {} ON {table} TO {role};\n", privileges.join(", "));
            }
        }
    }
    for sequence in SEQUENCES {
        sql += &format!("GRANT USAGE ON SEQUENCE {sequence} TO {server};\n");
    }
    for function in FUNCTIONS {
        sql += &format!("GRANT EXECUTE ON FUNCTION {function} TO {server}, {operator};\n");
    }
    for function in FUNCTIONS_OF_OPERATORS {
        sql += &format!("GRANT EXECUTE ON FUNCTION {function} TO {operator};\n");
    }
    client.batch_execute(&sql).await?;
    Ok(())
}

/// Executes the statements that a query returns.
async fn execute_all(
    client: &Client,
    query: &str,
    parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)],
) -> Result<(), tokio_postgres::Error> {
    for row in client.query(query, parameters).await? {
        client.batch_execute(row.try_get(0)?).await?;
    }
    Ok(())
}

/// Quotes an identifier.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn privileges(letters: &str) -> impl Iterator<Item = &'static str> {
    PRIVILEGES
        .into_iter()
        .filter(move |(letter, _)| letters.contains(*letter))
        .map(|(_, name)| name)
}

statement! {
    /// The rights of the current user beyond those on tables. `$1` are the names of [`Roles`].
    FIND = "\
SELECT u.rolname::text AS name, u.rolsuper AS is_superuser,
       EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
               AND pg_has_role(u.oid, c.relowner, 'MEMBER')) AS is_owner,
       coalesce(pg_has_role(u.oid, to_regrole(quote_ident(($1::text[])[2])), 'MEMBER'), false) AS is_server,
       coalesce(pg_has_role(u.oid, to_regrole(quote_ident(($1::text[])[3])), 'MEMBER'), false) AS is_operator,
       array_remove(ARRAY[
           CASE WHEN u.rolcreaterole THEN 'CREATEROLE' END,
           CASE WHEN u.rolcreatedb THEN 'CREATEDB' END,
           CASE WHEN u.rolreplication THEN 'REPLICATION' END,
           CASE WHEN u.rolbypassrls THEN 'BYPASSRLS' END,
           CASE WHEN has_schema_privilege('public', 'CREATE') THEN 'CREATE in the schema' END,
           CASE WHEN has_database_privilege(current_database(), 'CREATE') THEN 'CREATE in the database' END,
           (SELECT string_agg(rolname, ', ') FROM pg_roles
            WHERE rolname IN ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files', 'pg_read_all_data',
                              'pg_write_all_data')
              AND pg_has_role(u.oid, oid, 'MEMBER'))], NULL) AS excess,
       has_database_privilege(current_database(), 'TEMPORARY') AS may_create_temporary_tables
FROM pg_roles u WHERE u.rolname = current_user";
    /// The privileges of `$1` that the current user has on each table and view.
    ON_TABLES = "\
SELECT c.relname::text AS name, ARRAY(
           SELECT privilege FROM unnest($1::text[]) AS privilege
           WHERE has_table_privilege(c.oid, privilege)) AS privileges
FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition";
    /// The functions and sequences that the current user may not use.
    UNUSABLE = "\
SELECT 'EXECUTE on ' || function AS missing FROM unnest($1::text[]) AS function
WHERE has_function_privilege(to_regprocedure(function), 'EXECUTE') IS NOT TRUE
UNION ALL
SELECT 'USAGE on ' || sequence FROM unnest($2::text[]) AS sequence
WHERE has_sequence_privilege(to_regclass(sequence), 'USAGE') IS NOT TRUE";
    CURRENT_DATABASE = "SELECT current_database()::text AS name";
}

/// The kind of the current user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A superuser.
    Superuser,
    /// The owner of tables, or a member of it.
    Owner,
    /// A member of [`Roles::operator`].
    Operator,
    /// Any other user; the service's rights are expected.
    Server,
}

/// The rights of the current user, compared with those that its role needs.
#[derive(Clone, Debug)]
pub struct Rights {
    /// The name of the user.
    pub name: String,
    /// The kind of the user.
    pub kind: Kind,
    /// The roles of the database.
    pub roles: Roles,
    /// The missing privileges. Empty for superusers and owners.
    pub missing: Vec<String>,
    /// The unnecessary privileges. Empty for superusers and owners, who have every right.
    pub excess: Vec<String>,
}

/// Compares the rights of the current user with those of the service or, for a member of the operators' role, of operators.
///
/// # Errors
/// If the database does not respond.
pub async fn rights(connection: &Connection) -> Result<Rights, DbError> {
    let database: String = connection.query_one(CURRENT_DATABASE, &[]).await?.try_get("name")?;
    let roles = Roles::of(&database);
    let user = connection.query_one(FIND, &[&roles.names()]).await?;
    let kind = if user.try_get("is_superuser")? {
        Kind::Superuser
    } else if user.try_get("is_owner")? {
        Kind::Owner
    } else if user.try_get("is_operator")? && !user.try_get("is_server")? {
        Kind::Operator
    } else {
        Kind::Server
    };
    let mut rights = Rights {
        name: user.try_get("name")?,
        kind,
        roles,
        missing: Vec::new(),
        excess: Vec::new(),
    };
    if matches!(kind, Kind::Superuser | Kind::Owner) {
        return Ok(rights);
    }
    rights.excess = user.try_get("excess")?;
    match (kind, user.try_get("may_create_temporary_tables")?) {
        (Kind::Operator, false) => rights.missing.push("TEMPORARY in the database".to_owned()),
        (Kind::Server, true) => rights.excess.push("TEMPORARY in the database".to_owned()),
        _ => {}
    }
    let mut held = BTreeMap::new();
    for row in connection.query(ON_TABLES, &[&ON_A_TABLE.as_slice()]).await? {
        let privileges: Vec<String> = row.try_get("privileges")?;
        held.insert(row.try_get::<_, String>("name")?, BTreeSet::from_iter(privileges));
    }
    for (table, server, operator) in TABLES {
        let letters = if kind == Kind::Operator { operator } else { server };
        let wanted: BTreeSet<_> = privileges(letters).map(str::to_owned).collect();
        let has = held.remove(*table).unwrap_or_default();
        let on_table = |privilege: &String| format!("{privilege} on {table}");
        rights.missing.extend(wanted.difference(&has).map(on_table));
        rights.excess.extend(has.difference(&wanted).map(on_table));
    }
    let sequences: &[&str] = if kind == Kind::Operator { &[] } else { &SEQUENCES };
    let functions = match kind {
        Kind::Operator => [FUNCTIONS.as_slice(), &FUNCTIONS_OF_OPERATORS].concat(),
        _ => FUNCTIONS.to_vec(),
    };
    for row in connection.query(UNUSABLE, &[&functions, &sequences]).await? {
        rights.missing.push(row.try_get("missing")?);
    }
    Ok(rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_quoted_whatever_it_contains() {
        assert_eq!(quoted("partner-api"), "\"partner-api\"");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }

    #[test]
    fn nobody_but_the_owner_can_change_what_is_append_only() {
        for table in [
            "audit_log",
            "imports",
            "inspection_form_answer_history",
            "inspection_transitions",
            "measurement_mismatches",
            "plate_corrections",
            "published_pdfs",
            "threshold_versions",
            "used_nonces",
        ] {
            let (_, server, operator) = TABLES.iter().find(|(name, ..)| *name == table).unwrap();
            for letters in [server, operator] {
                assert!(!letters.contains(['U', 'D']), "{table}: {letters}");
            }
        }
    }
}
