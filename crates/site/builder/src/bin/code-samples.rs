//! Writes the document's `x-codeSamples` from the signing kits.
//!
//!     cargo code-samples    run it after changing the document or a kit; a test fails otherwise

use std::error::Error;
use std::fs;
use std::path::Path;

use site_builder::{Sources, with_code_samples};

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let path = root.join("spec/partner-api.yaml");
    let text = with_code_samples(&fs::read_to_string(&path)?, &Sources::read(&root)?.kits)?;
    fs::write(path, text)?;
    Ok(())
}
