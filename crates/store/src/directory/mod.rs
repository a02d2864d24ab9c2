//! Keys, grants and allowlists in memory: read on the way in without a query. What is older than [`STALE`] is not relied on:
//! a revocation that nobody heard of must not leave a key in force.

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

/// How often the version in the database is compared with the one in memory. A change is in force after this and the
/// time of one load, well within the 5 s of KEY-8.
pub const POLL: Duration = Duration::from_secs(1);

/// How long one look may take.
const LOOK: Duration = Duration::from_millis(1_500);

/// The age from which the directory is not relied on (KEY-8).
pub const STALE: Duration = Duration::from_secs(5);

/// What an allowlist does with an address outside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowlistMode {
    /// The request is refused.
    Enforce,
    /// The request is admitted, and logged.
    Report,
}

column! { AllowlistMode { Enforce = "enforce", Report = "report" } }

/// An API key of this environment that is neither revoked nor of a disabled partner.
#[derive(Debug)]
pub struct Key {
    /// The public key id.
    pub id: Arc<str>,
    /// The HMAC key.
    pub secret: Secret,
    /// What it may do beyond reading, such as `test-line:write` (KEY-4); the wire and the database call these scopes.
    pub permissions: Vec<String>,
    /// Requests per window of 60 s.
    pub rate_limit: u32,
    /// Blocks of admitted addresses; empty admits all.
    pub allowlist: Vec<IpNet>,
    /// What the allowlist does.
    pub allowlist_mode: AllowlistMode,
    /// From this moment the key is not recognised.
    pub expires_at: Option<DateTime<Utc>>,
    /// Who holds it, and what it may see.
    pub partner: Arc<Partner>,
    /// The connections that its requests may have at once: no key has all of them.
    pub share: Arc<Semaphore>,
}

/// The share of each key in the connections for requests; it outlives what is loaded, or each load would double it.
#[derive(Debug)]
struct Shares {
    each: usize,
    by_key: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Shares {
    /// Three quarters of `connections` each: a key alone is slowed down by nothing, and of two neither locks the other out.
    fn of(connections: usize) -> Self {
        Shares {
            each: (connections * 3 / 4).max(1),
            by_key: Mutex::default(),
        }
    }

    fn share(&self, key_id: &str) -> Arc<Semaphore> {
        let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        by_key
            .entry(key_id.to_string())
            .or_insert_with(|| Arc::new(Semaphore::new(self.each)))
            .clone()
    }
}

/// Whose key a request names, for the log: nothing is proved by it.
#[derive(Clone, Debug)]
pub struct Named {
    /// The key's id.
    pub key_id: Arc<str>,
    /// Whose it is, if anybody here has it.
    pub partner: Option<Arc<Partner>>,
}

impl Named {
    /// What a key says of itself.
    pub fn by(key: &Key) -> Self {
        Named {
            key_id: key.id.clone(),
            partner: Some(key.partner.clone()),
        }
    }
}

/// Why a key id lets nobody in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyProblem {
    /// It has not the shape of a key id.
    Malformed,
    /// There is no such key.
    Unknown,
    /// The key is of the other environment.
    OfOtherEnvironment,
    /// The key has expired.
    Expired,
    /// The key was revoked.
    Revoked,
    /// The key's partner is disabled.
    PartnerDisabled,
    /// The key's row cannot be read.
    Unusable,
}

/// A key that is there and lets nobody in.
#[derive(Debug)]
struct Withheld {
    named: Named,
    reason: KeyProblem,
}

/// One state of the keys.
#[derive(Debug, Default)]
struct Snapshot {
    version: i64,
    keys: Keys,
}

/// Every key that there is.
#[derive(Debug, Default)]
struct Keys {
    usable: HashMap<String, Arc<Key>>,
    withheld: HashMap<String, Withheld>,
}

/// The keys of one environment.
#[derive(Debug)]
pub struct Directory {
    environment: Environment,
    master_key: MasterKey,
    snapshot: ArcSwap<Snapshot>,
    shares: Shares,
    /// When the last look that was answered began.
    looked_at: Mutex<Instant>,
}

