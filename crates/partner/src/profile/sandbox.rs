//! A sandbox's `sandbox.json`, of which only what is needed here is read.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::Found;
use super::secret::Source;
use crate::failure::Failure;

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

/// What a measurement names to reach an open report.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct OpenReport {
    pub(crate) plate: String,
    pub(crate) branch_code: String,
}

/// What it says of one of its partners.
pub(super) fn read(path: &Path, partner: &str) -> Result<Found, Failure> {
    let text = fs::read(path).map_err(Failure::of(path))?;
    let manifest: Manifest = serde_json::from_slice(&text)
        .map_err(|error| Failure::Usage(format!("{} is no sandbox.json: {error}", path.display())))?;
    let names: Vec<_> = manifest.partners.iter().map(|partner| partner.name.clone()).collect();
    let Some(partner) = manifest.partners.into_iter().find(|known| known.name == partner) else {
        let names = names.join(", ");
        return Err(Failure::NotFound(format!(
            "the sandbox has no partner `{partner}`; it has {names}"
        )));
    };
    Ok(Found {
        base_url: Some(manifest.base_url),
        key_id: Some(partner.key_id),
        secret: Some(Source::Given(partner.secret.into())),
        open_report: Some(manifest.examples.open_report),
    })
}
