//! Reads the service, the partners and an open report from a `sandbox.json`.

use std::path::Path;

use serde::Deserialize;

use super::PartialAccount;
use super::secret::Source;
use crate::failure::Failure;
use crate::text;

#[derive(Deserialize)]
struct Manifest {
    base_url: String,
    partners: Vec<Partner>,
    examples: Examples,
}

#[derive(Deserialize)]
struct Partner {
    name: String,
    key_id: String,
    secret: String,
}

#[derive(Deserialize)]
struct Examples {
    open_report: OpenReport,
}

/// The plate and branch code with which a measurement reaches an open report.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct OpenReport {
    pub(crate) plate: String,
    pub(crate) branch_code: String,
}

/// Reads the account of one partner.
pub(super) fn read(path: &Path, partner: &str) -> Result<PartialAccount, Failure> {
    let text = text::read(path).map_err(Failure::of(path))?;
    let manifest: Manifest = serde_json::from_str(&text)
        .map_err(|error| Failure::Usage(format!("{} is not a valid sandbox.json: {error}", path.display())))?;
    let names: Vec<_> = manifest.partners.iter().map(|partner| partner.name.clone()).collect();
    let Some(partner) = manifest.partners.into_iter().find(|known| known.name == partner) else {
        let names = names.join(", ");
        return Err(Failure::NotFound(format!(
            "the sandbox has no partner `{partner}`; its partners are {names}"
        )));
    };
    Ok(PartialAccount {
        base_url: Some(manifest.base_url),
        key_id: Some(partner.key_id),
        secret: Some(Source::Given(partner.secret.into())),
        open_report: Some(manifest.examples.open_report),
    })
}
