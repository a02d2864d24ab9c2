//! The state that inspectors' requests share.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
use partner_api::db::DbError;
use partner_api::db::connection::Connection;
use partner_api::deadline::Deadline;
use partner_api::rules::cursor::CursorSealer;
use partner_api::server::Elsewhere;
use tokio::sync::Semaphore;

use crate::front_door::Caller;
use crate::page::Policy;
use crate::watch::Watch;

/// Connections of the requests' pool that inspectors have at the same time: whatever strangers send here, partners have the rest.
const CONNECTIONS: usize = 6;

/// Photos whose bytes are on their way, ten megabytes each.
const PHOTOS_UNDER_WAY: usize = 16;

/// Photos that are drawn at the same time: each takes up to some two hundred megabytes.
const PHOTOS_AT_ONCE: usize = 2;

/// The state that requests share; cheap to clone.
#[derive(Clone)]
pub struct Context(Arc<Shared>);

/// The connections of this room: its share of the pool that serves partners' requests, too. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connections {
    pool: Pool,
    share: Arc<Semaphore>,
}

impl Connections {
    /// One of them, until a deadline.
    pub async fn take(&self, deadline: Deadline) -> Result<Connection, DbError> {
        Connection::take_of_share(&self.pool, &self.share, deadline).await
    }
}

struct Shared {
    service: partner_api::context::Context,
    connections: Connections,
    cursors: CursorSealer,
    bodies: Arc<Semaphore>,
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
        let connections = Connections {
            pool,
            share: Arc::new(Semaphore::new(CONNECTIONS)),
        };
        Context(Arc::new(Shared {
            cursors: CursorSealer::new(&context.cursor_key),
            bodies: Arc::new(Semaphore::new(PHOTOS_UNDER_WAY)),
            photos: Arc::new(Semaphore::new(PHOTOS_AT_ONCE)),
            watch: Watch::new(connections.clone()),
            body_timeout,
            policy: Policy::default(),
            service: context,
            connections,
        }))
    }

    /// A connection for the caller's request: until its deadline.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn db(&self, caller: &Caller) -> Result<Connection, DbError> {
        self.0.connections.take(caller.deadline()).await
    }

    /// Connections before anybody is known to call.
    pub(crate) fn connections(&self) -> &Connections {
        &self.0.connections
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

    /// Places for photos on their way.
    pub(crate) fn bodies(&self) -> &Arc<Semaphore> {
        &self.0.bodies
    }

    /// Places for photos that are drawn.
    pub(crate) fn photos(&self) -> &Arc<Semaphore> {
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
