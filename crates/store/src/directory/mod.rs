//! An in-memory cache of keys, grants and allowlists, so that requests need no query for them.
//!
//! The cache is not used once it is older than [`STALE`], so a replica that missed a revocation cannot keep a key active.

mod listen;
mod load;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use chrono::{DateTime, Utc};
use deadpool_postgres::Pool;
use ipnet::IpNet;
use partner_api_domain::grants::Partner;
use partner_api_signing::{Environment, KeyId, Secret};
use tokio::sync::{Notify, Semaphore};

use crate::connection::Connection;
use crate::secrets::MasterKey;
use crate::{DbError, column};

/// How often the version in the database is compared with the one in memory. A change takes effect after at most this
/// time and the time to load it, well within the 5 s of KEY-8.
pub const POLL: Duration = Duration::from_secs(1);

/// The delay of a poll after one that failed, so that the keys are current soon after the database's return.
const RETRY: Duration = Duration::from_millis(100);

/// The time limit for one refresh.
const REFRESH_TIMEOUT: Duration = Duration::from_millis(1_500);

/// The age from which the directory must not be used (KEY-8).
pub const STALE: Duration = Duration::from_secs(5);

/// How an allowlist treats an address that it does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowlistMode {
    /// Reject the request.
    Enforce,
    /// Admit the request and log it.
    Report,
}

column! { AllowlistMode { Enforce = "enforce", Report = "report" } }

/// An API key of this environment that is not revoked and whose partner is enabled.
#[derive(Debug)]
pub struct Key {
    /// The public key ID.
    pub id: Arc<str>,
    /// The HMAC key.
    pub secret: Secret,
    /// The permissions beyond reading, such as `test-line:write` (KEY-4). The API and the database call them scopes.
    pub permissions: Vec<String>,
    /// Requests per window of 60 s.
    pub rate_limit: u32,
    /// Address blocks from which the key may be used; empty admits all addresses.
    pub allowlist: Vec<IpNet>,
    /// How the allowlist treats other addresses.
    pub allowlist_mode: AllowlistMode,
    /// The time from which the key is no longer accepted.
    pub expires_at: Option<DateTime<Utc>>,
    /// The partner that the key belongs to, with its grants.
    pub partner: Arc<Partner>,
    /// Limits the connections that requests with this key use at a time.
    pub connection_quota: Arc<Semaphore>,
}

/// The connection quotas of all keys. They outlive reloads, because a new semaphore would admit more connections.
#[derive(Debug)]
struct ConnectionQuotas {
    per_key: usize,
    by_key: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl ConnectionQuotas {
    /// Gives each key three quarters of the `connections`, so that a single busy key has enough of them and leaves some to
    /// others.
    fn new(connections: usize) -> Self {
        ConnectionQuotas {
            per_key: (connections * 3 / 4).max(1),
            by_key: Mutex::default(),
        }
    }

    fn of_key(&self, key_id: &str) -> Arc<Semaphore> {
        let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        by_key
            .entry(key_id.to_string())
            .or_insert_with(|| Arc::new(Semaphore::new(self.per_key)))
            .clone()
    }
}

/// The key that a request claims to use, for the log. It proves nothing.
#[derive(Clone, Debug)]
pub struct ClaimedKey {
    /// The key ID.
    pub key_id: Arc<str>,
    /// The partner that the key belongs to, if the key exists.
    pub partner: Option<Arc<Partner>>,
}

impl ClaimedKey {
    /// Returns the ID and the partner of a key.
    pub fn of(key: &Key) -> Self {
        ClaimedKey {
            key_id: key.id.clone(),
            partner: Some(key.partner.clone()),
        }
    }
}

/// Why a key ID is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyProblem {
    /// The text does not have the format of a key ID.
    Malformed,
    /// The key does not exist.
    Unknown,
    /// The key belongs to the other environment.
    OfOtherEnvironment,
    /// The key has expired.
    Expired,
    /// The key was revoked.
    Revoked,
    /// The key's partner is disabled.
    PartnerDisabled,
    /// The key's row is invalid, or its secret cannot be decrypted.
    Unusable,
}

/// A key that exists and is not accepted.
#[derive(Debug)]
struct UnusableKey {
    key: ClaimedKey,
    problem: KeyProblem,
}

/// The keys at one version of the database.
#[derive(Debug, Default)]
struct Snapshot {
    version: i64,
    keys: Keys,
}

/// All keys in the database.
#[derive(Debug, Default)]
struct Keys {
    usable: HashMap<String, Arc<Key>>,
    unusable: HashMap<String, UnusableKey>,
}

/// The cached keys of one environment.
#[derive(Debug)]
pub struct Directory {
    environment: Environment,
    master_key: MasterKey,
    snapshot: ArcSwap<Snapshot>,
    quotas: ConnectionQuotas,
    /// The start of the last successful refresh.
    refreshed_at: Mutex<Instant>,
}