impl Directory {
    /// Loads the keys of `environment`, which share so many `connections` for requests.
    ///
    /// # Errors
    /// When the database does not answer.
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
            shares: Shares::of(connections),
            looked_at: Mutex::new(Instant::now()),
        };
        directory.refresh(pool).await?;
        Ok(Arc::new(directory))
    }

    /// The key of this id.
    ///
    /// # Errors
    /// Why there is none in force.
    pub fn key(&self, id: &str, now: DateTime<Utc>) -> Result<Arc<Key>, KeyProblem> {
        let snapshot = self.snapshot.load();
        match snapshot.keys.usable.get(id) {
            Some(key) if key.expires_at.is_some_and(|at| at <= now) => Err(KeyProblem::Expired),
            Some(key) => Ok(key.clone()),
            None => Err(match (snapshot.keys.withheld.get(id), id.parse::<KeyId>()) {
                (Some(withheld), _) => withheld.reason,
                (None, Err(_)) => KeyProblem::Malformed,
                (None, Ok(id)) if id.environment() != self.environment => KeyProblem::OfOtherEnvironment,
                (None, Ok(_)) => KeyProblem::Unknown,
            }),
        }
    }

    /// Whose key this id is, in force or not; none for what has not the shape of a key id: a careless caller may have sent
    /// its secret.
    pub fn whose(&self, id: &str) -> Option<Named> {
        let keys = &self.snapshot.load().keys;
        let known = keys.usable.get(id).map(|key| Named::by(key));
        let known = known.or_else(|| Some(keys.withheld.get(id)?.named.clone()));
        known.or_else(|| {
            id.parse::<KeyId>().ok().map(|id| Named {
                key_id: id.as_str().into(),
                partner: None,
            })
        })
    }

    /// The time since the database was last known to agree with what is in memory.
    pub fn age(&self) -> Duration {
        self.looked_at.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// How many keys are in force, those included that have expired since they were loaded.
    pub fn keys(&self) -> usize {
        self.snapshot.load().keys.usable.len()
    }

    /// Loads again if something changed since; returns whether it did.
    ///
    /// # Errors
    /// When the database does not answer in time; what is in memory stays, and ages.
    pub async fn refresh(&self, pool: &Pool) -> Result<bool, DbError> {
        let began = Instant::now();
        let client = Connection::take(pool, LOOK).await?;
        let version = load::version(&client).await?;
        let changed = version != self.snapshot.load().version;
        if changed {
            // The version was read first: a change in between is loaded twice rather than missed.
            let keys = load::keys(&client, self.environment, &self.master_key, &self.shares).await?;
            self.snapshot.store(Arc::new(Snapshot { version, keys }));
        }
        *self.looked_at.lock().unwrap_or_else(PoisonError::into_inner) = began;
        Ok(changed)
    }

    /// Keeps the keys fresh for ever: looks every `poll` ([`POLL`]), and whenever `database` says that they changed.
    pub async fn keep_fresh(self: Arc<Self>, pool: Pool, database: tokio_postgres::Config, poll: Duration) {
        let changed = Arc::new(Notify::new());
        tokio::select! {
            () = listen::tell(database, changed.clone()) => {}
            () = self.look(&pool, &changed, poll) => {}
        }
    }

    async fn look(&self, pool: &Pool, changed: &Notify, poll: Duration) {
        let mut failing = false;
        let mut stale = false;
        loop {
            let _ = tokio::time::timeout(poll, changed.notified()).await;
            match self.refresh(pool).await {
                Ok(changed) => {
                    if changed || failing {
                        tracing::info!(
                            keys = self.snapshot.load().keys.usable.len(),
                            "keys and grants reloaded"
                        );
                    }
                    (failing, stale) = (false, false);
                }
                Err(error) => {
                    if !failing {
                        tracing::warn!(%error, "keys and grants cannot be refreshed; the last ones stay in force for now");
                    }
                    failing = true;
                }
            }
            if !stale && self.age() > STALE {
                stale = true;
                tracing::error!(
                    age_s = self.age().as_secs(),
                    "keys and grants are out of date: all but health is answered 503 until the database answers again; see \
                     that it runs and takes connections"
                );
            }
        }
    }
}
