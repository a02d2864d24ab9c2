//! Pages as bytes of a program: what a build script leaves for `include!`.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::File;

/// What the table's rows are.
const TYPE: &str = "\
/// A file of the pages.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// From the pages' folder, such as `signing.html`.
    pub path: &'static str,
    /// For `Content-Type`.
    pub content_type: &'static str,
    /// Whether its name changes with its content, so that it may be kept for ever.
    pub immutable: bool,
    /// Its content.
    pub bytes: &'static [u8],
    /// The same, compressed.
    pub gzip: &'static [u8],
}

/// Every file, by path.
pub static FILES: &[File] = &[
";

/// Writes `files.rs` into a build script's folder: the type `File`, and the table `FILES` of these files, by path, each as it is
/// and compressed.
///
/// # Errors
/// It cannot be written.
pub fn embed(mut files: Vec<File>, out: &Path) -> io::Result<()> {
    files.sort_by(|left, right| left.path.cmp(&right.path));
    let mut table = String::from(TYPE);
    for (number, file) in files.iter().enumerate() {
        let plain = out.join(format!("{number}.plain"));
        fs::write(&plain, &file.bytes)?;
        let compressed = out.join(format!("{number}.gz"));
        fs::write(&compressed, gzip(&file.bytes)?)?;
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
