//! The state that the inspectors' requests share.

use std::sync::Arc;

use deadpool_postgres::Pool;
use partner_api_domain::cursor::CursorCodec;
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use tokio::sync::Semaphore;

use crate::caller::Caller;
use crate::cookie_lookups::CookieLookups;
use crate::db::Connections;
use crate::watch::Watch;

/// The maximum number of photos that are decoded at a time. Each one needs up to about 200 MB.
const MAX_DECODING: usize = 2;

/// The state that requests share; cheap to clone.
#[derive(Clone)]
pub struct Context(Arc<Shared>);

struct Shared {
    service: partner_api::context::Context,
    connections: Connections,
    cursors: CursorCodec,
    decoding: Arc<Semaphore>,
    watch: Watch,
    cookie_lookups: CookieLookups,
}

impl Context {
    /// Creates the context from the service's state and its connection pool.
    pub fn new(service: partner_api::context::Context, pool: Pool) -> Self {
        let connections = Connections::of(pool);
        Context(Arc::new(Shared {
            cursors: CursorCodec::new(service.cursor_key.signing(), service.cursor_key.other()),
            decoding: Arc::new(Semaphore::new(MAX_DECODING)),
            watch: Watch::new(connections.clone()),
            cookie_lookups: CookieLookups::default(),
            service,
            connections,
        }))
    }

    /// Takes a connection for the caller's request, which ends every wait at its deadline.
    ///
    /// # Errors
    /// No connection was free before the deadline.
    pub async fn db(&self, caller: &Caller) -> Result<Connection, DbError> {
        self.0.connections.take(caller.deadline()).await
    }

    /// The connections, for use before the caller is known.
    pub(crate) fn connections(&self) -> &Connections {
        &self.0.connections
    }

    /// The service's state, such as its storage.
    pub fn service(&self) -> &partner_api::context::Context {
        &self.0.service
    }

    /// Encrypts and decrypts cursors.
    pub fn cursors(&self) -> &CursorCodec {
        &self.0.cursors
    }

    /// The permits for decoding photos.
    pub(crate) fn decoding(&self) -> &Arc<Semaphore> {
        &self.0.decoding
    }

    /// Limits the lookups of unknown session cookies.
    pub(crate) fn cookie_lookups(&self) -> &CookieLookups {
        &self.0.cookie_lookups
    }

    /// The source of event streams.
    pub(crate) fn watch(&self) -> &Watch {
        &self.0.watch
    }
}
