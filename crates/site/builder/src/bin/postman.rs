//! Writes the Postman collection of the document.
//!
//!     cargo postman    run it after changing the document; a test fails otherwise

use std::error::Error;
use std::fs;
use std::path::Path;

use site_builder::{Document, collection};

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let document = Document::parse(&fs::read_to_string(root.join("spec/partner-api.yaml"))?)?;
    let text = serde_json::to_string_pretty(&collection(&document))? + "\n";
    let folder = root.join("samples/postman");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("partner-api.postman_collection.json"), text)?;
    Ok(())
}
