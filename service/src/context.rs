//! The shared state of requests.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use deadpool_postgres::Pool;
use partner_api_signing::Environment;
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::measurements::Package;
use partner_api_store::secrets::Derived;
use partner_api_store::shared::SharedConnections;
use partner_api_store::stages::{Stage, stage};
use partner_api_store::standby::{Reader, Standbys};

use crate::admission::Caller;
use crate::observability::Instruments;
use crate::recorder::{InFlight, Outcome, RecordError, Recorder};
use crate::storage::Storage;

/// The shared state of requests; cheap to clone.
///
/// The database can only be used on behalf of a [`Caller`], so that every wait for it respects the request's deadline (REQ-12):
///
/// ```compile_fail,E0609
/// async fn wait_forever(context: &partner_api::context::Context) {
///     let _ = context.pool.get().await;
/// }
/// ```
#[derive(Clone)]
pub struct Context(Arc<Shared>);

struct Shared {
    services: BlockingServices,
    state: State,
}

/// The services that requests wait for.
pub struct BlockingServices {
    /// Connections for requests.
    pub pool: Pool,
    /// Connections for requests that only read, of the same pool.
    pub shared: SharedConnections,
    /// Standbys for reads that may lag; `None` sends them to the primary.
    pub standbys: Option<Arc<Standbys>>,
    /// Records measurements.
    pub recorder: Recorder,
}

/// The state that requests use without waiting for the database.
pub struct State {
    /// The instruments of requests.
    pub instruments: Instruments,
    /// Photos and PDFs.
    pub storage: Storage,
    /// The URL under which partners reach the service, without a trailing slash.
    pub public_url: String,
    /// The deployment's environment.
    pub environment: Environment,
    /// The key that authenticates cursors.
    pub cursor_key: Derived,
}

impl Context {
    /// Creates the shared state.
    pub fn new(services: BlockingServices, state: State) -> Self {
        Context(Arc::new(Shared { services, state }))
    }

    /// Takes a connection for the caller's request, until its deadline and within its key's connection quota.
    ///
    /// # Errors
    /// If none is available in time.
    pub async fn db(&self, caller: &Caller) -> Result<Connection, DbError> {
        let began = Instant::now();
        let taking =
            Connection::take_within_quota(&self.0.services.pool, &caller.key().connection_quota, caller.deadline());
        let connection = stage(Stage::Connection, taking).await;
        self.instruments
            .waited_for_connection(began.elapsed(), connection.is_ok());
        connection
    }

    /// Like [`db`](Self::db), for reads that may lag by up to `read_max_lag` of the configuration.
    ///
    /// # Errors
    /// If none is available in time.
    pub async fn reader(&self, caller: &Caller) -> Result<Reader, DbError> {
        let BlockingServices { shared, standbys, .. } = &self.0.services;
        let began = Instant::now();
        let taking = Reader::take_within_quota(
            shared,
            standbys.as_ref(),
            &caller.key().connection_quota,
            caller.deadline(),
        );
        let connection = stage(Stage::Connection, taking).await;
        self.instruments
            .waited_for_connection(began.elapsed(), connection.is_ok());
        connection
    }

    /// Records the package of the caller's request, and applies it if its report is open; see [`Recorder::submit`].
    ///
    /// # Errors
    /// If the outcome is unknown. Returns by the request's deadline.
    pub async fn record(&self, caller: &Caller, package: Package) -> Result<Outcome, RecordError> {
        let recording = self.0.services.recorder.submit(package, caller.deadline());
        stage(Stage::Recorder, recording).await
    }
}

impl Context {
    /// Returns the amounts of unfinished measurements.
    pub fn measurements_in_flight(&self) -> InFlight {
        self.0.services.recorder.in_flight()
    }
}

impl Deref for Context {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0.state
    }
}
