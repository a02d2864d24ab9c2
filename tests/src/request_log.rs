//! Reads the request log as the operators' commands do.

use std::time::Duration;

use crate::wait::until;
use crate::{Service, TestResponse};
use deadpool_postgres::Pool;
use partner_api::request_log::{self, Entry, Filter, Reason};
use partner_api_store::connection::Connection;
use partner_api_store::pool::{PoolSettings, pool};
use uuid::Uuid;

/// The log of a service's database.
pub struct Log(Pool);

impl Log {
    /// Connects to the database of a service.
    pub fn of(service: &Service) -> Self {
        let settings = PoolSettings {
            size: 1,
            ..PoolSettings::default()
        };
        Log(pool(service.database(), &settings).unwrap())
    }

    /// Returns a connection.
    pub async fn client(&self) -> Connection {
        Connection::take(&self.0, Duration::from_secs(5)).await.unwrap()
    }

    /// Returns the entry of a response, if it is written.
    pub async fn find(&self, response: &TestResponse) -> Option<Entry> {
        request_log::find(&self.client().await, id(response)).await.unwrap()
    }

    /// Returns the entry of a response, once it is written.
    pub async fn entry(&self, response: &TestResponse) -> Entry {
        self.when(async || self.find(response).await).await
    }

    /// Returns the entries that a filter selects.
    pub async fn list(&self, filter: &Filter) -> Vec<Entry> {
        request_log::list(&self.client().await, filter).await.unwrap()
    }

    /// Asserts that a request was rejected for this reason.
    pub async fn assert_reason(&self, response: &TestResponse, reason: Reason) {
        let entry = self.entry(response).await;
        assert_eq!(entry.reason.as_deref(), Some(reason.as_str()), "{}", response.target);
    }

    /// Waits until `condition` returns a value, for at most 30 seconds.
    pub async fn when<T>(&self, condition: impl AsyncFn() -> Option<T>) -> T {
        until(Duration::from_secs(30), condition).await
    }
}

/// Returns the ID of the request that this response belongs to.
pub fn id(response: &TestResponse) -> Uuid {
    response.header("x-request-id").unwrap().parse().unwrap()
}
