//! `sandbox.json`: for people and scripts, where the sandbox is, who may ask it and what to ask it for.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use partner_api_acceptance::Target;
use partner_api_signing::{InvalidKeyId, InvalidSecret};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::SandboxError;
use super::data::Dataset;
use super::fixtures::{self, Fixture};
use super::inspectors::Inspector;

/// Its name in the data folder.
pub const FILE_NAME: &str = "sandbox.json";

/// The whole of `sandbox.json`. It holds secrets, so it is neither logged nor printed.
#[derive(Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// Where the service listens, without a path.
    pub base_url: String,
    /// `test`.
    pub environment: String,
    /// Four partners.
    pub partners: Vec<Partner>,
    /// Where the page for inspectors is; empty where there is none.
    #[serde(default)]
    pub inspectors_url: String,
    /// Who may sign in there.
    #[serde(default)]
    pub inspectors: Vec<Inspector>,
    /// What to try first.
    pub examples: ManifestExamples,
    /// What there is to try: requests, each with whose key signs it and what is answered.
    #[serde(default)]
    pub fixtures: Vec<Fixture>,
}

/// Why a manifest names nothing to run the acceptance scenarios against.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// It names no such partner.
    #[error("sandbox.json has no partner {0}")]
    NoPartner(&'static str),
    /// A key id in it is none.
    #[error(transparent)]
    KeyId(#[from] InvalidKeyId),
    /// A secret in it is none.
    #[error(transparent)]
    Secret(#[from] InvalidSecret),
}

/// A partner with its key.
#[derive(Clone, Serialize, Deserialize)]
pub struct Partner {
    /// `alpha`, `beta`, `gamma` or `delta`.
    pub name: String,
    /// What it is for, as a sentence.
    #[serde(default)]
    pub about: String,
    /// Public id of its key.
    pub key_id: String,
    /// The key's secret.
    pub secret: String,
    /// What the key may do beyond reading, in the wire's word.
    pub scopes: Vec<String>,
    /// Ids of the organisations it is granted.
    pub organizations: Vec<String>,
    /// Ids of the only branches it is granted; null where it is granted all of its organisations' branches.
    pub branches: Option<Vec<String>>,
    /// Requests a minute.
    pub rate_limit: i32,
}

/// Reports and branch codes for each case that the contract tells apart (REP-1, MEA-1, MEA-6).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ManifestExamples {
    /// An inspection for each visible status.
    pub inspections: ExampleInspections,
    /// A report that each start opens again.
    pub open_report: OpenReport,
    /// Reports that are open, that one first, each with a plate of its own.
    #[serde(default)]
    pub open_reports: Vec<OpenReport>,
    /// Code of a branch that is closed: 404.
    pub inactive_branch_code: String,
    /// Code of two branches granted to alpha: 400.
    pub ambiguous_branch_code: String,
    /// Code of a branch not granted to beta, whose reports it does not see; to delta, which may send measurements, it is
    /// 404.
    pub not_granted_branch_code: String,
}

/// Ids of reports that partners see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExampleInspections {
    /// With a PDF, all forms, and hidden photos among its photos.
    pub published: String,
    /// Listed by default, without a PDF.
    pub archived: String,
    /// Listed only when asked for.
    pub cancelled: String,
}

/// What a measurement names to reach an open report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenReport {
    /// Normalised plate.
    pub plate: String,
    /// Code of its branch.
    pub branch_code: String,
}

impl Manifest {
    /// The manifest of a data set served at `base_url`.
    #[must_use]
    pub fn new(data: &Dataset, base_url: &str, partners: Vec<Partner>, inspectors: Vec<Inspector>) -> Self {
        let examples = &data.examples;
        let id = |inspection: usize| data.inspections[inspection].id.to_string();
        let open_report = &data.inspections[examples.open_report];
        Self {
            base_url: base_url.trim_end_matches('/').to_owned(),
            environment: "test".to_owned(),
            partners,
            inspectors_url: String::new(),
            inspectors,
            examples: ManifestExamples {
                inspections: ExampleInspections {
                    published: id(examples.published),
                    archived: id(examples.archived),
                    cancelled: id(examples.cancelled),
                },
                open_report: OpenReport {
                    plate: data.vehicles[open_report.vehicle].plate.clone(),
                    branch_code: data.branches[open_report.branch].code.to_owned(),
                },
                open_reports: fixtures::open_reports(data),
                inactive_branch_code: examples.inactive_branch_code.to_owned(),
                ambiguous_branch_code: examples.ambiguous_branch_code.to_owned(),
                not_granted_branch_code: examples.not_granted_branch_code.to_owned(),
            },
            fixtures: fixtures::fixtures(data),
        }
    }

    /// The partner of that name.
    #[must_use]
    pub fn partner(&self, name: &str) -> Option<&Partner> {
        self.partners.iter().find(|partner| partner.name == name)
    }

    /// What the acceptance scenarios are run against: alpha's key and the open report.
    ///
    /// # Errors
    /// [`ManifestError`] when the manifest has no alpha, or a key that is none.
    pub fn acceptance(&self) -> Result<Target, ManifestError> {
        let alpha = self.partner("alpha").ok_or(ManifestError::NoPartner("alpha"))?;
        Ok(Target {
            base_url: self.base_url.clone(),
            key_id: alpha.key_id.parse()?,
            secret: alpha.secret.parse()?,
            branch_code: self.examples.open_report.branch_code.clone(),
            plate: self.examples.open_report.plate.clone(),
        })
    }

    /// Writes the manifest into `folder`, whole or not at all, readable by its owner alone.
    ///
    /// # Errors
    /// [`SandboxError::Manifest`] when it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), SandboxError> {
        let path = folder.join(FILE_NAME);
        let failed = |source: std::io::Error| SandboxError::Manifest {
            path: path.display().to_string(),
            source,
        };
        fs::create_dir_all(folder).map_err(failed)?;
        // Made with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        serde_json::to_writer_pretty(&mut file, self).map_err(|error| failed(error.into()))?;
        file.write_all(b"\n").map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Reads the manifest of a running sandbox from `folder`.
    ///
    /// # Errors
    /// [`SandboxError::Manifest`] when there is none or it is not one.
    pub fn read(folder: &Path) -> Result<Self, SandboxError> {
        let path = folder.join(FILE_NAME);
        let failed = |source: std::io::Error| SandboxError::Manifest {
            path: path.display().to_string(),
            source,
        };
        let text = fs::read(&path).map_err(failed)?;
        serde_json::from_slice(&text).map_err(|error| failed(error.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::generate::{SEED, dataset};

    #[test]
    fn the_manifest_is_written_for_its_owner_alone_and_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let partner = Partner {
            name: "alpha".to_owned(),
            about: "It sends.".to_owned(),
            key_id: "vip_test_A".to_owned(),
            secret: "S".to_owned(),
            scopes: Vec::new(),
            organizations: Vec::new(),
            branches: None,
            rate_limit: 60,
        };
        let written = Manifest::new(&dataset(SEED), "http://127.0.0.1:8080/", vec![partner], Vec::new());
        written.write(folder.path()).expect("written");
        let mode = fs::metadata(folder.path().join(FILE_NAME))
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let read = Manifest::read(folder.path()).expect("read");
        assert_eq!(read.base_url, "http://127.0.0.1:8080");
        assert_eq!(read.examples, written.examples);
        assert_eq!(
            read.partner("alpha").map(|partner| partner.key_id.as_str()),
            Some("vip_test_A")
        );
    }
}
