//! Connection slots: total and per-address limits of connections and of unread responses, and eviction of idle connections.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval};

use super::activity::{Activity, Command, Memory};
use super::client_network::ClientNetwork;
use super::clock::{Clock, micros};
use super::counts::{Counts, Event};
use super::limits::Limits;

/// How many connections are examined to find one to evict. This bounds the cost of each new connection in a flood.
const EVICTION_CANDIDATES: usize = 32;

/// The maximum number of evicted connections that are not closed yet. They still hold descriptors.
const MAX_EVICTED: usize = 64;

/// How long a response waits for its peer before it counts as unread, and how often such responses are counted.
const UNREAD_AFTER: Duration = Duration::from_secs(1);

/// The time since which a connection was idle when it was last examined, and its ID. The actual time is the same or later,
/// because requests do not take the lock. The search for the longest-idle connection updates stale keys.
type IdleKey = (u64, u64);

#[derive(Debug, Default)]
struct SlotTable {
    by_idle_time: BTreeMap<IdleKey, Arc<Activity>>,
    by_address: HashMap<ClientNetwork, BTreeMap<IdleKey, Arc<Activity>>>,
    keys: HashMap<u64, IdleKey>,
    evicted: HashMap<u64, Arc<Activity>>,
}

/// The connection slots of a listener, ordered by idle time.
#[derive(Debug)]
pub(super) struct Slots {
    clock: Clock,
    numbers: AtomicU64,
    memory: Arc<Memory>,
    table: Mutex<SlotTable>,
}

/// Responses that wait for their peers, and their bytes in memory.
#[derive(Clone, Copy, Debug, Default)]
struct Unread {
    responses: usize,
    bytes: u64,
}

impl Unread {
    const UNLIMITED: Self = Unread {
        responses: usize::MAX,
        bytes: u64::MAX,
    };

    fn plus(self, other: Self) -> Self {
        Unread {
            responses: self.responses + other.responses,
            bytes: self.bytes + other.bytes,
        }
    }

    fn exceeds(self, limit: Self) -> bool {
        self.responses > limit.responses || self.bytes > limit.bytes
    }
}

/// A guard of a connection's slot. Dropping it frees the slot.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    slots: &'a Slots,
    activity: &'a Activity,
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut table = self.slots.lock();
        table.evicted.remove(&self.activity.id);
        table.remove(self.activity);
    }
}

impl Slots {
    pub fn new(clock: Clock, limits: &Limits) -> Self {
        Slots {
            clock,
            numbers: AtomicU64::new(0),
            memory: Memory::with_limit(limits.unread_bytes),
            table: Mutex::default(),
        }
    }

    /// Acquires a slot, if necessary by evicting an idle connection. Returns `None` if no slot can be freed.
    pub fn acquire(&self, peer: IpAddr, limits: &Limits, counts: &Counts) -> Option<Arc<Activity>> {
        let peer = peer.to_canonical();
        let exempt = limits.exempt.iter().any(|block| block.contains(&peer));
        let address = (!exempt).then(|| ClientNetwork::of(peer));
        let mut table = self.lock();
        if let Some(address) = address {
            let used = table.by_address.get(&address).map_or(0, BTreeMap::len);
            if used >= limits.connections_per_address && !table.evict_idle(self.clock, Some(address), counts) {
                counts.record(Event::AddressFull);
                return None;
            }
        }
        if table.by_idle_time.len() >= limits.connections && !table.evict_idle(self.clock, None, counts) {
            counts.record(Event::Full);
            return None;
        }
        let number = self.numbers.fetch_add(1, Relaxed);
        let permits = address.map(|address| {
            let known = table.by_address.get(&address).and_then(BTreeMap::first_key_value);
            let known = known.and_then(|(_, activity)| activity.permits.clone());
            known.unwrap_or_else(|| Arc::new(Semaphore::new(limits.in_progress_per_address)))
        });
        let memory = self.memory.clone();
        let activity = Arc::new(Activity::new(number, address, permits, self.clock, memory));
        table.insert((self.clock.now(), number), activity.clone());
        counts.accepted();
        Some(activity)
    }

