//! Turns: what each partner has waits in its order, and partners come one after the other.

use std::collections::{HashMap, VecDeque};

use uuid::Uuid;

/// What waits, of all partners: however much one of them has, the next one's first is next but one at the latest.
pub(super) struct Turns<T> {
    lanes: HashMap<Uuid, VecDeque<T>>,
    /// The partners that have a lane, each once, the next one first.
    order: VecDeque<Uuid>,
    waiting: usize,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Turns {
            lanes: HashMap::new(),
            order: VecDeque::new(),
            waiting: 0,
        }
    }
}

impl<T> Turns<T> {
    /// Adds what is to wait behind everything of its partner.
    pub fn push_back(&mut self, partner_id: Uuid, waiting: T) {
        self.lane(partner_id).push_back(waiting);
    }

    /// Adds what had its turn before, in front of everything of its partner.
    pub fn push_front(&mut self, partner_id: Uuid, waiting: T) {
        self.lane(partner_id).push_front(waiting);
    }

    /// The first of the partner whose turn it is.
    pub fn next(&mut self) -> Option<T> {
        let partner_id = self.order.pop_front()?;
        let lane = self.lanes.get_mut(&partner_id)?;
        let next = lane.pop_front();
        if lane.is_empty() {
            self.lanes.remove(&partner_id);
        } else {
            self.order.push_back(partner_id);
        }
        self.waiting -= 1;
        next
    }

    /// How many wait, of all partners.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Whether something of this partner waits.
    pub fn has(&self, partner_id: Uuid) -> bool {
        self.lanes.contains_key(&partner_id)
    }

    /// A partner's lane, for one more: an empty one would be no turn.
    fn lane(&mut self, partner_id: Uuid) -> &mut VecDeque<T> {
        self.waiting += 1;
        let order = &mut self.order;
        self.lanes.entry(partner_id).or_insert_with(|| {
            order.push_back(partner_id);
            VecDeque::new()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_take_turns_and_each_ones_keep_their_order() {
        let mut turns = Turns::default();
        for (partner, name) in [(1, "a2"), (1, "a3"), (2, "b1"), (3, "c1"), (2, "b2")] {
            turns.push_back(Uuid::from_u128(partner), name);
        }
        turns.push_front(Uuid::from_u128(1), "a1");
        assert!(turns.has(Uuid::from_u128(3)) && !turns.has(Uuid::from_u128(4)));
        assert_eq!(turns.len(), 6);
        let order: Vec<&str> = std::iter::from_fn(|| turns.next()).collect();
        assert_eq!(order, ["a1", "b1", "c1", "a2", "b2", "a3"]);
        assert!(turns.is_empty() && turns.lanes.is_empty());
    }
}
