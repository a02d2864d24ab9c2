//! Breaking changes that are made in a minor version all the same, each with its reason.

use std::path::Path;

use semver::Version;
use serde::Deserialize;

use crate::released::ReadError;
use crate::{Change, Severity};

/// A breaking change that the operator has decided on with the partners.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// The released version that it breaks.
    pub base: String,
    /// The place, as the gate reports it.
    pub pointer: String,
    /// Why it is made without a new major version; for who reads the file.
    pub why: String,
}

/// Reads the list.
///
/// # Errors
///
/// When the file cannot be read or is no such list.
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

/// The changes since `base`, of which those that were accepted count as additions.
///
/// # Errors
///
/// The entries for `base` that no breaking change needs (any more): the list must not grow into a hole.
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
                "{}: nothing breaks here since {base}; remove the entry",
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
