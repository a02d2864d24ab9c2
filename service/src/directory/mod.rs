//! Keys, grants and allowlists in memory: read on the way in without a query, never older than 5 s while the database
//! answers.

mod load;
mod scope;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use chrono::{DateTime, Utc};
use deadpool_postgres::Pool;
use ipnet::IpNet;
use partner_api_signing::{Environment, Secret};
use uuid::Uuid;

pub use load::STATEMENTS;
pub use scope::{Grant, Scope};

use crate::db::DbError;
use crate::secrets::MasterKey;

/// How often the version in the database is compared with the one in memory. A change is in force after this and the
/// time of one load, well within the contract's 5 s.
const POLL: Duration = Duration::from_secs(1);

/// What an allowlist does with an address outside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowlistMode {
    /// The request is refused.
    Enforce,
    /// The request is admitted, and logged.
    Report,
}

/// An API key of this environment that is neither revoked nor of a disabled partner.
#[derive(Debug)]
pub struct Key {
    /// The public key id.
    pub id: String,
    /// The HMAC key.
    pub secret: Secret,
    /// Scopes, such as `test-line:write`.
    pub scopes: Vec<String>,
    /// Requests per window of 60 s.
    pub rate_limit: u32,
    /// Blocks of admitted addresses; empty admits all.
    pub allowlist: Vec<IpNet>,
    /// What the allowlist does.
    pub allowlist_mode: AllowlistMode,
    /// From this moment the key is not recognised.
    pub expires_at: Option<DateTime<Utc>>,
    /// Who holds it, and what it may see.
    pub scope: Arc<Scope>,
}

/// One state of the keys.
#[derive(Debug, Default)]
struct Snapshot {
    version: i64,
    keys: HashMap<String, Arc<Key>>,
}

/// The keys of one environment.
#[derive(Debug)]
pub struct Directory {
    environment: Environment,
    master_key: MasterKey,
    snapshot: ArcSwap<Snapshot>,
}

impl Directory {
    /// Loads the keys of `environment`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn load(pool: &Pool, environment: Environment, master_key: MasterKey) -> Result<Arc<Self>, DbError> {
        let directory = Directory {
            environment,
            master_key,
            snapshot: ArcSwap::default(),
        };
        directory.refresh(pool).await?;
        Ok(Arc::new(directory))
    }

    /// The key of this id, unless it has expired.
    pub fn key(&self, id: &str, now: DateTime<Utc>) -> Option<Arc<Key>> {
        let key = self.snapshot.load().keys.get(id)?.clone();
        if key.expires_at.is_some_and(|at| at <= now) {
            None
        } else {
            Some(key)
        }
    }

    /// Loads again if something changed since; returns whether it did.
    ///
    /// # Errors
    /// When the database does not answer; what is in memory stays.
    pub async fn refresh(&self, pool: &Pool) -> Result<bool, DbError> {
        let client = pool.get().await?;
        let version = load::version(&client).await?;
        if version == self.snapshot.load().version {
            return Ok(false);
        }
        // The version was read first: a change in between is loaded twice rather than missed.
        let keys = load::keys(&client, self.environment, &self.master_key).await?;
        self.snapshot.store(Arc::new(Snapshot { version, keys }));
        Ok(true)
    }

    /// Keeps the keys fresh for ever.
    pub async fn keep_fresh(self: Arc<Self>, pool: Pool) {
        let mut failing = false;
        loop {
            tokio::time::sleep(POLL).await;
            match self.refresh(&pool).await {
                Ok(changed) => {
                    if changed || failing {
                        tracing::info!(keys = self.snapshot.load().keys.len(), "keys and grants reloaded");
                    }
                    failing = false;
                }
                Err(error) => {
                    if !failing {
                        tracing::warn!(%error, "keys and grants cannot be refreshed; the last ones stay in force");
                    }
                    failing = true;
                }
            }
        }
    }
}

/// The partner's id of a key, for logs.
impl Key {
    /// The partner.
    pub fn partner_id(&self) -> Uuid {
        self.scope.partner_id
    }
}
