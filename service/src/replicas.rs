//! Heartbeats of replicas. Each replica updates its row every few seconds, and deletes it when it stops. Operators read the rows, and `secrets rekey` uses
//! them to check that all replicas accept the new master key.

use std::net::SocketAddr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use deadpool_postgres::Pool;
use partner_api_signing::Environment;
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::secrets::MasterKey;
use partner_api_store::statement;
use serde::Serialize;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::admission::AdmissionHealth;

/// The heartbeat interval.
const INTERVAL: Duration = Duration::from_secs(5);

/// The timeout of a heartbeat.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The seconds without a heartbeat after which a replica counts as gone.
pub const GONE_AFTER_S: f64 = 20.0;

statement! {
    HEARTBEAT = "INSERT INTO replicas (id, host, address, environment, version, master_keys, clock_at, connections) \
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
            ON CONFLICT (id) DO UPDATE SET seen_at = now(), clock_at = $7";
    DELETE_OLD = "DELETE FROM replicas WHERE seen_at < now() - interval '1 hour'";
    DELETE = "DELETE FROM replicas WHERE id = $1";
    LIST = "SELECT id, host, address, environment, version, master_keys, started_at, seen_at, clock_at, connections FROM replicas \
            WHERE seen_at > now() - make_interval(secs => $1) ORDER BY started_at, id";
}

/// A replica as it describes itself.
#[derive(Clone, Debug, Serialize)]
pub struct Replica {
    /// The ID of this run.
    pub id: Uuid,
    /// The host name.
    pub host: String,
    /// The address it listens on.
    pub address: String,
    /// The environment.
    pub environment: String,
    /// The program's version.
    pub version: String,
    /// Fingerprints of the accepted master keys; the first key encrypts.
    pub master_keys: Vec<String>,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// The time of its last heartbeat.
    pub seen_at: DateTime<Utc>,
    /// The time by its own clock then.
    pub clock_at: DateTime<Utc>,
    /// The maximum number of its connections to the primary; `None` for a version that does not say.
    pub connections: Option<i32>,
}

/// Lists the running replicas.
///
/// # Errors
/// If the database does not respond.
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
                clock_at: row.try_get("clock_at")?,
                connections: row.try_get("connections")?,
            })
        })
        .collect()
}

/// The heartbeats of this replica. They end when this is dropped.
pub(crate) struct Heartbeats {
    id: Uuid,
    pool: Pool,
    sending: JoinSet<()>,
}

impl Heartbeats {
    /// Sends heartbeats until [`Heartbeats::stop`], and records successes in `health`.
    pub(crate) fn start(
        pool: Pool,
        address: SocketAddr,
        environment: Environment,
        master_key: &MasterKey,
        connections: usize,
        health: AdmissionHealth,
    ) -> Self {
        let id = Uuid::now_v7();
        let host = nix::unistd::gethostname()
            .map_or_else(|_| "unknown".to_owned(), |name| name.to_string_lossy().into_owned());
        let (address, environment) = (address.to_string(), environment.as_str());
        let (version, master_keys) = (env!("CARGO_PKG_VERSION"), master_key.fingerprints());
        let connections = i32::try_from(connections).unwrap_or(i32::MAX);
        let mut sending = JoinSet::new();
        let its_pool = pool.clone();
        sending.spawn(async move {
            let mut failing = false;
            loop {
                let heartbeat = async {
                    let connection = Connection::take(&its_pool, TIMEOUT).await?;
                    let clock = Utc::now();
                    connection
                        .execute(
                            HEARTBEAT,
                            &[
                                &id,
                                &host,
                                &address,
                                &environment,
                                &version,
                                &master_keys,
                                &clock,
                                &connections,
                            ],
                        )
                        .await?;
                    connection.execute(DELETE_OLD, &[]).await
                };
                match heartbeat.await {
                    Ok(_) => {
                        failing = false;
                        health.record_write();
                    }
                    Err(error) if !failing => {
                        failing = true;
                        tracing::warn!(%error, "failed to write the replica's heartbeat");
                    }
                    Err(_) => {}
                }
                tokio::time::sleep(INTERVAL).await;
            }
        });
        Self { id, pool, sending }
    }

    /// Ends the heartbeats and deletes the row, so that the replica does not count as serving any more.
    pub(crate) async fn stop(mut self) {
        self.sending.shutdown().await;
        let leave = async {
            let connection = Connection::take(&self.pool, TIMEOUT).await?;
            connection.execute(DELETE, &[&self.id]).await
        };
        if let Err(error) = leave.await {
            tracing::warn!(%error, "failed to delete the replica's heartbeat; it counts as serving for {GONE_AFTER_S} s more");
        }
    }
}
