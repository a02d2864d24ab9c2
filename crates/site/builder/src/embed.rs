//! Writes the files that a program includes with `include!` to embed the pages.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::File;

/// The beginning of `files.rs`: the type of the table's rows.
const TYPE: &str = "\
/// A file of the pages.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// The path relative to the pages' folder, such as `signing.html`.
    pub path: &'static str,
    /// The `Content-Type`.
    pub content_type: &'static str,
    /// Whether the name contains a hash of the content, so that it can be cached forever.
    pub immutable: bool,
    /// The content.
    pub bytes: &'static [u8],
    /// The content, compressed with gzip; empty if that is not smaller.
    pub gzip: &'static [u8],
}

/// Every file, by path.
pub static FILES: &[File] = &[
";

/// Writes `files.rs` to a build script's output folder. It contains the type `File` and the table `FILES`, sorted by path, with the
/// plain and compressed content of each file.
///
/// # Errors
/// A file could not be written.
pub fn embed(mut files: Vec<File>, out: &Path) -> io::Result<()> {
    files.sort_by(|left, right| left.path.cmp(&right.path));
    let mut table = String::from(TYPE);
    for (number, file) in files.iter().enumerate() {
        let plain = out.join(format!("{number}.plain"));
        fs::write(&plain, &file.bytes)?;
        let compressed = out.join(format!("{number}.gz"));
        let smaller = Some(gzip(&file.bytes)?).filter(|gzip| gzip.len() < file.bytes.len());
        fs::write(&compressed, smaller.unwrap_or_default())?;
        let _ = writeln!(
            table,
            "    File {{ path: {:?}, content_type: {:?}, immutable: {}, bytes: {}, gzip: {} }},",
            file.path,
            file.content_type,
            file.immutable,
            included(&plain),
            included(&compressed),
        );
    }
    table.push_str("];\n");
    fs::write(out.join("files.rs"), table)
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn included(path: &Path) -> String {
    format!("include_bytes!({:?})", path.display().to_string())
}