impl Directory {
    /// Loads the keys of `environment`, whose requests share this number of `connections`.
    ///
    /// # Errors
    /// If the database does not respond.
    pub async fn load(
        pool: &Pool,
        environment: Environment,
        master_key: MasterKey,
        connections: usize,
    ) -> Result<Arc<Self>, DbError> {
        let directory = Directory {
            environment,
            master_key,
            snapshot: ArcSwap::default(),
            quotas: ConnectionQuotas::new(connections),
            refreshed_at: Mutex::new(Instant::now()),
        };
        directory.refresh(pool).await?;
        Ok(Arc::new(directory))
    }

    /// Returns the environment of the keys.
    pub fn environment(&self) -> Environment {
        self.environment
    }

    /// Returns the active key with this ID.
    ///
    /// # Errors
    /// Why the key is not accepted.
    pub fn key(&self, id: &str, now: DateTime<Utc>) -> Result<Arc<Key>, KeyProblem> {
        let snapshot = self.snapshot.load();
        match snapshot.keys.usable.get(id) {
            Some(key) if key.expires_at.is_some_and(|at| at <= now) => Err(KeyProblem::Expired),
            Some(key) => Ok(key.clone()),
            None => Err(match (snapshot.keys.unusable.get(id), id.parse::<KeyId>()) {
                (Some(unusable), _) => unusable.problem,
                (None, Err(_)) => KeyProblem::Malformed,
                (None, Ok(id)) if id.environment() != self.environment => KeyProblem::OfOtherEnvironment,
                (None, Ok(_)) => KeyProblem::Unknown,
            }),
        }
    }

    /// Returns the key with this ID, active or not, for the log. Returns `None` if the text does not have the format of a
    /// key ID, because a careless caller may have sent its secret.
    pub fn claimed_key(&self, id: &str) -> Option<ClaimedKey> {
        let keys = &self.snapshot.load().keys;
        let known = keys.usable.get(id).map(|key| ClaimedKey::of(key));
        let known = known.or_else(|| Some(keys.unusable.get(id)?.key.clone()));
        known.or_else(|| {
            id.parse::<KeyId>().ok().map(|id| ClaimedKey {
                key_id: id.as_str().into(),
                partner: None,
            })
        })
    }

    /// Returns the time since the cache was last known to match the database.
    pub fn age(&self) -> Duration {
        let refreshed_at = self.refreshed_at.lock().unwrap_or_else(PoisonError::into_inner);
        refreshed_at.elapsed()
    }

    /// Returns the number of active keys, including those that have expired since they were loaded.
    pub fn key_count(&self) -> usize {
        self.snapshot.load().keys.usable.len()
    }

    /// Reloads the keys if they have changed, and returns whether they have.
    ///
    /// # Errors
    /// If the database does not respond in time. The cache is then unchanged, and becomes older.
    pub async fn refresh(&self, pool: &Pool) -> Result<bool, DbError> {
        let started = Instant::now();
        let client = Connection::take(pool, REFRESH_TIMEOUT).await?;
        let version = load::version(&client).await?;
        let changed = version != self.snapshot.load().version;
        if changed {
            // The version is read first, so that a change in between is loaded twice instead of being missed.
            let keys = load::keys(&client, self.environment, &self.master_key, &self.quotas).await?;
            self.snapshot.store(Arc::new(Snapshot { version, keys }));
        }
        *self.refreshed_at.lock().unwrap_or_else(PoisonError::into_inner) = started;
        Ok(changed)
    }

    /// Refreshes the keys forever: every `poll` ([`POLL`]), and whenever the `database` notifies a change.
    pub async fn keep_fresh(self: Arc<Self>, pool: Pool, database: tokio_postgres::Config, poll: Duration) {
        let changed = Arc::new(Notify::new());
        tokio::select! {
            () = listen::forward_changes(database, changed.clone()) => {}
            () = self.refresh_repeatedly(&pool, &changed, poll) => {}
        }
    }

    async fn refresh_repeatedly(&self, pool: &Pool, changed: &Notify, poll: Duration) {
        let mut failing = false;
        let mut stale = false;
        loop {
            // After a failure, only the pacer limits how soon the next attempt follows.
            let wait = if failing { poll.min(RETRY) } else { poll };
            let _ = tokio::time::timeout(wait, changed.notified()).await;
            match self.refresh(pool).await {
                Ok(changed) => {
                    if changed || failing {
                        tracing::info!(
                            keys = self.snapshot.load().keys.usable.len(),
                            "reloaded keys and grants"
                        );
                    }
                    (failing, stale) = (false, false);
                }
                Err(error) => {
                    if !failing {
                        tracing::warn!(%error, "failed to refresh keys and grants; using the cached ones for now");
                    }
                    failing = true;
                }
            }
            if !stale && self.age() > STALE {
                stale = true;
                tracing::error!(
                    age_s = self.age().as_secs(),
                    "keys and grants are out of date: returning 503 for everything except health until the database responds; \
                     check that it runs and accepts connections"
                );
            }
        }
    }
}
