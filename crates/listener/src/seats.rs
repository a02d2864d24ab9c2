//! Who may be connected: so many in all, so many of one address, and who gives way.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::client_network::ClientNetwork;
use super::counts::{Counts, Event};
use super::limits::Limits;
use super::pulse::{Clock, Order, Pulse};

/// Connections that are looked at to find one that can give way: what a flood costs per connection.
const LOOKED_AT: usize = 32;

/// Connections that have given way and are not closed yet. They still hold descriptors, so that their number is bounded.
const LEAVING: usize = 64;

/// Since when a connection was without a request when it was last looked at, and its number. The real time is the same or
/// later: a request does not take the lock, and whoever looks for the oldest files anew what it finds changed.
type Place = (u64, u64);

#[derive(Debug, Default)]
struct Seated {
    by_age: BTreeMap<Place, Arc<Pulse>>,
    by_address: HashMap<ClientNetwork, BTreeMap<Place, Arc<Pulse>>>,
    places: HashMap<u64, Place>,
    leaving: HashMap<u64, Arc<Pulse>>,
}

/// Who has a seat, and who has been without a request for how long.
#[derive(Debug)]
pub(super) struct Seats {
    clock: Clock,
    numbers: AtomicU64,
    seated: Mutex<Seated>,
}

/// A connection's seat; free again when it is dropped.
#[derive(Debug)]
pub(super) struct Seat<'a> {
    seats: &'a Seats,
    pulse: &'a Pulse,
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut seated = self.seats.seated();
        seated.leaving.remove(&self.pulse.id);
        seated.remove(self.pulse);
    }
}

impl Seats {
    pub fn new(clock: Clock) -> Self {
        Seats {
            clock,
            numbers: AtomicU64::new(0),
            seated: Mutex::default(),
        }
    }

    /// Gives the connection a seat, if need be that of one without a request; `None` when there is none.
    pub fn take(&self, peer: IpAddr, limits: &Limits, counts: &Counts) -> Option<Arc<Pulse>> {
        let peer = peer.to_canonical();
        let exempt = limits.exempt.iter().any(|block| block.contains(&peer));
        let address = (!exempt).then(|| ClientNetwork::of(peer));
        let mut seated = self.seated();
        if let Some(address) = address {
            let share = seated.by_address.get(&address).map_or(0, BTreeMap::len);
            if share >= limits.connections_per_address && !seated.make_room(self.clock, Some(address), counts) {
                counts.note(Event::AddressFull);
                return None;
            }
        }
        if seated.by_age.len() >= limits.connections && !seated.make_room(self.clock, None, counts) {
            counts.note(Event::Full);
            return None;
        }
        let number = self.numbers.fetch_add(1, Relaxed);
        let pulse = Arc::new(Pulse::new(number, address, self.clock));
        seated.insert((self.clock.now(), number), pulse.clone());
        counts.accepted();
        Some(pulse)
    }

    /// Keeps the seat that was taken for as long as the guard lives.
    pub fn sit<'a>(&'a self, pulse: &'a Pulse) -> Seat<'a> {
        Seat { seats: self, pulse }
    }

    /// Lets the oldest idle connection give way, since descriptors have run out before seats; returns whether there is one.
    pub fn free_one(&self, counts: &Counts) -> bool {
        self.seated().make_room(self.clock, None, counts)
    }

    /// How many connections there are, those included that have given way and are not closed yet.
    pub fn count(&self) -> usize {
        let seated = self.seated();
        seated.by_age.len() + seated.leaving.len()
    }

    /// Tells every connection.
    pub fn order(&self, order: Order) {
        let seated = self.seated();
        for pulse in seated.by_age.values().chain(seated.leaving.values()) {
            pulse.order(order);
        }
    }

