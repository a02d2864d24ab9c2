//! Makes the published document's JSON of the one that is written: no program parses YAML when it starts.

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

const WRITTEN: &str = "../spec/partner-api.yaml";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={WRITTEN}");
    let document: serde_json::Value = serde_yaml::from_str(&fs::read_to_string(WRITTEN)?)?;
    let made = PathBuf::from(env::var("OUT_DIR")?).join("openapi.json");
    fs::write(made, document.to_string())?;
    Ok(())
}
