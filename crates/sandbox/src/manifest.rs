//! `sandbox.json`: the sandbox's URLs, keys and examples, for people and scripts.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use chrono::Utc;
use partner_api_acceptance::Target;
use partner_api_signing::{InvalidKeyId, InvalidSecret};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::SandboxError;
use super::data::Dataset;
use super::fixtures::{self, Fixture, OpenReport};
use super::inspectors::Inspector;

/// The file's name in the data folder.
pub const FILE_NAME: &str = "sandbox.json";

/// The content of `sandbox.json`. It contains secrets, so it is neither logged nor printed.
#[derive(Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// The service's URL, without a path.
    pub base_url: String,
    /// `test`.
    pub environment: String,
    /// The four partners.
    pub partners: Vec<Partner>,
    /// The URL of the inspectors' page; empty if it is not served.
    #[serde(default)]
    pub inspectors_url: String,
    /// The inspectors who can sign in there.
    #[serde(default)]
    pub inspectors: Vec<Inspector>,
    /// Example reports and branch codes.
    pub examples: ManifestExamples,
    /// Example requests, each with the partner that signs it and the expected response.
    #[serde(default)]
    pub fixtures: Vec<Fixture>,
}

/// The reason why a manifest cannot be used for the acceptance scenarios.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// The partner is missing.
    #[error("sandbox.json has no partner {0}")]
    NoPartner(&'static str),
    /// A key ID is invalid.
    #[error(transparent)]
    KeyId(#[from] InvalidKeyId),
    /// A secret is invalid.
    #[error(transparent)]
    Secret(#[from] InvalidSecret),
}

/// A partner with its key.
#[derive(Clone, Serialize, Deserialize)]
pub struct Partner {
    /// `alpha`, `beta`, `gamma` or `delta`.
    pub name: String,
    /// A description.
    #[serde(default)]
    pub about: String,
    /// The key's public ID.
    pub key_id: String,
    /// The key's secret.
    pub secret: String,
    /// The key's scopes.
    pub scopes: Vec<String>,
    /// IDs of the granted organizations.
    pub organizations: Vec<String>,
    /// IDs of the granted branches; null if all branches of the organizations are granted.
    pub branches: Option<Vec<String>>,
    /// Requests per minute.
    pub rate_limit: i32,
}

/// Reports and branch codes for each case that the contract distinguishes (REP-1, MEA-1, MEA-6).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ManifestExamples {
    /// A report for each visible status.
    pub inspections: ExampleInspections,
    /// A report that each start reopens.
    pub open_report: OpenReport,
    /// Open reports with distinct plates, beginning with `open_report`.
    #[serde(default)]
    pub open_reports: Vec<OpenReport>,
    /// Code of an inactive branch: 404.
    pub inactive_branch_code: String,
    /// Code of two branches that are granted to alpha: 400.
    pub ambiguous_branch_code: String,
    /// Code of a branch whose reports beta cannot see. For delta, which can submit measurements, it is 404.
    pub not_granted_branch_code: String,
}

/// IDs of reports that partners can see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExampleInspections {
    /// A report with a PDF, all forms, and some hidden photos.
    pub published: String,
    /// A report without a PDF, listed by default.
    pub archived: String,
    /// A report that is listed only with `status=cancelled`.
    pub cancelled: String,
}

impl Manifest {
    /// Creates the manifest of a data set that is served at `base_url`.
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
            fixtures: fixtures::fixtures(data, Utc::now()),
        }
    }

    /// Returns the partner with this name.
    #[must_use]
    pub fn partner(&self, name: &str) -> Option<&Partner> {
        self.partners.iter().find(|partner| partner.name == name)
    }

    /// Returns the target of the acceptance scenarios: alpha's key and the open report.
    ///
    /// # Errors
    /// [`ManifestError`] if alpha is missing or its key is invalid.
    pub fn acceptance(&self) -> Result<Target, ManifestError> {
        let alpha = self.partner("alpha").ok_or(ManifestError::NoPartner("alpha"))?;
        Ok(Target {
            base_url: self.base_url.clone(),
            key_id: alpha.key_id.parse()?,
            secret: alpha.secret.parse()?,
            branch_code: self.examples.open_report.branch_code.clone(),
            plate: self.examples.open_report.plate.clone(),
            timeout: Duration::from_secs(30),
        })
    }

    /// Writes the manifest atomically to `folder`, readable only by its owner.
    ///
    /// # Errors
    /// [`SandboxError::Manifest`] if it could not be written.
    pub fn write(&self, folder: &Path) -> Result<(), SandboxError> {
        let path = folder.join(FILE_NAME);
        let failed = |source: std::io::Error| SandboxError::Manifest {
            path: path.display().to_string(),
            source,
        };
        fs::create_dir_all(folder).map_err(failed)?;
        // tempfile creates it with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        serde_json::to_writer_pretty(&mut file, self).map_err(|error| failed(error.into()))?;
        file.write_all(b"\n").map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Reads the manifest of a running sandbox from `folder`.
    ///
    /// # Errors
    /// [`SandboxError::Manifest`] if it does not exist or is invalid.
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
    fn the_manifest_is_written_for_its_owner_only_and_read_back() {
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
