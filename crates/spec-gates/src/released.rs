//! Reading contracts from disk.

use std::path::{Path, PathBuf};

use semver::Version;
use serde_json::Value;

/// An error while reading a contract.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file or folder cannot be read.
    #[error("{path}: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is not valid YAML.
    #[error("{path}: {source}")]
    Yaml {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: serde_yaml::Error,
    },
    /// `/info/version` is not a version according to Semantic Versioning.
    #[error("{0}: /info/version must be a version X.Y.Z")]
    Version(PathBuf),
    /// A released file's name and its `/info/version` differ, or the name is not `partner-api-X.Y.Z.yaml`.
    #[error("{0}: the name must be partner-api-X.Y.Z.yaml with the version that the document has in /info/version")]
    Name(PathBuf),
    /// There is no released version.
    #[error("{0}: there is no released version to compare with")]
    Nothing(PathBuf),
}

/// A contract and its version.
#[derive(Clone, Debug)]
pub struct Contract {
    /// `/info/version`.
    pub version: Version,
    /// The document.
    pub document: Value,
}

/// Reads one contract.
///
/// # Errors
///
/// If the file cannot be read, is not valid YAML, or has no version.
pub fn read(path: &Path) -> Result<Contract, ReadError> {
    let text = std::fs::read_to_string(path).map_err(|source| ReadError::File {
        path: path.to_owned(),
        source,
    })?;
    let document: Value = serde_yaml::from_str(&text).map_err(|source| ReadError::Yaml {
        path: path.to_owned(),
        source,
    })?;
    let version = document
        .pointer("/info/version")
        .and_then(Value::as_str)
        .and_then(|version| Version::parse(version).ok())
        .ok_or_else(|| ReadError::Version(path.to_owned()))?;
    Ok(Contract { version, document })
}

/// Returns the contract with the highest version in a folder of files named `partner-api-X.Y.Z.yaml`.
///
/// # Errors
///
/// If a file cannot be read or has another name, or if there is none.
pub fn newest(folder: &Path) -> Result<Contract, ReadError> {
    let unreadable = |source| ReadError::File {
        path: folder.to_owned(),
        source,
    };
    let mut newest: Option<Contract> = None;
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let contract = read(&path)?;
        if path.file_name() != Some(format!("partner-api-{}.yaml", contract.version).as_ref()) {
            return Err(ReadError::Name(path));
        }
        if newest.as_ref().is_none_or(|other| other.version < contract.version) {
            newest = Some(contract);
        }
    }
    newest.ok_or_else(|| ReadError::Nothing(folder.to_owned()))
}
