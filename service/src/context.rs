//! The state that requests share.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use deadpool_postgres::Pool;
use partner_api_signing::Environment;
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::measurements::Package;
use partner_api_store::secrets::Derived;
use partner_api_store::stages::{Stage, stage};
use partner_api_store::standby::{Reader, Standbys};

use crate::admission::Caller;
use crate::observability::Instruments;
use crate::recorder::{Outcome, RecordError, Recorder, UnderWay};
use crate::storage::Storage;

/// The state that requests share; cheap to clone.
///
/// What may wait for the database is had for a [`Caller`] alone, whose request's deadline it keeps (REQ-12):
///
/// ```compile_fail,E0609
/// async fn for_ever(context: &partner_api::context::Context) {
///     let _ = context.pool.get().await;
/// }
/// ```
#[derive(Clone)]
pub struct Context(Arc<Shared>);

struct Shared {
    waited_for: WaitedFor,
    state: State,
}

/// What requests wait for.
pub struct WaitedFor {
    /// Connections for reads.
    pub pool: Pool,
    /// Where reads go that may be a little behind; none: they go to the primary.
    pub standbys: Option<Arc<Standbys>>,
    /// Records measurements.
    pub recorder: Recorder,
}

/// What requests share beside it.
pub struct State {
    /// What is measured on the way.
    pub instruments: Instruments,
    /// Photos and PDFs.
    pub storage: Storage,
    /// The address under which partners reach the service, without a slash at its end.
    pub public_url: String,
    /// The deployment's environment.
    pub environment: Environment,
    /// The key that authenticates cursors.
    pub cursor_key: Derived,
}

impl Context {
    /// Shares a state.
    pub fn new(waited_for: WaitedFor, state: State) -> Self {
        Context(Arc::new(Shared { waited_for, state }))
    }

    /// A connection for the caller's request: until its deadline, and out of its key's share of the pool.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn db(&self, caller: &Caller) -> Result<Connection, DbError> {
        let began = Instant::now();
        let taking = Connection::take_of_share(&self.0.waited_for.pool, &caller.key().share, caller.deadline());
        let taken = stage(Stage::Connection, taking).await;
        self.instruments.waited_for_connection(began.elapsed(), taken.is_ok());
        taken
    }

    /// The same for what only reads, and may be behind by as much as the configuration allows (`read_max_lag`).
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn reader(&self, caller: &Caller) -> Result<Reader, DbError> {
        let WaitedFor { pool, standbys, .. } = &self.0.waited_for;
        let began = Instant::now();
        let taking = Reader::take_of_share(pool, standbys.as_ref(), &caller.key().share, caller.deadline());
        let taken = stage(Stage::Connection, taking).await;
        self.instruments.waited_for_connection(began.elapsed(), taken.is_ok());
        taken
    }

    /// Records the package of the caller's request, or applies it: see [`Recorder::submit`].
    ///
    /// # Errors
    /// When it is not known what became of it, at the request's deadline at the latest.
    pub async fn record(&self, caller: &Caller, package: Package) -> Result<Outcome, RecordError> {
        let recording = self.0.waited_for.recorder.submit(package, caller.deadline());
        stage(Stage::Recorder, recording).await
    }
}

impl Context {
    /// What of measurements is under way.
    pub fn measurements_under_way(&self) -> UnderWay {
        self.0.waited_for.recorder.under_way()
    }
}

impl Deref for Context {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0.state
    }
}
