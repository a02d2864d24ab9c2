//! Reading the request log as the operators' commands do.

use std::time::Duration;

use crate::wait::until;
use crate::{Answer, Service};
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

    /// A connection.
    pub async fn client(&self) -> Connection {
        Connection::take(&self.0, Duration::from_secs(5)).await.unwrap()
    }

    /// The entry of an answer, if it is written.
    pub async fn find(&self, answer: &Answer) -> Option<Entry> {
        request_log::find(&self.client().await, id(answer)).await.unwrap()
    }

    /// The entry of an answer, once it is written.
    pub async fn entry(&self, answer: &Answer) -> Entry {
        self.when(async || self.find(answer).await).await
    }

    /// The entries that a filter selects.
    pub async fn list(&self, filter: &Filter) -> Vec<Entry> {
        request_log::list(&self.client().await, filter).await.unwrap()
    }

    /// Asserts that a request was rejected for this reason.
    pub async fn assert_reason(&self, answer: &Answer, reason: Reason) {
        let entry = self.entry(answer).await;
        assert_eq!(entry.reason.as_deref(), Some(reason.word()), "{}", answer.target);
    }

    /// Waits until something is there, for at most 30 seconds.
    pub async fn when<T>(&self, there: impl AsyncFn() -> Option<T>) -> T {
        until(Duration::from_secs(30), there).await
    }
}

/// The id of the request that was answered.
pub fn id(answer: &Answer) -> Uuid {
    answer.header("x-request-id").unwrap().parse().unwrap()
}
