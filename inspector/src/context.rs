//! The state that inspectors' requests share.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
use partner_api::db::DbError;
use partner_api::db::connection::Connection;
use partner_api::rules::cursor::CursorSealer;
use partner_api::server::Elsewhere;
use tokio::sync::Semaphore;

use crate::front_door::Caller;
use crate::page::Policy;
use crate::watch::Watch;

/// Photos that are read and drawn small at the same time: each holds some tens of megabytes.
const PHOTOS_AT_ONCE: usize = 4;

/// The state that requests share; cheap to clone.
#[derive(Clone)]
pub struct Context(Arc<Shared>);

struct Shared {
    service: partner_api::context::Context,
    pool: Pool,
    cursors: CursorSealer,
    photos: Arc<Semaphore>,
    watch: Watch,
    body_timeout: Duration,
    policy: Policy,
}

impl Context {
    /// Of the service's state.
    pub fn new(elsewhere: Elsewhere) -> Self {
        let Elsewhere {
            context,
            pool,
            body_timeout,
        } = elsewhere;
        Context(Arc::new(Shared {
            cursors: CursorSealer::new(&context.cursor_key),
            photos: Arc::new(Semaphore::new(PHOTOS_AT_ONCE)),
            watch: Watch::new(pool.clone()),
            body_timeout,
            policy: Policy::default(),
            service: context,
            pool,
        }))
    }

    /// A connection for the caller's request: until its deadline.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn db(&self, caller: &Caller) -> Result<Connection, DbError> {
        Connection::take_by(&self.0.pool, caller.deadline()).await
    }

    /// A connection before anybody is known to call.
    pub(crate) fn pool(&self) -> &Pool {
        &self.0.pool
    }

    /// The service's own state: storage, instruments, the log.
    pub fn service(&self) -> &partner_api::context::Context {
        &self.0.service
    }

    /// Seals cursors.
    pub fn cursors(&self) -> &CursorSealer {
        &self.0.cursors
    }

    /// The time in which a body must have arrived.
    pub(crate) fn body_timeout(&self) -> Duration {
        self.0.body_timeout
    }

    /// Places for photos in memory.
    pub fn photos(&self) -> &Arc<Semaphore> {
        &self.0.photos
    }

    /// What the page may load.
    pub(crate) fn policy(&self) -> &Policy {
        &self.0.policy
    }

    /// Tells what changes.
    pub(crate) fn watch(&self) -> &Watch {
        &self.0.watch
    }
}
