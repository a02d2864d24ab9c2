//! Parts of new rows, brought in by two sessions at once.
//!
//! Most of an import's time is spent on indexes and references of new rows, by one process of the database, while another of its
//! processors does nothing. The lines stand in a temporary table, which its own session alone can read: it gives out a part's
//! rows, which are read ahead, and whichever session is free copies them into the table. Parts depend on nothing of each other,
//! so each is committed when it is ready, and what is told of them is which of them are in.

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use futures::future::try_join;
use futures::{SinkExt, TryStreamExt};
use tokio::sync::{Semaphore, mpsc};
use tokio_postgres::Client;

use super::load::{Part, Work, begin};
use super::{SETTINGS, notice_death};
use crate::failure::Failure;
use crate::session::Session;

/// The lock that each of these sessions holds, with others of its import, so that the next import waits until the last of them
/// has ended.
const LOCK: i64 = 0x6c61_6e65;

/// Bytes that are read ahead of each session, about a part's.
const AHEAD: usize = 32 << 20;
/// Bytes that are handed over at once.
const BLOCK: usize = 64 << 10;

partner_api::statement! {
    SHARE_LOCK = "SELECT pg_advisory_lock_shared($1)";
    TAKE_LOCK = "SELECT pg_advisory_lock($1)";
    GIVE_LOCK = "SELECT pg_advisory_unlock($1)";
}

/// Waits until no session of an import that was killed is left, for as long as a session waits for any lock.
pub(crate) async fn wait_for_others(client: &Client) -> Result<(), tokio_postgres::Error> {
    client.execute(TAKE_LOCK.sql(), &[&LOCK]).await?;
    client.execute(GIVE_LOCK.sql(), &[&LOCK]).await?;
    Ok(())
}

/// Brings in all parts, whose lines are all new; what one session fails at is answered when the other has ended its part.
pub(crate) async fn load(session: &Session, lines: &Client, work: &Work<'_>) -> Result<(), Failure> {
    let (one, other) = (open(session).await?, open(session).await?);
    let (one, other) = futures::join!(lane(lines, one, work), lane(lines, other, work));
    one.and(other)
}

async fn open(session: &Session) -> Result<Client, Failure> {
    let client = session.dedicated("partner-api import").await?;
    client.batch_execute(SETTINGS).await?;
    notice_death(&client).await;
    client.execute(SHARE_LOCK.sql(), &[&LOCK]).await?;
    Ok(client)
}

async fn lane(lines: &Client, mut client: Client, work: &Work<'_>) -> Result<(), Failure> {
    while let Some(part) = work.parts.take() {
        if let Err(failure) = bring(lines, &mut client, work, part).await {
            work.parts.stop();
            return Err(failure);
        }
    }
    Ok(())
}

/// Brings in a part.
async fn bring(lines: &Client, client: &mut Client, work: &Work<'_>, part: Part) -> Result<(), Failure> {
    let kind = work.source.kind;
    let room = Semaphore::new(AHEAD);
    // Its last is `None`: without it somebody has failed, and nothing of the part may be kept.
    let (give, mut given) = mpsc::unbounded_channel::<Option<Bytes>>();
    let read = async {
        // Gone with this, however it ends.
        let give = give;
        let mut rows = pin!(lines.copy_out(&kind.copy_new(part)).await?);
        let mut block = BytesMut::with_capacity(2 * BLOCK);
        loop {
            let row = rows.try_next().await?;
            block.extend_from_slice(row.as_deref().unwrap_or_default());
            if block.len() >= BLOCK || row.is_none() {
                // A block may be larger than all the room: a row is at most some MB.
                let size = u32::try_from(block.len().min(AHEAD)).unwrap_or(u32::MAX);
                if let Ok(room) = room.acquire_many(size).await {
                    room.forget();
                }
                // Who takes them no longer has failed, and says why.
                if give.send(Some(block.split().freeze())).is_err() {
                    return Ok::<_, Failure>(());
                }
                if row.is_none() {
                    let _ = give.send(None);
                    return Ok(());
                }
            }
        }
    };
    let write = async {
        // Nothing is held while the first rows are waited for.
        let Some(Some(mut block)) = given.recv().await else {
            return Ok(());
        };
        let transaction = begin(client).await?;
        let mut table = pin!(transaction.copy_in::<_, Bytes>(&kind.copy_into()).await?);
        loop {
            let size = block.len().min(AHEAD);
            table.feed(block).await?;
            room.add_permits(size);
            match given.recv().await {
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
