//! Event streams that report changes of open reports to the page (INS-10).
//!
//! While there are streams, one task polls the database every second for the state of the reports at their branches. The database
//! shows changes by any replica or device, so the code that makes a change does not have to announce it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use partner_api_store::DbError;
use partner_api_store::deadline::Deadline;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, sleep};
use uuid::Uuid;

use crate::caller::Inspector;
use crate::db::changes::{self, State};
use crate::db::{Connections, sessions};
use crate::error::ApiError;
use crate::generated::errors::ErrorCode;

/// The interval between two polls of the database.
const POLL: Duration = Duration::from_secs(1);
/// The interval at which a stream sends a comment and checks its session.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The maximum number of streams per session. A browser's tabs each have one.
const STREAMS_PER_SESSION: usize = 8;
/// Capacity of the channel of changes. A stream that falls further behind ends, and the page reconnects and reloads.
const CHANGE_CAPACITY: usize = 256;
/// Capacity of a stream's queue of events that the browser has not read.
const EVENT_CAPACITY: usize = 64;

/// The source of event streams; cheap to clone.
#[derive(Clone)]
pub(crate) struct Watch(Arc<Shared>);

struct Shared {
    connections: Connections,
    changes: broadcast::Sender<Change>,
    /// The number of polls so far.
    polls: watch::Sender<u64>,
    watched: Mutex<Watched>,
}

#[derive(Default)]
struct Watched {
    /// The number of streams of each branch.
    branches: HashMap<Uuid, usize>,
    /// The number of streams of each session, by the digest of its cookie.
    sessions: HashMap<[u8; 32], usize>,
    is_polled: bool,
}

#[derive(Clone, Copy, Debug)]
struct Change {
    report: Uuid,
    branch: Uuid,
}

impl Watch {
    pub(crate) fn new(connections: Connections) -> Self {
        Watch(Arc::new(Shared {
            connections,
            changes: broadcast::channel(CHANGE_CAPACITY).0,
            polls: watch::channel(0).0,
            watched: Mutex::default(),
        }))
    }

    /// Returns the events of an inspector's branches, until the session ends or the browser stops reading.
    ///
    /// # Errors
    /// `too_many_streams` if the session has the maximum number of streams.
    pub(crate) fn events(&self, inspector: Inspector) -> Result<Events, ApiError> {
        let place = self.count_stream(inspector.cookie().digest())?;
        let (sender, receiver) = mpsc::channel(EVENT_CAPACITY);
        tokio::spawn(self.clone().send_events(inspector, sender));
        Ok(Events {
            receiver,
            _place: place,
        })
    }

    /// Counts a stream of a session until the returned value is dropped.
    fn count_stream(&self, session: [u8; 32]) -> Result<StreamPlace, ApiError> {
        let mut watched = self.0.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let count = watched.sessions.entry(session).or_default();
        if *count >= STREAMS_PER_SESSION {
            return Err(ApiError {
                retry_after: Some(HEARTBEAT),
                ..ApiError::new(
                    ErrorCode::TooManyStreams,
                    format!(
                        "the session already has {STREAMS_PER_SESSION} event streams; close other tabs of the page, and wait \
                         for Retry-After"
                    ),
                )
            });
        }
        *count += 1;
        Ok(StreamPlace(self.0.clone(), session))
    }

    async fn send_events(self, inspector: Inspector, events: mpsc::Sender<Bytes>) {
        let branches = inspector.branch_ids();
        let mut changes = self.0.changes.subscribe();
        let mut polls = self.0.polls.subscribe();
        let _subscription = self.subscribe(branches.clone());
        // A poll in progress may not include these branches, but the one after it does.
        let since = *polls.borrow_and_update() + 2;
        let polled = async {
            while *polls.borrow_and_update() < since {
                if polls.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = polled => {}
            () = events.closed() => return,
        }
        if events.try_send(event("ready", "{}")).is_err() {
            return;
        }
        let mut beat = interval(HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beat.tick().await;
        loop {
            let event = tokio::select! {
                change = changes.recv() => match change {
                    Ok(change) if !branches.contains(&change.branch) => continue,
                    Ok(change) => event("changed", &format!("{{\"report_id\":\"{}\"}}", change.report)),
                    // The stream has fallen too far behind. It ends, and the page reconnects and reloads.
                    Err(_) => return,
                },
                _ = beat.tick() => match self.branches(&inspector).await {
                    Ok(Some(now)) if now == branches => Bytes::from_static(b": still here\n\n"),
                    // The inspector's branches have changed. The page reconnects and receives events of the new ones.
                    Ok(Some(_)) => return,
                    Ok(None) => {
                        let _ = events.try_send(event("signed_out", "{}"));
                        return;
                    }
                    // The session could not be checked, so the stream continues.
                    Err(_) => Bytes::from_static(b": still here\n\n"),
                },
                () = events.closed() => return,
            };
            if events.try_send(event).is_err() {
                return;
            }
        }
    }

    async fn branches(&self, inspector: &Inspector) -> Result<Option<Vec<Uuid>>, DbError> {
        let client = self.0.connections.take(Deadline::begin()).await?;
        sessions::branches(&client, &inspector.cookie().digest()).await
    }

    /// Includes these branches in the polls until the returned value is dropped.
    fn subscribe(&self, branches: Vec<Uuid>) -> Subscription {
        let mut watched = self.0.watched.lock().unwrap_or_else(PoisonError::into_inner);
        for branch in &branches {
            *watched.branches.entry(*branch).or_default() += 1;
        }
        if !watched.is_polled {
            watched.is_polled = true;
            tokio::spawn(poll(self.0.clone()));
        }
        Subscription(self.0.clone(), branches)
    }
}

struct Subscription(Arc<Shared>, Vec<Uuid>);

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut watched = self.0.watched.lock().unwrap_or_else(PoisonError::into_inner);
        for branch in &self.1 {
            if let Some(count) = watched.branches.get_mut(branch) {
                *count -= 1;
                if *count == 0 {
                    watched.branches.remove(branch);
                }
            }
        }
    }
}

