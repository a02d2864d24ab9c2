//! Which replicas serve: each writes a row of its own every few seconds, for operators and for `secrets rekey`, which asks
//! whether all of them accept the new master key.

use std::net::SocketAddr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use deadpool_postgres::Pool;
use partner_api_signing::Environment;
use serde::Serialize;
use uuid::Uuid;

use crate::admission::Lately;
use crate::db::DbError;
use crate::db::connection::Connection;
use crate::secrets::MasterKey;
use crate::statement;

/// How often a replica writes that it is there.
const EVERY: Duration = Duration::from_secs(5);

/// How long one write may take.
const BOUND: Duration = Duration::from_secs(2);

/// The silence in seconds after which a replica counts as gone.
pub const GONE_AFTER_S: f64 = 20.0;

statement! {
    SEEN = "INSERT INTO replicas (id, host, address, environment, version, master_keys) VALUES ($1, $2, $3, $4, $5, $6) \
            ON CONFLICT (id) DO UPDATE SET seen_at = now()";
    FORGET = "DELETE FROM replicas WHERE seen_at < now() - interval '1 hour'";
    LIST = "SELECT id, host, address, environment, version, master_keys, started_at, seen_at FROM replicas \
            WHERE seen_at > now() - make_interval(secs => $1) ORDER BY started_at, id";
}

/// A replica, as it says of itself.
#[derive(Clone, Debug, Serialize)]
pub struct Replica {
    /// Of this run of it.
    pub id: Uuid,
    /// The machine's name.
    pub host: String,
    /// Where it listens.
    pub address: String,
    /// Its environment.
    pub environment: String,
    /// The program's version.
    pub version: String,
    /// What the master keys that it accepts are told apart by; the first one seals.
    pub master_keys: Vec<String>,
    /// When it came.
    pub started_at: DateTime<Utc>,
    /// When it was last heard of.
    pub seen_at: DateTime<Utc>,
}

/// The replicas that serve now.
///
/// # Errors
/// When the database does not answer.
pub async fn list(connection: &Connection) -> Result<Vec<Replica>, DbError> {
    let rows = connection.query(LIST, &[&GONE_AFTER_S]).await?;
    rows.iter()
        .map(|row| {
            Ok(Replica {
                id: row.try_get("id")?,
                host: row.try_get("host")?,
                address: row.try_get("address")?,
                environment: row.try_get("environment")?,
                version: row.try_get("version")?,
                master_keys: row.try_get("master_keys")?,
                started_at: row.try_get("started_at")?,
                seen_at: row.try_get("seen_at")?,
            })
        })
        .collect()
}

/// What a replica says of itself, for ever. Where the database takes it, `lately` is told.
pub(crate) async fn keep_seen(
    pool: Pool,
    address: SocketAddr,
    environment: Environment,
    master_key: MasterKey,
    lately: Lately,
) {
    let id = Uuid::now_v7();
    let host =
        nix::unistd::gethostname().map_or_else(|_| "unknown".to_owned(), |name| name.to_string_lossy().into_owned());
    let (address, environment) = (address.to_string(), environment.as_str());
    let (version, master_keys) = (env!("CARGO_PKG_VERSION"), master_key.checks());
    let mut failing = false;
    loop {
        let seen = async {
            let connection = Connection::take(&pool, BOUND).await?;
            connection
                .execute(SEEN, &[&id, &host, &address, &environment, &version, &master_keys])
                .await?;
            connection.execute(FORGET, &[]).await
        };
        match seen.await {
            Ok(_) => {
                failing = false;
                lately.wrote();
            }
            Err(error) if !failing => {
                failing = true;
                tracing::warn!(%error, "this replica cannot write that it is there");
            }
            Err(_) => {}
        }
        tokio::time::sleep(EVERY).await;
    }
}
