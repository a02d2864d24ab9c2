//! Imports parts of new rows with two sessions in parallel.
//!
//! Indexes and references of new rows take most of an import's time, on one CPU of the database. Only the session that created
//! the temporary table of the lines can read it. It reads parts ahead, and whichever session is idle copies them into the
//! target table. Parts are independent and committed when they are complete; the result says which ones were imported.

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use futures::future::try_join;
use futures::{SinkExt, TryStreamExt};
use tokio::sync::{Semaphore, mpsc};
use tokio_postgres::Client;

use super::load::{Part, Work, begin};
use super::{SETTINGS, check_connection};
use crate::failure::Failure;
use crate::session::Session;

/// The shared lock that every session of an import holds, so that the next import waits until all of them have ended.
const LOCK: i64 = 0x6c61_6e65;

/// The read-ahead of each session in bytes, about one part.
const READ_AHEAD: usize = 32 << 20;
/// The size of a block of rows in bytes.
const BLOCK: usize = 64 << 10;

partner_api_store::statement! {
    SHARE_LOCK = "SELECT pg_advisory_lock_shared($1)";
    TAKE_LOCK = "SELECT pg_advisory_lock($1)";
    RELEASE_LOCK = "SELECT pg_advisory_unlock($1)";
}

/// Waits for the sessions of a killed import to end, up to the lock timeout.
pub(crate) async fn wait_for_others(client: &Client) -> Result<(), tokio_postgres::Error> {
    client.execute(TAKE_LOCK.sql(), &[&LOCK]).await?;
    client.execute(RELEASE_LOCK.sql(), &[&LOCK]).await?;
    Ok(())
}

/// Imports all parts, whose lines are all new. If one session fails, the error is returned after the other finishes its part.
pub(crate) async fn load(session: &Session, lines: &Client, work: &Work<'_>) -> Result<(), Failure> {
    let (one, other) = (open(session).await?, open(session).await?);
    let (one, other) = futures::join!(import_parts(lines, one, work), import_parts(lines, other, work));
    one.and(other)
}

async fn open(session: &Session) -> Result<Client, Failure> {
    let client = session.dedicated("partner-api import").await?;
    client.batch_execute(SETTINGS).await?;
    check_connection(&client).await;
    client.execute(SHARE_LOCK.sql(), &[&LOCK]).await?;
    Ok(client)
}

async fn import_parts(lines: &Client, mut client: Client, work: &Work<'_>) -> Result<(), Failure> {
    while let Some(part) = work.parts.take() {
        if let Err(failure) = import_part(lines, &mut client, work, part).await {
            work.parts.stop();
            return Err(failure);
        }
    }
    Ok(())
}

/// Imports a part.
async fn import_part(lines: &Client, client: &mut Client, work: &Work<'_>, part: Part) -> Result<(), Failure> {
    let kind = work.source.kind;
    let capacity = Semaphore::new(READ_AHEAD);
    // The last block is `None`. If it is missing, the reader failed and the part must be rolled back.
    let (sender, mut receiver) = mpsc::unbounded_channel::<Option<Bytes>>();
    let read = async {
        // The transaction is rolled back when dropped.
        let sender = sender;
        let mut rows = pin!(lines.copy_out(&kind.copy_new(part)).await?);
        let mut block = BytesMut::with_capacity(2 * BLOCK);
        loop {
            let row = rows.try_next().await?;
            block.extend_from_slice(row.as_deref().unwrap_or_default());
            if block.len() >= BLOCK || row.is_none() {
                // A block may exceed the capacity, since a row can have some MB.
                let size = u32::try_from(block.len().min(READ_AHEAD)).unwrap_or(u32::MAX);
                if let Ok(permit) = capacity.acquire_many(size).await {
                    permit.forget();
                }
                // If the receiver was dropped, its session failed and reports the error.
                if sender.send(Some(block.split().freeze())).is_err() {
                    return Ok::<_, Failure>(());
                }
                if row.is_none() {
                    let _ = sender.send(None);
                    return Ok(());
                }
            }
        }
    };
    let write = async {
        // Do not hold locks while waiting for the first rows.
        let Some(Some(mut block)) = receiver.recv().await else {
            return Ok(());
        };
        let transaction = begin(client).await?;
        let mut table = pin!(transaction.copy_in::<_, Bytes>(&kind.copy_into()).await?);
        loop {
            let size = block.len().min(READ_AHEAD);
            table.feed(block).await?;
            capacity.add_permits(size);
            match receiver.recv().await {
                Some(Some(next)) => block = next,
                Some(None) => break,
                None => return Ok(()),
            }
        }
        let inserted = table.as_mut().finish().await?;
        work.end(transaction, part, inserted, 0).await
    };
    try_join(read, write).await?;
    Ok(())
}
