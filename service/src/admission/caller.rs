//! Who called.

use std::sync::Arc;

use partner_api_domain::grants::Grants;
use partner_api_store::deadline::Deadline;
use partner_api_store::directory::Key;

/// The caller of an admitted request, and what of the request an endpoint may use. Only admission constructs one:
///
/// ```compile_fail,E0451
/// use partner_api::gateway::Caller;
/// use partner_api_store::{deadline::Deadline, directory::Key};
/// fn as_somebody(key: std::sync::Arc<Key>, deadline: Deadline) -> Caller {
///     Caller { key, deadline }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Caller {
    key: Arc<Key>,
    deadline: Deadline,
}

impl Caller {
    /// The caller of a request that was admitted just now.
    pub(super) fn admitted(key: Arc<Key>, deadline: Deadline) -> Self {
        Caller { key, deadline }
    }

    /// The key that signed the request.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// What the key's partner may see.
    pub fn grants(&self) -> &Grants {
        &self.key.partner.grants
    }

    /// Until when the request waits for the database.
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }
}
