//! A queue that serves partners in turn and keeps the order of each partner's items.

use std::collections::{HashMap, VecDeque};

use uuid::Uuid;

/// Items of all partners. A partner with a long backlog delays each item of another partner by at most one item per turn.
pub(super) struct FairQueue<T> {
    by_partner: HashMap<Uuid, VecDeque<T>>,
    /// The partners with items, each once, in the order in which they are served.
    next_partners: VecDeque<Uuid>,
    len: usize,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        FairQueue {
            by_partner: HashMap::new(),
            next_partners: VecDeque::new(),
            len: 0,
        }
    }
}

impl<T> FairQueue<T> {
    /// Adds an item behind the partner's other items.
    pub fn push_back(&mut self, partner_id: Uuid, item: T) {
        self.grow(partner_id).push_back(item);
    }

    /// Adds an item before the partner's other items.
    pub fn push_front(&mut self, partner_id: Uuid, item: T) {
        self.grow(partner_id).push_front(item);
    }

    /// Removes and returns the first item of the next partner.
    pub fn pop(&mut self) -> Option<T> {
        let partner_id = self.next_partners.pop_front()?;
        let items = self.by_partner.get_mut(&partner_id)?;
        let next = items.pop_front();
        if items.is_empty() {
            self.by_partner.remove(&partner_id);
        } else {
            self.next_partners.push_back(partner_id);
        }
        self.len -= 1;
        next
    }

    /// Returns the number of items of all partners.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether the partner has items.
    pub fn has_partner(&self, partner_id: Uuid) -> bool {
        self.by_partner.contains_key(&partner_id)
    }

    /// Counts one more item and returns the partner's items. The caller must add the item: a partner without items must not be
    /// in `next_partners`.
    fn grow(&mut self, partner_id: Uuid) -> &mut VecDeque<T> {
        self.len += 1;
        let next_partners = &mut self.next_partners;
        self.by_partner.entry(partner_id).or_insert_with(|| {
            next_partners.push_back(partner_id);
            VecDeque::new()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_are_served_in_turn_and_each_partners_items_keep_their_order() {
        let mut queue = FairQueue::default();
        for (partner, name) in [(1, "a2"), (1, "a3"), (2, "b1"), (3, "c1"), (2, "b2")] {
            queue.push_back(Uuid::from_u128(partner), name);
        }
        queue.push_front(Uuid::from_u128(1), "a1");
        assert!(queue.has_partner(Uuid::from_u128(3)) && !queue.has_partner(Uuid::from_u128(4)));
        assert!(queue.len() == 6 && !queue.is_empty());
        let order: Vec<&str> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, ["a1", "b1", "c1", "a2", "b2", "a3"]);
        assert!(queue.is_empty() && queue.by_partner.is_empty());
    }
}
