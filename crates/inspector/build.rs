//! Embeds the page's files in the program. Assets get names that change with their contents.
//!
//! In `page/`, assets refer to each other by their plain names (`./texts.js`), so that tests can load them unchanged. The build adds
//! one hash of all assets to each name, because a changed module also changes the modules that load it.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use site_builder::{File, embed};

/// Digits of the hash in a name.
const DIGITS: usize = 12;
const INDEX: &str = "index.html";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("page");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder)? {
        names.push(entry?.file_name().into_string().map_err(|name| format!("{name:?}"))?);
    }
    names.sort();
    let mut sources = Vec::new();
    let mut digest = Sha256::new();
    for name in names {
        let text = fs::read_to_string(folder.join(&name))?;
        digest.update(&name);
        digest.update(&text);
        sources.push((name, text));
    }
    let hash = &HEXLOWER.encode(&digest.finalize())[..DIGITS];
    let assets: Vec<&str> = sources
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| *name != INDEX)
        .collect();
    let mut files = Vec::new();
    for (name, text) in &sources {
        let is_index = name == INDEX;
        files.push(File {
            path: if is_index {
                name.clone()
            } else {
                format!("assets/{}", named(name, hash))
            },
            content_type: content_type(name)?,
            bytes: with_hashes(text, &assets, hash).into_bytes(),
            immutable: !is_index,
        });
    }
    embed(files, Path::new(&env::var("OUT_DIR")?))?;
    Ok(())
}

/// `app.js` as `app.<hash>.js`.
fn named(name: &str, hash: &str) -> String {
    match name.rsplit_once('.') {
        Some((stem, ending)) => format!("{stem}.{hash}.{ending}"),
        None => format!("{name}.{hash}"),
    }
}

/// Replaces the names of assets by those that they are served under.
fn with_hashes(text: &str, assets: &[&str], hash: &str) -> String {
    let mut text = text.to_owned();
    for name in assets {
        let new = named(name, hash);
        for folder in ["./", "assets/"] {
            text = text.replace(&format!("\"{folder}{name}\""), &format!("\"{folder}{new}\""));
        }
    }
    text
}

fn content_type(name: &str) -> Result<&'static str, String> {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => Ok("text/html; charset=utf-8"),
        Some("css") => Ok("text/css; charset=utf-8"),
        Some("js") => Ok("text/javascript; charset=utf-8"),
        Some("svg") => Ok("image/svg+xml"),
        _ => Err(format!(
            "page/{name} has an unknown file type; add its content type to build.rs"
        )),
    }
}
