//! What a partner may see.

use uuid::Uuid;

/// A partner and its grants (contract, section 5: access scope).
#[derive(Clone, Debug, PartialEq)]
pub struct Scope {
    /// The partner identifier that `GET /health` answers.
    pub partner_id: Uuid,
    /// The partner's name, for logs.
    pub partner_name: String,
    /// One per organisation, ordered by its id.
    pub grants: Vec<Grant>,
}

/// Access to one organisation.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// The organisation.
    pub organization_id: Uuid,
    /// The branches; `None` is all of them, those to come included.
    pub branches: Option<Vec<Uuid>>,
}

impl Scope {
    /// The organisations that are open with all their branches.
    pub fn whole_organizations(&self) -> Vec<Uuid> {
        self.grants
            .iter()
            .filter(|grant| grant.branches.is_none())
            .map(|grant| grant.organization_id)
            .collect()
    }

    /// The branches that are open in organisations of which only some are.
    pub fn restricted_branches(&self) -> Vec<Uuid> {
        self.grants
            .iter()
            .filter_map(|grant| grant.branches.as_deref())
            .flatten()
            .copied()
            .collect()
    }

    /// The grant for an organisation, if there is one.
    pub fn grant(&self, organization_id: Uuid) -> Option<&Grant> {
        self.grants
            .iter()
            .find(|grant| grant.organization_id == organization_id)
    }
}
