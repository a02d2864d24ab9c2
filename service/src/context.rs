//! The state that requests share.

use std::ops::Deref;
use std::sync::Arc;

use deadpool_postgres::Pool;
use partner_api_signing::Environment;

use crate::db::DbError;
use crate::db::connection::Connection;
use crate::front_door::{Caller, FrontDoor};
use crate::recorder::Recorder;
use crate::secrets::Derived;
use crate::storage::Storage;

/// The state that requests share; cheap to clone.
#[derive(Clone)]
pub struct Context(Arc<State>);

/// What a [`Context`] holds.
pub struct State {
    /// Connections for reads.
    pub pool: Pool,
    /// Records measurements.
    pub recorder: Recorder,
    /// Photos and PDFs.
    pub storage: Storage,
    /// The address under which partners reach the service, without a slash at its end.
    pub public_url: String,
    /// The deployment's environment.
    pub environment: Environment,
    /// The key that authenticates cursors.
    pub cursor_key: Derived,
    /// The published document as JSON.
    pub spec_json: String,
    /// The one place every request passes.
    pub front_door: FrontDoor,
}

impl Context {
    /// Shares a state.
    pub fn new(state: State) -> Self {
        Context(Arc::new(state))
    }

    /// A connection for the caller's request: for a bounded time, and out of its key's share of the pool.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn db(&self, caller: &Caller) -> Result<Connection, DbError> {
        Connection::take_of_share(&self.pool, &caller.key().share).await
    }
}

impl Deref for Context {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}
