//! Builds and compresses the site from the project's documents.

use std::env;
use std::error::Error;
use std::path::PathBuf;

use site_builder::{Sources, build, embed};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let mut sources = Sources::read(&root)?;
    // The archives and packages of a release, which script/release builds first.
    println!("cargo::rerun-if-env-changed=PARTNER_DOWNLOADS");
    if let Some(folder) = env::var_os("PARTNER_DOWNLOADS") {
        sources = sources.with_downloads(&PathBuf::from(folder))?;
    }
    for path in sources.paths() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    embed(build(&sources)?, &PathBuf::from(env::var("OUT_DIR")?))?;
    Ok(())
}
