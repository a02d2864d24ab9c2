//! One change between two contracts.

use std::fmt;

/// What a change means for the partners who build on the released contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A client that follows the released contract may fail: only with a new major version.
    Breaking,
    /// More is offered, nothing is taken away: at least a new minor version.
    Addition,
    /// Only the words changed: free.
    Wording,
}

/// One change between two contracts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// JSON pointer of the place, in the document that has it: the working one unless it was removed. References are
    /// followed, so that it names the component which changed.
    pub pointer: String,
    /// What happened there, and why it matters.
    pub what: String,
    /// What it means for partners.
    pub severity: Severity,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.what)
    }
}
