//! The memory budget for packages without an outcome, in total and per partner.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

use partner_api_store::measurements::Package;

/// The total budget in bytes.
const CAPACITY: usize = 64 * 1024 * 1024;

/// The budget of one partner in bytes, so that no partner can use up the capacity of the others.
const PARTNER_QUOTA: usize = CAPACITY / 4;

/// A generous estimate of a package's size beside its raw bytes. With it, the quota of a partner is some 2,000 small packages.
const OVERHEAD: usize = 8 * 1024;

/// The budget.
#[derive(Debug, Default)]
pub(super) struct Budget(Mutex<Reserved>);

/// The reserved bytes.
#[derive(Debug, Default)]
struct Reserved {
    total: usize,
    by_partner: HashMap<Uuid, usize>,
}

/// A package's part of the budget, released when it is dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    budget: Arc<Budget>,
    partner_id: Uuid,
    bytes: usize,
}

impl Budget {
    /// Reserves a package's part. Returns `None` if the budget or the partner's quota is used up.
    pub fn reserve(self: &Arc<Self>, package: &Package) -> Option<Reservation> {
        let bytes = package.raw.len() + OVERHEAD;
        let mut reserved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_partner = reserved
            .by_partner
            .get(&package.partner_id)
            .copied()
            .unwrap_or_default();
        if reserved.total + bytes > CAPACITY || of_partner + bytes > PARTNER_QUOTA {
            return None;
        }
        reserved.total += bytes;
        reserved.by_partner.insert(package.partner_id, of_partner + bytes);
        Some(Reservation {
            budget: self.clone(),
            partner_id: package.partner_id,
            bytes,
        })
    }
}

impl Budget {
    /// Returns the reserved bytes, including the overhead of packages.
    pub fn in_use(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).total
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut reserved = self.budget.0.lock().unwrap_or_else(PoisonError::into_inner);
        reserved.total -= self.bytes;
        if let Some(of_partner) = reserved.by_partner.get_mut(&self.partner_id) {
            *of_partner -= self.bytes;
            if *of_partner == 0 {
                reserved.by_partner.remove(&self.partner_id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::queue::tests::package;

    #[test]
    fn a_partner_is_limited_to_its_quota_and_cannot_use_up_the_quota_of_others() {
        let budget = Arc::<Budget>::default();
        let partners: Vec<Uuid> = (0..5).map(Uuid::from_u128).collect();
        let mut held = Vec::new();
        for partner in &partners[..4] {
            let mut own = Vec::new();
            while let Some(part) = budget.reserve(&package(*partner, "")) {
                own.push(part);
            }
            assert_eq!(own.len(), PARTNER_QUOTA / OVERHEAD, "of {partner}");
            held.push(own);
        }
        assert_eq!(budget.in_use(), CAPACITY);
        assert!(
            budget.reserve(&package(partners[4], "")).is_none(),
            "the capacity is used up"
        );
        held[0].pop();
        assert_eq!(budget.in_use(), CAPACITY - OVERHEAD);
        assert!(budget.reserve(&package(partners[1], "")).is_none(), "beyond its quota");
        assert!(budget.reserve(&package(partners[4], "")).is_some());
        held.clear();
        let reserved = budget.0.lock().expect("a lock");
        assert_eq!((reserved.total, reserved.by_partner.len()), (0, 0));
    }
}