    fn seated(&self) -> MutexGuard<'_, Seated> {
        self.seated.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seated {
    fn insert(&mut self, place: Place, pulse: Arc<Pulse>) {
        self.places.insert(pulse.id, place);
        if let Some(address) = pulse.address {
            self.by_address.entry(address).or_default().insert(place, pulse.clone());
        }
        self.by_age.insert(place, pulse);
    }

    fn remove(&mut self, pulse: &Pulse) -> Option<Arc<Pulse>> {
        let place = self.places.remove(&pulse.id)?;
        if let Some(address) = pulse.address
            && let Entry::Occupied(mut of_address) = self.by_address.entry(address)
        {
            of_address.get_mut().remove(&place);
            if of_address.get().is_empty() {
                of_address.remove();
            }
        }
        self.by_age.remove(&place)
    }

    /// Lets the connection that has been without a request the longest give way, of all or of an address. Among
    /// [`LOOKED_AT`] that were filed the earliest, that is: the search must not take longer than the flood's next
    /// connection.
    fn make_room(&mut self, clock: Clock, of: Option<ClientNetwork>, counts: &Counts) -> bool {
        if self.leaving.len() >= LEAVING {
            return false;
        }
        let mut oldest: Option<(u64, Arc<Pulse>)> = None;
        for _ in 0..LOOKED_AT {
            let group = match of {
                Some(address) => self.by_address.get(&address),
                None => Some(&self.by_age),
            };
            let Some(((filed, _), pulse)) = group.and_then(BTreeMap::first_key_value) else {
                break;
            };
            let (filed, pulse) = (*filed, pulse.clone());
            let since = pulse.quiet_since();
            if since.is_some_and(|since| oldest.as_ref().is_none_or(|(found, _)| since < *found)) {
                oldest = since.map(|since| (since, pulse.clone()));
            }
            if since.is_some_and(|since| since <= filed) {
                break;
            }
            self.remove(&pulse);
            self.insert((since.unwrap_or_else(|| clock.now()), pulse.id), pulse);
        }
        let Some((_, pulse)) = oldest else {
            return false;
        };
        self.remove(&pulse);
        pulse.order(Order::GiveWay);
        self.leaving.insert(pulse.id, pulse);
        counts.note(Event::GaveWay);
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

    fn told_to_go(pulse: &Pulse) -> bool {
        pulse.orders(std::task::Waker::noop()) == Order::GiveWay
    }

    #[test]
    fn the_connection_that_is_idle_the_longest_gives_way_and_one_with_a_request_never_does() {
        let clock = Clock::start();
        let (seats, counts, limits) = (Seats::new(clock), Counts::new(clock), limits(3, 3));
        let [busy, recent, idle] = std::array::from_fn(|_| seats.take(PEER, &limits, &counts).unwrap());
        let _request = busy.begin(false);
        std::thread::sleep(std::time::Duration::from_millis(2));
        drop(recent.begin(false));
        assert!(seats.take(PEER, &limits, &counts).is_some());
        assert!(told_to_go(&idle) && !told_to_go(&recent) && !told_to_go(&busy));
    }

    #[test]
    fn where_every_connection_has_a_request_the_new_one_is_refused() {
        let clock = Clock::start();
        let (seats, counts, limits) = (Seats::new(clock), Counts::new(clock), limits(2, 2));
        let pulses: Vec<_> = (0..2).map(|_| seats.take(PEER, &limits, &counts).unwrap()).collect();
        let _requests: Vec<_> = pulses.iter().map(|pulse| pulse.begin(true)).collect();
        assert!(seats.take(OTHER, &limits, &counts).is_none());
        assert_eq!(counts.tally(seats.count(), 0).refused, 1);
    }

    #[test]
    fn an_address_that_has_its_share_takes_from_itself() {
        let clock = Clock::start();
        let (seats, counts, limits) = (Seats::new(clock), Counts::new(clock), limits(10, 2));
        let other = seats.take(OTHER, &limits, &counts).unwrap();
        let own: Vec<_> = (0..5).map(|_| seats.take(PEER, &limits, &counts).unwrap()).collect();
        assert!(!told_to_go(&other));
        assert_eq!(own.iter().filter(|pulse| told_to_go(pulse)).count(), 3);
    }

    #[test]
    fn what_gave_way_counts_until_it_is_closed_and_a_closed_connection_leaves_nothing_behind() {
        let clock = Clock::start();
        let (seats, counts, limits) = (Seats::new(clock), Counts::new(clock), limits(1, 1));
        let pulses: Vec<_> = (0..=LEAVING)
            .map(|_| seats.take(PEER, &limits, &counts).unwrap())
            .collect();
        assert!(seats.take(PEER, &limits, &counts).is_none());
        for pulse in &pulses {
            drop(seats.sit(pulse));
        }
        assert_eq!(seats.count(), 0);
        let seated = seats.seated();
        assert!(seated.by_age.is_empty() && seated.by_address.is_empty());
        assert!(seated.places.is_empty() && seated.leaving.is_empty());
    }
}
