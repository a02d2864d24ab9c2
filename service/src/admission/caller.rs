//! The caller of an admitted request.

use std::sync::Arc;

use partner_api_domain::grants::Grants;
use partner_api_store::deadline::Deadline;
use partner_api_store::directory::Key;

/// The caller of an admitted request, with the request's deadline. Only admission can construct one:
///
/// ```compile_fail,E0451
/// use partner_api::gateway::Caller;
/// use partner_api_store::{deadline::Deadline, directory::Key};
/// fn impersonate(key: std::sync::Arc<Key>, deadline: Deadline) -> Caller {
///     Caller { key, deadline }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Caller {
    key: Arc<Key>,
    deadline: Deadline,
}

impl Caller {
    /// Creates the caller of a request that was just admitted.
    pub(super) fn admitted(key: Arc<Key>, deadline: Deadline) -> Self {
        Caller { key, deadline }
    }

    /// Returns the key that signed the request.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Returns the grants of the key's partner.
    pub fn grants(&self) -> &Grants {
        &self.key.partner.grants
    }

    /// Returns the deadline of the request's waits for the database.
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }
}
