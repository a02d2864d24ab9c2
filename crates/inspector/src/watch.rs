//! What changes among the reports that somebody looks at, told to whoever looks (INS-10).
//!
//! One task asks the database, once a second and only while somebody watches, for the state of the reports at all watched branches:
//! whichever replica or device made the change, it shows there, and nothing that makes one has to tell it.

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
use crate::context::Connections;
use crate::db::changes::{self, State};
use crate::db::sessions;

/// How often the database is asked.
const POLL: Duration = Duration::from_secs(1);
/// How often a stream says that it is there, and whether its session is still good is asked.
const BEAT: Duration = Duration::from_secs(15);
/// Changes that may wait to be told; who is further behind is let go, and reads anew.
const BEHIND: usize = 256;
/// Events that a browser may leave untaken.
const UNTAKEN: usize = 64;

/// Tells what changes; cheap to clone.
#[derive(Clone)]
pub(crate) struct Watch(Arc<Shared>);

struct Shared {
    connections: Connections,
    changes: broadcast::Sender<Change>,
    /// How often the state was read.
    rounds: watch::Sender<u64>,
    watched: Mutex<Watched>,
}

#[derive(Default)]
struct Watched {
    /// How many streams look at each branch.
    branches: HashMap<Uuid, usize>,
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
            changes: broadcast::channel(BEHIND).0,
            rounds: watch::channel(0).0,
            watched: Mutex::default(),
        }))
    }

    /// The events of an inspector's branches, until the session ends or nobody takes them.
    pub(crate) fn events(&self, inspector: Inspector) -> Events {
        let (sender, receiver) = mpsc::channel(UNTAKEN);
        tokio::spawn(self.clone().tell(inspector, sender));
        Events(receiver)
    }

    async fn tell(self, inspector: Inspector, events: mpsc::Sender<Bytes>) {
        let branches = inspector.branch_ids();
        let mut changes = self.0.changes.subscribe();
        let mut rounds = self.0.rounds.subscribe();
        let _looking = self.look_at(branches.clone());
        // A round that had begun before may not have looked at these branches: the second one has.
        let since = *rounds.borrow_and_update() + 2;
        let known = async {
            while *rounds.borrow_and_update() < since {
                if rounds.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = known => {}
            () = events.closed() => return,
        }
        if events.try_send(event("ready", "{}")).is_err() {
            return;
        }
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beat.tick().await;
        loop {
            let told = tokio::select! {
                change = changes.recv() => match change {
                    Ok(change) if !branches.contains(&change.branch) => continue,
                    Ok(change) => event("changed", &format!("{{\"report_id\":\"{}\"}}", change.report)),
                    // Too far behind: the stream ends, and whoever comes again reads anew.
                    Err(_) => return,
                },
                _ = beat.tick() => match self.branches(&inspector).await {
                    Ok(Some(now)) if now == branches => Bytes::from_static(b": still here\n\n"),
                    // Of other branches now: whoever comes again is told of those.
                    Ok(Some(_)) => return,
                    Ok(None) => {
                        let _ = events.try_send(event("signed_out", "{}"));
                        return;
                    }
                    // Nobody knows: no reason to send anybody away.
                    Err(_) => Bytes::from_static(b": still here\n\n"),
                },
                () = events.closed() => return,
            };
            if events.try_send(told).is_err() {
                return;
            }
        }
    }

    async fn branches(&self, inspector: &Inspector) -> Result<Option<Vec<Uuid>>, DbError> {
        let client = self.0.connections.take(Deadline::begin()).await?;
        sessions::branches(&client, &inspector.cookie().digest()).await
    }

    /// Has these branches looked at until what it returns is dropped.
    fn look_at(&self, branches: Vec<Uuid>) -> Looking {
        let mut watched = self.0.watched.lock().unwrap_or_else(PoisonError::into_inner);
        for branch in &branches {
            *watched.branches.entry(*branch).or_default() += 1;
        }
        if !watched.is_polled {
            watched.is_polled = true;
            tokio::spawn(poll(self.0.clone()));
        }
        Looking(self.0.clone(), branches)
    }
}

struct Looking(Arc<Shared>, Vec<Uuid>);

impl Drop for Looking {
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

/// Asks until nobody looks any more.
async fn poll(shared: Arc<Shared>) {
    let mut before: HashMap<Uuid, State> = HashMap::new();
    let mut known: Vec<Uuid> = Vec::new();
    let mut is_silent = false;
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
                is_silent = false;
                for change in differences(&before, &now, &known) {
                    // That nobody listens just now is no failure.
                    let _ = shared.changes.send(change);
                }
                (before, known) = (now, branches);
                shared.rounds.send_modify(|rounds| *rounds += 1);
            }
            // Asked again each second: said once for as long as it lasts.
            Err(_) if is_silent => {}
            Err(error) => {
                is_silent = true;
                tracing::warn!(
                    %error,
                    "inspectors are told later what changes, for the database does not say: see that it runs, takes connections and \
                     holds no long locks"
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

/// What differs between two states, at branches that were looked at before.
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

/// Server-sent events on their way.
pub(crate) struct Events(mpsc::Receiver<Bytes>);

impl Stream for Events {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Poll::Ready(ready!(self.0.poll_recv(task)))
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
    fn what_is_new_changed_or_gone_is_told_and_a_branch_seen_for_the_first_time_is_not() {
        let before = states(&[(1, 7, "a"), (2, 7, "a"), (3, 7, "a")]);
        let now = states(&[(1, 7, "a"), (2, 7, "b"), (4, 7, "a"), (5, 8, "a")]);
        let known = [Uuid::from_u128(7)];
        let mut told: Vec<u128> = differences(&before, &now, &known)
            .iter()
            .map(|change| change.report.as_u128())
            .collect();
        told.sort_unstable();
        assert_eq!(told, [2, 3, 4]);
    }
}
