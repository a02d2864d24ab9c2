//! Changes between two contracts, and the check that the version matches them.

use std::fmt;

use semver::Version;

/// The effect of a change on partners who use the released contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A client that follows the released contract may fail. Requires a new major version.
    Breaking,
    /// The contract offers more and removes nothing. Requires at least a new minor version.
    Addition,
    /// Only descriptions changed. Requires no new version.
    Wording,
}

/// A change between two contracts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// JSON pointer of the place: in the working document, or in the released one if it was removed. References are followed,
    /// so the pointer names the component that changed.
    pub pointer: String,
    /// A description of the change.
    pub what: String,
    /// The effect on partners.
    pub severity: Severity,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.what)
    }
}

/// Checks the step from the released version to the working one.
///
/// A breaking change requires a higher major version, an addition at least a higher minor version, and a change of wording nothing.
/// The version must not decrease, and `changelog` (Markdown) must have an entry `## X.Y.Z` for the working version.
///
/// # Errors
///
/// Returns every violation, with its place and the remedy.
pub fn verdict(changes: &[Change], base: &Version, working: &Version, changelog: &str) -> Result<(), Vec<String>> {
    let major = working.major > base.major;
    let minor = major || (working.major == base.major && working.minor > base.minor);
    let mut violations = Vec::new();
    if working < base {
        violations.push(format!(
            "/info/version: {working} is older than the released {base}. Raise it."
        ));
    }
    for change in changes {
        match change.severity {
            Severity::Breaking if !major => violations.push(format!(
                "{change}. This breaks clients of {base}: revert it, or raise /info/version from {working} to {}.0.0.",
                base.major + 1
            )),
            Severity::Addition if !minor => violations.push(format!(
                "{change}. This adds to {base}: raise /info/version from {working} to at least {}.{}.0.",
                base.major,
                base.minor + 1
            )),
            _ => {}
        }
    }
    if !has_entry(changelog, working) {
        violations.push(format!(
            "CHANGELOG.md: there is no entry `## {working}`. Describe the changes for partners."
        ));
    }
    if violations.is_empty() { Ok(()) } else { Err(violations) }
}

/// Returns whether the changelog has a heading `## X.Y.Z`, with or without a date after it.
fn has_entry(changelog: &str, version: &Version) -> bool {
    let version = version.to_string();
    changelog
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .any(|heading| {
            heading
                .split_whitespace()
                .next()
                .is_some_and(|word| word.trim_matches(['[', ']']) == version)
        })
}
