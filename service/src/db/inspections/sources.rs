//! Where the reports that a partner sees come from.

use uuid::Uuid;

use crate::directory::Scope;

/// The organisations and branches whose reports are open to a partner. No branch belongs to one of the organisations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// Organisations granted with all of their branches.
    pub whole: Vec<Uuid>,
    /// Branches of the organisations that are granted with a restricted set.
    pub branches: Vec<Uuid>,
}

impl Sources {
    /// All that the partner was granted.
    pub fn of(scope: &Scope) -> Self {
        Self {
            whole: scope.whole_organizations(),
            branches: scope.restricted_branches(),
        }
    }

    /// What the partner was granted of one organisation; nothing when that is not open to it.
    pub fn of_organization(scope: &Scope, organization: Uuid) -> Self {
        match scope.grant(organization).map(|grant| grant.branches.as_ref()) {
            None => Self::default(),
            Some(None) => Self {
                whole: vec![organization],
                branches: Vec::new(),
            },
            Some(Some(branches)) => Self {
                whole: Vec::new(),
                branches: branches.clone(),
            },
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.whole.len() + self.branches.len()
    }

    /// Whether nothing is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
