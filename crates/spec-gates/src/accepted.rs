//! Breaking changes that are accepted in a minor version, each with its reason.

use std::path::Path;

use semver::Version;
use serde::Deserialize;

use crate::released::ReadError;
use crate::{Change, Severity};

/// A breaking change that the operator and the partners have agreed on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// The released version that it breaks.
    pub base: String,
    /// The JSON pointer of the change, as the check reports it.
    pub pointer: String,
    /// Why the change does not need a new major version.
    pub why: String,
}

/// Reads the list of accepted changes.
///
/// # Errors
///
/// If the file cannot be read or parsed.
pub fn read(path: &Path) -> Result<Vec<Accepted>, ReadError> {
    let text = std::fs::read_to_string(path).map_err(|source| ReadError::File {
        path: path.to_owned(),
        source,
    })?;
    serde_yaml::from_str(&text).map_err(|source| ReadError::Yaml {
        path: path.to_owned(),
        source,
    })
}

/// Returns the changes since `base`, with the accepted ones as additions.
///
/// # Errors
///
/// Returns a message for each entry for `base` that matches no breaking change, so that the list contains no stale entries.
pub fn accept(mut changes: Vec<Change>, accepted: &[Accepted], base: &Version) -> Result<Vec<Change>, Vec<String>> {
    let mut unneeded = Vec::new();
    for entry in accepted.iter().filter(|entry| entry.base == base.to_string()) {
        let mut is_needed = false;
        for change in &mut changes {
            if change.severity == Severity::Breaking && change.pointer == entry.pointer {
                change.severity = Severity::Addition;
                is_needed = true;
            }
        }
        if !is_needed {
            unneeded.push(format!(
                "{}: no breaking change here since {base}; remove the entry",
                entry.pointer
            ));
        }
    }
    if unneeded.is_empty() {
        Ok(changes)
    } else {
        Err(unneeded)
    }
}