    /// Returns a guard that frees the acquired slot when it is dropped.
    pub fn guard<'a>(&'a self, activity: &'a Activity) -> Slot<'a> {
        Slot { slots: self, activity }
    }

    /// Evicts the longest-idle connection to free a descriptor. Returns whether there was one.
    pub fn evict_one(&self, counts: &Counts) -> bool {
        self.lock().evict_idle(self.clock, None, counts)
    }

    /// Returns the number of open connections, including evicted ones that are not closed yet.
    pub fn count(&self) -> usize {
        let table = self.lock();
        table.by_idle_time.len() + table.evicted.len()
    }

    /// Sends a command to every connection.
    pub fn send(&self, command: Command) {
        let table = self.lock();
        for activity in table.by_idle_time.values().chain(table.evicted.values()) {
            activity.send(command);
        }
    }

    /// Enforces the limits of unread responses until the future is dropped.
    pub async fn limit_unread(&self, limits: &Limits, counts: &Counts) {
        let mut tick = interval(UNREAD_AFTER);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let per_address = Unread {
            responses: limits.unread_per_address,
            bytes: limits.unread_bytes_per_address,
        };
        let total = Unread {
            responses: limits.unread,
            bytes: limits.unread_bytes,
        };
        let memory = Unread {
            bytes: limits.unread_bytes,
            ..Unread::UNLIMITED
        };
        loop {
            tokio::select! {
                _ = tick.tick() => self.close_unread(UNREAD_AFTER, per_address, total, counts),
                () = self.memory.exceeded() => self.close_unread(Duration::ZERO, Unread::UNLIMITED, memory, counts),
            }
        }
    }

