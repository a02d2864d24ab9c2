//! Partners and their grants.

use std::collections::BTreeMap;

use uuid::Uuid;

/// A partner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partner {
    /// The partner ID that `GET /health` returns.
    pub id: Uuid,
    /// The name, for logs.
    pub name: String,
    /// The organizations and branches that the partner may see.
    pub grants: Grants,
}

/// The organizations and branches that a partner may see (REP-2). Every statement that reads for the partner takes them as
/// parameters in this form.
///
/// The listed branches belong to organizations that are granted in part, and each is listed with its organization. Grants cannot
/// be extended later:
///
/// ```compile_fail,E0616
/// fn widened(mut grants: partner_api_domain::grants::Grants, organization: uuid::Uuid) -> partner_api_domain::grants::Grants {
///     grants.whole.push(organization);
///     grants
/// }
/// ```
///
/// ```compile_fail,E0451
/// use partner_api_domain::grants::Grants;
/// let of_no_organization = Grants { branches: vec![uuid::Uuid::nil()], ..Grants::default() };
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    whole: Vec<Uuid>,
    branches: Vec<Uuid>,
    /// The entries of `branches`, by organization.
    restricted: BTreeMap<Uuid, Vec<Uuid>>,
}

impl Grants {
    /// Creates grants from the organizations that are granted in full, including future branches, and the organizations of which
    /// some branches are granted.
    pub fn new(whole: impl IntoIterator<Item = Uuid>, restricted: impl IntoIterator<Item = (Uuid, Vec<Uuid>)>) -> Self {
        let restricted: BTreeMap<_, _> = restricted.into_iter().collect();
        Grants {
            whole: whole.into_iter().collect(),
            branches: restricted.values().flatten().copied().collect(),
            restricted,
        }
    }

    /// Returns the organizations that are granted in full, with all of their branches.
    pub fn whole(&self) -> &[Uuid] {
        &self.whole
    }

    /// Returns the branches that are granted individually.
    pub fn branches(&self) -> &[Uuid] {
        &self.branches
    }

    /// Returns the organization of each of the branches that are granted individually, in the same order.
    pub fn organizations_of_branches(&self) -> Vec<Uuid> {
        let each = self.restricted.iter();
        each.flat_map(|(organization, branches)| std::iter::repeat_n(*organization, branches.len()))
            .collect()
    }

    /// Returns all organizations with a grant.
    pub fn organizations(&self) -> Vec<Uuid> {
        self.whole.iter().chain(self.restricted.keys()).copied().collect()
    }

    /// Returns the grants for one organization, or `None` if it has no grant.
    pub fn of_organization(&self, organization: Uuid) -> Option<Grants> {
        if self.whole.contains(&organization) {
            return Some(Grants::new([organization], []));
        }
        let branches = self.restricted.get(&organization)?;
        Some(Grants::new([], [(organization, branches.clone())]))
    }

    /// Returns the number of organizations granted in full and of branches granted individually.
    pub fn len(&self) -> usize {
        self.whole.len() + self.branches.len()
    }

    /// Returns whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    #[test]
    fn grants_can_be_restricted_to_an_organization() {
        let grants = Grants::new([id(10)], [(id(20), vec![id(21), id(22)]), (id(30), vec![])]);
        assert_eq!(grants.organizations(), [id(10), id(20), id(30)]);
        assert_eq!(grants.branches(), [id(21), id(22)]);
        assert_eq!(grants.organizations_of_branches(), [id(20), id(20)]);
        assert_eq!((grants.whole(), grants.len()), (&[id(10)][..], 3));
        assert!(!grants.is_empty());
        assert_eq!(grants.of_organization(id(10)), Some(Grants::new([id(10)], [])));
        let restricted = grants.of_organization(id(20)).unwrap();
        assert_eq!(
            (restricted.whole(), restricted.branches()),
            (&[][..], &[id(21), id(22)][..])
        );
        assert!(grants.of_organization(id(30)).unwrap().is_empty());
        assert_eq!(grants.of_organization(id(40)), None);
    }
}
