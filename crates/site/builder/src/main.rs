//! Writes the files that are generated from the document and the signing kits. Run it after changing either; a test fails otherwise.
//!
//!     cargo code-samples    writes the document's `x-codeSamples`
//!     cargo postman         writes the Postman collection

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use site_builder::{Document, Sources, collection, with_code_samples};

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let document = root.join("spec/partner-api.yaml");
    let text = fs::read_to_string(&document)?;
    match env::args().nth(1).as_deref() {
        Some("code-samples") => {
            fs::write(document, with_code_samples(&text, &Sources::read(&root)?.kits)?)?;
        }
        Some("postman") => {
            let collection = serde_json::to_string_pretty(&collection(&Document::parse(&text)?))? + "\n";
            let folder = root.join("samples/postman");
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("partner-api.postman_collection.json"), collection)?;
        }
        _ => return Err("the argument must be code-samples or postman".into()),
    }
    Ok(())
}