    /// Closes the connections whose responses have waited the longest, so that the responses of the others that have waited for
    /// `time` are within the limits.
    fn close_unread(&self, time: Duration, per_address: Unread, total: Unread, counts: &Counts) {
        let before = self.clock.now().saturating_sub(micros(time));
        let mut waiting: Vec<(u64, Unread, Arc<Activity>)> = Vec::new();
        for activity in self.lock().by_idle_time.values() {
            if let Some((responses, since)) = activity.unread_since(before) {
                let bytes = activity.held();
                waiting.push((since, Unread { responses, bytes }, activity.clone()));
            }
        }
        waiting.sort_unstable_by_key(|(since, ..)| Reverse(*since));
        let mut of_all = Unread::default();
        let mut by_address: HashMap<ClientNetwork, Unread> = HashMap::new();
        for (_, own, activity) in waiting {
            let of_address = activity.address.and_then(|address| by_address.get(&address).copied());
            let of_address = of_address.unwrap_or_default().plus(own);
            // A single response may be larger than all responses together may be otherwise.
            let is_alone = of_all.responses == 0 && own.responses == 1;
            if of_all.plus(own).exceeds(total) && !is_alone
                || activity.address.is_some() && of_address.exceeds(per_address)
            {
                if activity.send(Command::Abort) {
                    counts.record(Event::Unread);
                }
                continue;
            }
            of_all = of_all.plus(own);
            if let Some(address) = activity.address {
                by_address.insert(address, of_address);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, SlotTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotTable {
    fn insert(&mut self, key: IdleKey, activity: Arc<Activity>) {
        self.keys.insert(activity.id, key);
        if let Some(address) = activity.address {
            self.by_address
                .entry(address)
                .or_default()
                .insert(key, activity.clone());
        }
        self.by_idle_time.insert(key, activity);
    }

    fn remove(&mut self, activity: &Activity) -> Option<Arc<Activity>> {
        let key = self.keys.remove(&activity.id)?;
        if let Some(address) = activity.address
            && let Entry::Occupied(mut same_address) = self.by_address.entry(address)
        {
            same_address.get_mut().remove(&key);
            if same_address.get().is_empty() {
                same_address.remove();
            }
        }
        self.by_idle_time.remove(&key)
    }

    /// Evicts the longest-idle connection of all, or of one address. Examines only the first [`EVICTION_CANDIDATES`] by their
    /// recorded time, so that the search is fast enough in a flood of connections.
    fn evict_idle(&mut self, clock: Clock, of: Option<ClientNetwork>, counts: &Counts) -> bool {
        if self.evicted.len() >= MAX_EVICTED {
            return false;
        }
        let mut oldest: Option<(u64, Arc<Activity>)> = None;
        for _ in 0..EVICTION_CANDIDATES {
            let group = match of {
                Some(address) => self.by_address.get(&address),
                None => Some(&self.by_idle_time),
            };
            let Some(((recorded, _), activity)) = group.and_then(BTreeMap::first_key_value) else {
                break;
            };
            let (recorded, activity) = (*recorded, activity.clone());
            let since = activity.idle_since();
            if since.is_some_and(|since| oldest.as_ref().is_none_or(|(found, _)| since < *found)) {
                oldest = since.map(|since| (since, activity.clone()));
            }
            if since.is_some_and(|since| since <= recorded) {
                break;
            }
            self.remove(&activity);
            self.insert((since.unwrap_or_else(|| clock.now()), activity.id), activity);
        }
        let Some((_, activity)) = oldest else {
            return false;
        };
        self.remove(&activity);
        activity.send(Command::Evict);
        self.evicted.insert(activity.id, activity);
        counts.record(Event::Evicted);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn limits(connections: usize, connections_per_address: usize) -> Limits {
        Limits {
            connections,
            connections_per_address,
            ..Limits::default()
        }
    }

    fn is_evicted(activity: &Activity) -> bool {
        activity.poll_command(std::task::Waker::noop()) == Command::Evict
    }

    #[test]
    fn the_longest_idle_connection_is_evicted_and_a_busy_one_never_is() {
        let clock = Clock::start();
        let limits = limits(3, 3);
        let (slots, counts) = (Slots::new(clock, &limits), Counts::new(clock));
        let [busy, recent, idle] = std::array::from_fn(|_| slots.acquire(PEER, &limits, &counts).unwrap());
        let _request = busy.begin(false);
        std::thread::sleep(std::time::Duration::from_millis(2));
        drop(recent.begin(false));
        assert!(slots.acquire(PEER, &limits, &counts).is_some());
        assert!(is_evicted(&idle) && !is_evicted(&recent) && !is_evicted(&busy));
    }

    #[test]
    fn a_new_connection_is_rejected_if_all_connections_are_busy() {
        let clock = Clock::start();
        let limits = limits(2, 2);
        let (slots, counts) = (Slots::new(clock, &limits), Counts::new(clock));
        let activities: Vec<_> = (0..2).map(|_| slots.acquire(PEER, &limits, &counts).unwrap()).collect();
        let _requests: Vec<_> = activities.iter().map(|activity| activity.begin(true)).collect();
        assert!(slots.acquire(OTHER, &limits, &counts).is_none());
        assert_eq!(counts.metrics(slots.count(), 0, 0).rejected, 1);
    }

    #[test]
    fn an_address_at_its_limit_evicts_only_its_own_connections() {
        let clock = Clock::start();
        let limits = limits(10, 2);
        let (slots, counts) = (Slots::new(clock, &limits), Counts::new(clock));
        let other = slots.acquire(OTHER, &limits, &counts).unwrap();
        let own: Vec<_> = (0..5).map(|_| slots.acquire(PEER, &limits, &counts).unwrap()).collect();
        assert!(!is_evicted(&other));
        assert_eq!(own.iter().filter(|activity| is_evicted(activity)).count(), 3);
    }

    #[test]
    fn evicted_connections_count_until_they_are_closed_and_leave_nothing_behind() {
        let clock = Clock::start();
        let limits = limits(1, 1);
        let (slots, counts) = (Slots::new(clock, &limits), Counts::new(clock));
        let activities: Vec<_> = (0..=MAX_EVICTED)
            .map(|_| slots.acquire(PEER, &limits, &counts).unwrap())
            .collect();
        assert!(slots.acquire(PEER, &limits, &counts).is_none());
        for activity in &activities {
            drop(slots.guard(activity));
        }
        assert_eq!(slots.count(), 0);
        let table = slots.lock();
        assert!(table.by_idle_time.is_empty() && table.by_address.is_empty());
        assert!(table.keys.is_empty() && table.evicted.is_empty());
    }
}
