//! Converts the contract from YAML to JSON, so that no program parses YAML at startup.

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

const CONTRACT: &str = "../spec/partner-api.yaml";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={CONTRACT}");
    let document: serde_json::Value = serde_yaml::from_str(&fs::read_to_string(CONTRACT)?)?;
    let json = PathBuf::from(env::var("OUT_DIR")?).join("openapi.json");
    fs::write(json, document.to_string())?;
    Ok(())
}
