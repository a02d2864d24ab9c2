//! What a partner may see.

use std::collections::BTreeMap;

use uuid::Uuid;

/// A partner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partner {
    /// The partner identifier that `GET /health` answers.
    pub id: Uuid,
    /// The name, for logs.
    pub name: String,
    /// What it may see.
    pub grants: Grants,
}

/// The organisations and branches that are open to a partner (REP-2): in this form they are parameters of every statement
/// that a partner's request reads with. No branch belongs to one of the whole organisations, and each has its own beside it:
/// nobody adds one later.
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
    /// The branches of `branches`, by their organisation.
    restricted: BTreeMap<Uuid, Vec<Uuid>>,
}

impl Grants {
    /// Of organisations with all of their branches, those to come included, and of organisations with some of them.
    pub fn new(whole: impl IntoIterator<Item = Uuid>, restricted: impl IntoIterator<Item = (Uuid, Vec<Uuid>)>) -> Self {
        let restricted: BTreeMap<_, _> = restricted.into_iter().collect();
        Grants {
            whole: whole.into_iter().collect(),
            branches: restricted.values().flatten().copied().collect(),
            restricted,
        }
    }

    /// Organisations granted with all of their branches.
    pub fn whole(&self) -> &[Uuid] {
        &self.whole
    }

    /// Branches of the organisations that are granted with a restricted set.
    pub fn branches(&self) -> &[Uuid] {
        &self.branches
    }

    /// All organisations of which something is granted.
    pub fn organizations(&self) -> Vec<Uuid> {
        self.whole.iter().chain(self.restricted.keys()).copied().collect()
    }

    /// What is granted of one organisation; `None` when it is not open to the partner.
    pub fn of_organization(&self, organization: Uuid) -> Option<Grants> {
        if self.whole.contains(&organization) {
            return Some(Grants::new([organization], []));
        }
        let branches = self.restricted.get(&organization)?;
        Some(Grants::new([], [(organization, branches.clone())]))
    }

    /// How many organisations and branches these are.
    pub fn len(&self) -> usize {
        self.whole.len() + self.branches.len()
    }

    /// Whether nothing is open.
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
    fn an_organization_narrows_the_grants_to_what_is_granted_of_it() {
        let grants = Grants::new([id(10)], [(id(20), vec![id(21), id(22)]), (id(30), vec![])]);
        assert_eq!(grants.organizations(), [id(10), id(20), id(30)]);
        assert_eq!(grants.branches(), [id(21), id(22)]);
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