/// A counted stream of a session.
struct StreamPlace(Arc<Shared>, [u8; 32]);

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut watched = self.0.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = watched.sessions.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                watched.sessions.remove(&self.1);
            }
        }
    }
}

/// Polls the database until there are no streams.
async fn poll(shared: Arc<Shared>) {
    let mut before: HashMap<Uuid, State> = HashMap::new();
    let mut known: Vec<Uuid> = Vec::new();
    let mut is_failing = false;
    loop {
        let branches: Vec<Uuid> = {
            let mut watched = shared.watched.lock().unwrap_or_else(PoisonError::into_inner);
            if watched.branches.is_empty() {
                watched.is_polled = false;
                return;
            }
            watched.branches.keys().copied().collect()
        };
        match state(&shared.connections, &branches).await {
            Ok(now) => {
                is_failing = false;
                for change in differences(&before, &now, &known) {
                    // There may be no receiver at the moment.
                    let _ = shared.changes.send(change);
                }
                (before, known) = (now, branches);
                shared.polls.send_modify(|polls| *polls += 1);
            }
            // Logged once for as long as the failure lasts.
            Err(_) if is_failing => {}
            Err(error) => {
                is_failing = true;
                tracing::warn!(
                    %error,
                    "failed to read the changes of reports, which inspectors see later: check that the database runs, accepts \
                     connections, and has no long-held locks"
                );
            }
        }
        sleep(POLL).await;
    }
}

async fn state(connections: &Connections, branches: &[Uuid]) -> Result<HashMap<Uuid, State>, DbError> {
    let client = connections.take(Deadline::begin()).await?;
    let state = changes::state(&client, branches).await?;
    Ok(state.into_iter().map(|state| (state.report, state)).collect())
}

/// Returns the differences between two states at branches that the previous poll included.
fn differences(before: &HashMap<Uuid, State>, now: &HashMap<Uuid, State>, known: &[Uuid]) -> Vec<Change> {
    let change = |state: &State| Change {
        report: state.report,
        branch: state.branch,
    };
    let new = now.values().filter(|state| before.get(&state.report) != Some(state));
    let gone = before.values().filter(|state| !now.contains_key(&state.report));
    let mut changes: Vec<Change> = new.chain(gone).map(change).collect();
    changes.retain(|change| known.contains(&change.branch));
    changes
}

fn event(name: &str, data: &str) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

/// A stream of server-sent events.
pub(crate) struct Events {
    receiver: mpsc::Receiver<Bytes>,
    _place: StreamPlace,
}

impl Stream for Events {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Poll::Ready(ready!(self.receiver.poll_recv(task)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(states: &[(u128, u128, &str)]) -> HashMap<Uuid, State> {
        let state = |(report, branch, state): &(u128, u128, &str)| State {
            report: Uuid::from_u128(*report),
            branch: Uuid::from_u128(*branch),
            state: (*state).to_owned(),
        };
        states.iter().map(state).map(|state| (state.report, state)).collect()
    }

    /// INS-10
    #[test]
    fn new_changed_and_removed_reports_are_reported_except_at_a_branch_that_is_polled_for_the_first_time() {
        let before = states(&[(1, 7, "a"), (2, 7, "a"), (3, 7, "a")]);
        let now = states(&[(1, 7, "a"), (2, 7, "b"), (4, 7, "a"), (5, 8, "a")]);
        let known = [Uuid::from_u128(7)];
        let mut reported: Vec<u128> = differences(&before, &now, &known)
            .iter()
            .map(|change| change.report.as_u128())
            .collect();
        reported.sort_unstable();
        assert_eq!(reported, [2, 3, 4]);
    }
}
