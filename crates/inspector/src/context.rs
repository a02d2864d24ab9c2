//! The state that inspectors' requests share.

use std::sync::Arc;

use deadpool_postgres::Pool;
use partner_api_domain::cursor::CursorSealer;
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::deadline::Deadline;
use tokio::sync::Semaphore;

use crate::caller::Caller;
use crate::watch::Watch;

/// Connections of the requests' pool that inspectors have at the same time: whatever strangers send here, partners have the rest.
const CONNECTIONS: usize = 6;

/// Photos that are drawn at the same time: each takes up to some two hundred megabytes.
const PHOTOS_AT_ONCE: usize = 2;

/// The state that requests share; cheap to clone.
#[derive(Clone)]
pub struct Context(Arc<Shared>);

/// The inspectors' share of the connections that serve partners' requests as well. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connections {
    pool: Pool,
    share: Arc<Semaphore>,
}

impl Connections {
    /// Takes a connection, waiting until the deadline.
    pub async fn take(&self, deadline: Deadline) -> Result<Connection, DbError> {
        Connection::take_of_share(&self.pool, &self.share, deadline).await
    }
}

struct Shared {
    service: partner_api::context::Context,
    connections: Connections,
    cursors: CursorSealer,
    photos: Arc<Semaphore>,
    watch: Watch,
}

impl Context {
    /// Shares the service's state and its connections for requests.
    pub fn new(service: partner_api::context::Context, pool: Pool) -> Self {
        let connections = Connections {
            pool,
            share: Arc::new(Semaphore::new(CONNECTIONS)),
        };
        Context(Arc::new(Shared {
            cursors: CursorSealer::new(service.cursor_key.signing(), service.cursor_key.other()),
            photos: Arc::new(Semaphore::new(PHOTOS_AT_ONCE)),
            watch: Watch::new(connections.clone()),
            service,
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

    /// The connections, for what happens before a caller is known.
    pub(crate) fn connections(&self) -> &Connections {
        &self.0.connections
    }

    /// The service's own state, such as its storage.
    pub fn service(&self) -> &partner_api::context::Context {
        &self.0.service
    }

    /// Seals cursors.
    pub fn cursors(&self) -> &CursorSealer {
        &self.0.cursors
    }

    /// A permit for each photo that is drawn.
    pub(crate) fn photos(&self) -> &Arc<Semaphore> {
        &self.0.photos
    }

    /// Tells what changes.
    pub(crate) fn watch(&self) -> &Watch {
        &self.0.watch
    }
}
