//! The checks of the deployment, of the role's rights, of the schema, and of the connections.

use partner_api::config::{Config, Database};
use partner_api::replicas;
use partner_api::startup::{StartupError, connections_of_replica};
use partner_api_store::connection::Connection;
use partner_api_store::deployment::{self, DeploymentError};
use partner_api_store::pool::{parse_url, pool};
use partner_api_store::roles::{self, Kind};
use partner_api_store::schema;

use super::{Checks, DATABASE_TIMEOUT};
use crate::failure::Failure;

partner_api_store::statement! {
    /// The connections that are available to users without special rights. Limits of -1 are none.
    LIMITS = "\
SELECT current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint AS server,
       nullif(d.datconnlimit, -1)::bigint AS database, nullif(r.rolconnlimit, -1)::bigint AS role
FROM pg_database d, pg_roles r WHERE d.datname = current_database() AND r.rolname = current_user";
}

/// The connections that remain for operators, monitoring and backups.
const SPARE_CONNECTIONS: i64 = 10;

/// The number of rights or objects that a message lists.
const SHOWN: usize = 8;

pub(super) async fn deployment(config: &Config, connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    const CHECK: &str = "deployment";
    match deployment::verify(connection, config.deployment()).await {
        Ok(found) => checks.ok(CHECK, format!("{found}")),
        Err(DeploymentError::Db(error)) => return Err(error.into()),
        Err(error @ DeploymentError::Unclaimed) => checks.failed(CHECK, error.to_string(), "partner-api migrate"),
        Err(error) => checks.failed(
            CHECK,
            error.to_string(),
            "correct database_url, environment or deployment in the configuration",
        ),
    }
    Ok(())
}

pub(super) async fn role(config: &Config, connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    const CHECK: &str = "role";
    let rights = roles::rights(connection).await?;
    let (name, roles) = (&rights.name, &rights.roles);
    if matches!(config.database, Database::Embedded { .. }) {
        checks.ok(CHECK, format!("{name}, the superuser of the private cluster"));
        return Ok(());
    }
    let fitting = format!(
        "connect as a member of {} (serve) or {} (operators); partner-api migrate --roles creates them",
        roles.server, roles.operator
    );
    let of = match rights.kind {
        Kind::Superuser => {
            checks.warning(CHECK, format!("{name} is a superuser"), fitting);
            return Ok(());
        }
        Kind::Owner => {
            let found = format!("{name} owns the schema, so that it could remove the protection of the audit log");
            checks.warning(CHECK, found, fitting);
            return Ok(());
        }
        Kind::Operator => &roles.operator,
        Kind::Server => &roles.server,
    };
    if !rights.missing.is_empty() {
        let found = format!("{name} lacks {}", listed(&rights.missing));
        let next = format!("as a superuser: partner-api migrate --roles, then GRANT \"{of}\" TO \"{name}\"");
        checks.failed(CHECK, found, next);
    } else if !rights.excess.is_empty() {
        let found = format!(
            "{name} needs the rights of {of}, and also has {}",
            listed(&rights.excess)
        );
        let next = "revoke them, or create a new user in that role (partner-api migrate --roles)";
        checks.warning(CHECK, found, next);
    } else {
        checks.ok(CHECK, format!("{name} has exactly the rights of {of}"));
    }
    Ok(())
}

/// Lists the first of several, and the number of the others.
fn listed(all: &[String]) -> String {
    let shown = all[..all.len().min(SHOWN)].join(", ");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown}, and {more} more"),
    }
}

pub(super) async fn schema(connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    const CHECK: &str = "schema";
    let missing = schema::missing(connection).await?;
    let Some(first) = missing.first() else {
        checks.ok(
            CHECK,
            "all tables, indexes, constraints, triggers and functions exist and are enabled",
        );
        return Ok(());
    };
    let next = match first.split(' ').collect::<Vec<_>>()[..] {
        ["trigger", trigger, "on", table] => {
            format!(
                "ALTER TABLE {table} ENABLE TRIGGER {trigger}, or execute its CREATE TRIGGER of the migrations, as the owner"
            )
        }
        ["index", index, ..] => {
            format!("REINDEX INDEX {index}, or execute its CREATE INDEX of the migrations, as the owner")
        }
        _ => "restore the database from a backup, or execute its statement of the migrations, as the owner".to_owned(),
    };
    checks.failed(
        CHECK,
        format!("missing, invalid or disabled: {}", listed(&missing)),
        next,
    );
    Ok(())
}

/// Checks that the primary allows the connections of all running replicas, or of one with this configuration, and that the standbys
/// allow those for reads.
pub(super) async fn connections(config: &Config, connection: &Connection, checks: &mut Checks) -> Result<(), Failure> {
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let own = number(connections_of_replica(config));
    let each: Vec<i64> = replicas::list(connection)
        .await?
        .iter()
        .map(|replica| replica.connections.map_or(own, i64::from))
        .collect();
    let (replicas, needed) = match each.as_slice() {
        [] => (1, own),
        each => (number(each.len()), each.iter().sum()),
    };
    within_limit("connections", replicas, needed, connection, checks).await?;
    if let Some(read) = &config.read_database {
        const CHECK: &str = "read connections";
        let settings = config.pool_settings();
        let needed = number(settings.size).saturating_mul(replicas);
        let pool = pool(parse_url(read.url.expose()).map_err(StartupError::from)?, &settings);
        match Connection::take(&pool.map_err(StartupError::from)?, DATABASE_TIMEOUT).await {
            Ok(standby) => within_limit(CHECK, replicas, needed, &standby, checks).await?,
            Err(error) => checks.warning(
                CHECK,
                format!("no standby responds ({error}), so the primary serves all reads"),
                "check that a standby of read_database_url runs and accepts connections",
            ),
        }
    }
    Ok(())
}

async fn within_limit(
    check: &'static str,
    replicas: i64,
    needed: i64,
    connection: &Connection,
    checks: &mut Checks,
) -> Result<(), Failure> {
    let row = connection.query_one(LIMITS, &[]).await?;
    let server: i64 = row.try_get("server")?;
    let others: [Option<i64>; 2] = [row.try_get("database")?, row.try_get("role")?];
    let limit = others.into_iter().flatten().fold(server, i64::min);
    let found = format!("replicas: {replicas}, together with up to {needed} connections; the database allows {limit}");
    let next = "raise max_connections or the limit of the database or role, or lower --pool-size";
    if needed > limit {
        checks.failed(check, found, next);
    } else if needed.saturating_add(SPARE_CONNECTIONS) > limit {
        checks.warning(check, found, next);
    } else {
        checks.ok(check, found);
    }
    Ok(())
}
