//! Builds the site from the project's documents, and compresses it.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use site_builder::{Sources, build};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("..");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let sources = Sources::read(&root)?;
    for path in sources.paths() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let mut files = build(&sources)?;
    files.sort_by(|left, right| left.path.cmp(&right.path));
    let mut table = String::from("/// Every file of the site, by path.\npub static FILES: &[File] = &[\n");
    for (number, file) in files.iter().enumerate() {
        let plain = out.join(format!("{number}.plain"));
        fs::write(&plain, &file.bytes)?;
        let compressed = out.join(format!("{number}.gz"));
        fs::write(&compressed, gzip(&file.bytes)?)?;
        writeln!(
            table,
            "    File {{ path: {:?}, content_type: {:?}, immutable: {}, bytes: {}, gzip: {} }},",
            file.path,
            file.content_type,
            file.immutable,
            included(&plain),
            included(&compressed),
        )?;
    }
    table.push_str("];\n");
    fs::write(out.join("files.rs"), table)?;
    Ok(())
}

fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn included(path: &Path) -> String {
    format!("include_bytes!({:?})", path.display().to_string())
}
