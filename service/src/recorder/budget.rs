//! How much may be under way: bounded in all, and for each partner.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

use partner_api_store::measurements::Package;

/// What may be under way, in bytes.
const CAPACITY: usize = 64 * 1024 * 1024;

/// What may be under way of one partner: the others find room whatever one of them does.
const SHARE: usize = CAPACITY / 4;

/// What a package takes beside its raw bytes, amply: with it, some 2,000 small packages are a partner's share.
const OVERHEAD: usize = 8 * 1024;

/// What is under way.
#[derive(Debug, Default)]
pub(super) struct Budget(Mutex<UnderWay>);

#[derive(Debug, Default)]
struct UnderWay {
    whole: usize,
    by_partner: HashMap<Uuid, usize>,
}

/// A package's part of the budget; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    budget: Arc<Budget>,
    partner_id: Uuid,
    bytes: usize,
}

impl Budget {
    /// Takes a package's part; `None`: it is not there.
    pub fn hold(self: &Arc<Self>, package: &Package) -> Option<Held> {
        let bytes = package.raw.len() + OVERHEAD;
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_partner = taken.by_partner.get(&package.partner_id).copied().unwrap_or_default();
        if taken.whole + bytes > CAPACITY || of_partner + bytes > SHARE {
            return None;
        }
        taken.whole += bytes;
        taken.by_partner.insert(package.partner_id, of_partner + bytes);
        Some(Held {
            budget: self.clone(),
            partner_id: package.partner_id,
            bytes,
        })
    }
}

impl Budget {
    /// Bytes that are under way, with what packages take beside their own.
    pub fn taken(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).whole
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut taken = self.budget.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.whole -= self.bytes;
        if let Some(of_partner) = taken.by_partner.get_mut(&self.partner_id) {
            *of_partner -= self.bytes;
            if *of_partner == 0 {
                taken.by_partner.remove(&self.partner_id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::queue::tests::package;

    #[test]
    fn a_partner_has_its_share_and_leaves_the_others_theirs() {
        let budget = Arc::<Budget>::default();
        let partners: Vec<Uuid> = (0..5).map(Uuid::from_u128).collect();
        let mut held = Vec::new();
        for partner in &partners[..4] {
            let mut own = Vec::new();
            while let Some(part) = budget.hold(&package(*partner, "")) {
                own.push(part);
            }
            assert_eq!(own.len(), SHARE / OVERHEAD, "of {partner}");
            held.push(own);
        }
        assert!(budget.hold(&package(partners[4], "")).is_none(), "all is taken");
        held[0].pop();
        assert!(budget.hold(&package(partners[1], "")).is_none(), "beyond its share");
        assert!(budget.hold(&package(partners[4], "")).is_some());
        held.clear();
        let taken = budget.0.lock().expect("a lock");
        assert_eq!((taken.whole, taken.by_partner.len()), (0, 0));
    }
}
