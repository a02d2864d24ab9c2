//! The transaction of a request that writes: its nonce, its record and its values together, or none of them.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use deadpool_postgres::{Object, Pool};

use super::admission::AdmissionError;
use crate::db::DbError;
use crate::error::ApiError;

/// A connection inside `BEGIN`. Dropped without an end, the connection is closed, and the database undoes everything:
/// it must never go back to the pool with a transaction open.
#[derive(Debug)]
pub(super) struct OpenTransaction(Option<Object>);

impl OpenTransaction {
    pub async fn begin(pool: &Pool) -> Result<Self, DbError> {
        let client = pool.get().await?;
        let transaction = OpenTransaction(Some(client));
        transaction.client().batch_execute("BEGIN").await?;
        Ok(transaction)
    }

    pub fn client(&self) -> &Object {
        // Empty only while it is being consumed.
        #[allow(clippy::expect_used)]
        self.0.as_ref().expect("an open transaction has its connection")
    }

    /// Marks the point to which an endpoint's work is undone.
    pub async fn savepoint(&self) -> Result<(), DbError> {
        Ok(self.client().batch_execute("SAVEPOINT work").await?)
    }

    /// Undoes everything.
    pub async fn roll_back(mut self) {
        if self.client().batch_execute("ROLLBACK").await.is_ok() {
            self.hand_back();
        }
    }

    /// Undoes the endpoint's work and keeps the nonce.
    pub async fn keep_nonce_only(mut self) -> Result<(), AdmissionError> {
        self.client()
            .batch_execute("ROLLBACK TO SAVEPOINT work; COMMIT")
            .await
            .map_err(DbError::from)?;
        self.hand_back();
        Ok(())
    }

    /// Back to the pool.
    fn hand_back(&mut self) {
        drop(self.0.take());
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}

/// Where a request's transaction is while nobody works in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot(Arc<Mutex<Option<OpenTransaction>>>);

impl Slot {
    pub fn put(&self, transaction: OpenTransaction) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(transaction);
    }

    fn take_open(&self) -> Option<OpenTransaction> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The transaction, for an endpoint.
    pub fn take(&self) -> Option<WriteTransaction> {
        Some(WriteTransaction {
            open: Some(self.take_open()?),
            slot: self.clone(),
        })
    }
}

/// A transaction for an endpoint to write in; it already holds the request's nonce.
///
/// Dropped without [`WriteTransaction::commit`], what was written is undone by the front door, and the nonce stays used.
#[derive(Debug)]
pub struct WriteTransaction {
    open: Option<OpenTransaction>,
    slot: Slot,
}

impl WriteTransaction {
    /// Makes everything written durable, the nonce with it.
    ///
    /// # Errors
    /// 503: a commit that failed, or whose answer was lost, says nothing about the outcome. The caller retries with the
    /// same `external_id`.
    pub async fn commit(mut self) -> Result<(), ApiError> {
        let Some(mut open) = self.open.take() else {
            return Err(ApiError::internal());
        };
        match open.client().batch_execute("COMMIT").await {
            Ok(()) => {
                open.hand_back();
                Ok(())
            }
            Err(error) => {
                let error = DbError::from(error);
                tracing::warn!(%error, "a commit's outcome is unknown; the caller is told to retry");
                Err(ApiError::unavailable())
            }
        }
    }

    pub(super) async fn keep_nonce_only(mut self) -> Result<(), AdmissionError> {
        match self.open.take() {
            Some(open) => open.keep_nonce_only().await,
            None => Ok(()),
        }
    }
}

impl Deref for WriteTransaction {
    type Target = Object;

    fn deref(&self) -> &Object {
        // Empty only while it is being consumed.
        #[allow(clippy::expect_used)]
        self.open
            .as_ref()
            .expect("a write transaction has its connection")
            .client()
    }
}

impl Drop for WriteTransaction {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            self.slot.put(open);
        }
    }
}
