//! Whether the version is right for the changes.

use semver::Version;

use crate::{Change, Severity};

/// Judges the step from the released version to the working one.
///
/// A breaking change needs a higher major version, an addition at least a higher minor one, wording nothing; the version
/// never falls; and `changelog` (Markdown) has an entry `## X.Y.Z` for the working version.
///
/// # Errors
///
/// Every objection, with the place and what to do.
pub fn verdict(changes: &[Change], base: &Version, working: &Version, changelog: &str) -> Result<(), Vec<String>> {
    let major = working.major > base.major;
    let minor = major || (working.major == base.major && working.minor > base.minor);
    let mut objections = Vec::new();
    if working < base {
        objections.push(format!(
            "/info/version: {working} is older than the released {base}. Raise it."
        ));
    }
    for change in changes {
        match change.severity {
            Severity::Breaking if !major => objections.push(format!(
                "{change}. This breaks partners who build on {base}: take it back, or raise /info/version from {working} \
                 to {}.0.0.",
                base.major + 1
            )),
            Severity::Addition if !minor => objections.push(format!(
                "{change}. This adds to {base}: raise /info/version from {working} to at least {}.{}.0.",
                base.major,
                base.minor + 1
            )),
            _ => {}
        }
    }
    if !has_entry(changelog, working) {
        objections.push(format!(
            "CHANGELOG.md: there is no entry `## {working}`. Write what partners get with it."
        ));
    }
    if objections.is_empty() { Ok(()) } else { Err(objections) }
}

/// True when a heading `## X.Y.Z` stands in the changelog, with or without a date behind it.
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
